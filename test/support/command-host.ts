import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { atCleanup } from './cleanup.js'
import { onFailedExit } from './exit-guard.js'
import { childEnv, MAIN_JS } from './homeport.js'
import type { CommandResult, RunOptions } from './run.js'

const HOST = fileURLToPath(new URL('command-host.mjs', import.meta.url))
const DEADLINE_MS = 60_000

/** A program whose commands run in one process. */
export interface HostedProgram {
  /** Its main file; default: the built `homeport`. */
  readonly main?: string
  /** Variables that its process starts with, such as `NODE_OPTIONS`; a command gets its own in addition. */
  readonly env?: Readonly<Record<string, string>>
}

/**
 * Returns a function like `runHomeport` that runs all commands in the same process, one after the other, because a short
 * command spends most of its time on the start of Node.js. It suits commands that neither serve nor read a terminal; tests
 * of exit codes, signals and the start itself use `runHomeport`. The process ends at cleanup.
 */
export function commandHost({
  main = MAIN_JS,
  env: base = {},
}: HostedProgram = {}): (args: readonly string[], options?: RunOptions) => Promise<CommandResult> {
  let host: ChildProcess | undefined
  let last: Promise<unknown> = Promise.resolve()
  let number = 0
  atCleanup(() => (host ? ended(host) : undefined))
  return (args, options = {}) => {
    const turn = last.then(() => {
      if (host?.connected !== true) host = startHost(base)
      const { cwd = process.cwd(), input = '', deadlineMs = DEADLINE_MS } = options
      const env = childEnv({ ...base, ...options.env })
      const command = { number: ++number, main: pathToFileURL(main).href, args, env, cwd, input }
      return resultOf(host, command, deadlineMs)
    })
    last = turn.catch(() => undefined)
    return turn
  }
}

function startHost(env: Readonly<Record<string, string>>): ChildProcess {
  const host = fork(HOST, { env: childEnv(env), execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  onFailedExit.add(() => host.kill('SIGKILL'))
  return host
}

/** Kills the process of a command that takes longer than its deadline; `code` is `null` then, as with `runHomeport`. */
function resultOf(
  host: ChildProcess,
  command: object & { number: number },
  deadlineMs: number,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => host.kill('SIGKILL'), deadlineMs)
    const settle = (result: CommandResult): void => {
      clearTimeout(timer)
      host.off('message', answered).off('exit', died)
      resolve(result)
    }
    const answered = (message: unknown): void => settle(message as CommandResult)
    const died = (): void => settle({ code: null, stdout: '', stderr: 'the process of the commands has ended' })
    host.once('message', answered).once('exit', died)
    host.send(command)
  })
}

function ended(host: ChildProcess): Promise<void> {
  if (host.exitCode !== null || host.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    host.once('exit', () => resolve())
    host.kill('SIGKILL')
  })
}
