import { spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const running = new Set()
let interruption

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }

/**
 * From now on a signal ends the running commands and prevents new ones, except those that clean up. Callers that wait
 * for a command continue and clean up, then exit with `interruptedCode()`.
 * @returns a function that removes the handlers.
 */
export function catchSignals() {
  const handlers = Object.entries(SIGNAL_NUMBERS).map(([signal, number]) => {
    const handler = () => {
      interruption ??= 128 + number
      for (const child of running) child.kill(signal)
    }
    process.on(signal, handler)
    return () => process.removeListener(signal, handler)
  })
  return () => {
    for (const remove of handlers) remove()
  }
}

/** The exit code after a signal (128 plus its number), else `undefined`. */
export const interruptedCode = () => interruption

/**
 * Runs a command and resolves with its exit code, or 127 when it cannot be started. The command inherits our output,
 * unless `quiet`: then the output is returned, to explain a failure.
 */
export function run(command, args, { cwd, env, quiet = false, input, isCleanup = false } = {}) {
  if (interruption !== undefined && !isCleanup) return Promise.resolve({ code: interruption, output: '' })
  return new Promise((resolve) => {
    const stdio = [input === undefined ? 'ignore' : 'pipe', ...(quiet ? ['pipe', 'pipe'] : ['inherit', 'inherit'])]
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio })
    const chunks = []
    const end = (code) => {
      running.delete(child)
      resolve({ code, output: chunks.join('') })
    }
    if (!isCleanup) running.add(child)
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (chunk) => chunks.push(chunk))
    child.once('error', (error) => {
      chunks.push(error.message)
      end(127)
    })
    child.once('close', (code, signal) => end(code ?? (signal ? 128 : 1)))
    // If a program does not read its input, only its exit code counts.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}

/** Runs all tasks at the same time. Throws the first failure once all have ended, so that no task is left running. */
export async function together(...tasks) {
  const results = await Promise.allSettled(tasks.map((task) => task()))
  const failed = results.find(({ status }) => status === 'rejected')
  if (failed) throw failed.reason
}

let turn = Promise.resolve()

/** Runs the task after all earlier ones: package managers refuse to run twice at a time. */
export function inTurn(task) {
  const done = turn.then(task)
  turn = done.catch(() => {})
  return done
}

/** The first of these programs on PATH, as a full path, or `undefined`. */
export function findProgram(...names) {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}
