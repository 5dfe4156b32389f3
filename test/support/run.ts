import { spawn } from 'node:child_process'
import { childEnv, MAIN_JS } from './homeport.js'

/** What a command answered. */
export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs any command to its end, without a terminal. */
export function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>>; readonly input?: string } = {},
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: options.cwd, env: childEnv(options.env) })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (part) => (stdout += part))
    child.stderr.setEncoding('utf8').on('data', (part) => (stderr += part))
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout, stderr }))
    child.stdin.end(options.input ?? '')
  })
}

/** Runs `homeport <args>` from the built sources to its end. */
export function runHomeport(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<CommandResult> {
  return run(process.execPath, [MAIN_JS, ...args], options)
}
