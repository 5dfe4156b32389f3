import { spawn } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const running = new Set()
let interruption

const SIGNAL_NUMBERS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }

/**
 * From now on a signal ends the commands that run and lets no further one start, except those that clean up. Whoever
 * waits for them goes on, undoes what it has to, and `interruptedCode` tells how to end.
 * @returns a function that gives the signals back.
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

/** The exit code when a signal has arrived (128 and its number), else `undefined`. */
export const interruptedCode = () => interruption

/**
 * Runs a command and resolves with its exit code, or 127 when it cannot be started. The output goes to our own, unless
 * `quiet`: then it is kept and returned, for the case that it is needed to explain a failure.
 */
export function run(command, args, { cwd, env, quiet = false, input, isCleanup = false } = {}) {
  if (interruption !== undefined && !isCleanup) return Promise.resolve({ code: interruption, output: '' })
  return new Promise((resolve) => {
    const stdio = [input === undefined ? 'ignore' : 'pipe', ...(quiet ? ['pipe', 'pipe'] : ['inherit', 'inherit'])]
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio })
    const parts = []
    const end = (code) => {
      running.delete(child)
      resolve({ code, output: parts.join('') })
    }
    if (!isCleanup) running.add(child)
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (part) => parts.push(part))
    child.once('error', (error) => {
      parts.push(error.message)
      end(127)
    })
    child.once('close', (code, signal) => end(code ?? (signal ? 128 : 1)))
    // A program that does not read its input is judged by its exit code.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}

/** Does all of these at the same time. A failure is thrown once all have ended, so that nothing goes on behind it. */
export async function together(...tasks) {
  const results = await Promise.allSettled(tasks.map((task) => task()))
  const failed = results.find(({ status }) => status === 'rejected')
  if (failed) throw failed.reason
}

let turn = Promise.resolve()

/** Does the task once those that came before have ended: programs that install others refuse to work twice at a time. */
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
