import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
const PREFIX = ['--pdeathsig', 'TERM', '--'] as const

/**
 * Words to put before a command so that the kernel ends it cleanly when the process that started it dies in whatever
 * way. Empty where the system has no such tool; then leftovers are found by `endEngines` at the next start.
 */
export async function findDeathSignalPrefix(): Promise<readonly string[]> {
  try {
    const { stdout } = await run('/bin/sh', ['-c', 'command -v setpriv'])
    const tool = stdout.trim()
    await run(tool, [...PREFIX, '/bin/sh', '-c', ':'])
    return [tool, ...PREFIX]
  } catch {
    return []
  }
}
