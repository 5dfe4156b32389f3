import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const run = promisify(execFile)
/** So much is allowed when the tool is tried. */
const TRIED_BYTES = 2 ** 30

const wordsOf = (tool: string, bytes: number): readonly string[] => [tool, `--data=${bytes}`, '--']

/**
 * Words to put before a command so that the kernel gives its process no more than so many bytes of memory: a request
 * beyond that fails, and the engine ends. No words where the system has no such tool, or no bound is wanted.
 */
export type MemoryLimitPrefix = (bytes: number | undefined) => readonly string[]

/** Looks once for the tool that sets the limit. */
export async function findMemoryLimitPrefix(): Promise<MemoryLimitPrefix> {
  try {
    const { stdout } = await run('/bin/sh', ['-c', 'command -v prlimit'])
    const tool = stdout.trim()
    const [command = '', ...args] = wordsOf(tool, TRIED_BYTES)
    await run(command, [...args, '/bin/sh', '-c', ':'])
    return (bytes) => (bytes === undefined ? [] : wordsOf(tool, bytes))
  } catch {
    return () => []
  }
}
