import { spawn } from 'node:child_process'
import { onFailedExit } from './exit-guard.js'
import { childEnv, MAIN_JS } from './homeport.js'

/** The result of a command. */
export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Options of a command. */
export interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Written to its standard input. */
  readonly input?: string
  /** After this time it is killed, and `code` is `null`. Default 60,000. */
  readonly deadlineMs?: number
}

/** Runs any command to its end, without a terminal. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd,
      env: childEnv(options.env),
      timeout: options.deadlineMs ?? 60_000,
      killSignal: 'SIGKILL',
    })
    const kill = () => void child.kill('SIGKILL')
    onFailedExit.add(kill)
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (part) => (stdout += part))
    child.stderr.setEncoding('utf8').on('data', (part) => (stderr += part))
    child.once('error', reject)
    child.once('close', (code) => {
      onFailedExit.delete(kill)
      resolve({ code, stdout, stderr })
    })
    // If a program does not read its input, only its exit code counts.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.input ?? '')
  })
}

/** Runs `homeport <args>` from the built sources to its end. */
export function runHomeport(args: readonly string[], options: RunOptions = {}): Promise<CommandResult> {
  return run(process.execPath, [MAIN_JS, ...args], options)
}
