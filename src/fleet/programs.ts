/** Programs of the system: where they are, and whether they may be used. */
import { execFile } from 'node:child_process'
import { access, constants, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { pathOfProcess } from '../config/index.js'

const run = promisify(execFile)

/** Whether this is a file that may be run. */
export async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/**
 * The absolute path of a program in the `PATH`, as a shell finds it. No shell is asked, because each start of the server
 * would run one process for each program.
 * @param more folders to search after those of the `PATH`.
 */
export async function findProgram(name: string, more: readonly string[] = []): Promise<string | undefined> {
  const folders = (pathOfProcess().PATH ?? '').split(delimiter)
  for (const folder of [...folders, ...more]) {
    if (isAbsolute(folder) && (await isProgram(join(folder, name)))) return join(folder, name)
  }
  return undefined
}

const tried = new Map<string, Promise<string | undefined>>()

/**
 * A program of the system, if it is there and lets us use it. It is tried once for all servers of this process, and again
 * when the system could not start it, for example for lack of memory or descriptors. Never rejects.
 * @param trial arguments with which it has to succeed.
 */
export function usableProgram(name: string, trial: readonly string[]): Promise<string | undefined> {
  const key = [name, ...trial].join(' ')
  const known = tried.get(key) ?? tryProgram(name, trial, () => tried.delete(key))
  tried.set(key, known)
  return known
}

async function tryProgram(
  name: string,
  trial: readonly string[],
  onNotStarted: () => void,
): Promise<string | undefined> {
  const path = await findProgram(name)
  if (path === undefined) return undefined
  try {
    await run(path, trial)
    return path
  } catch (error) {
    // A text as code means that the program was not started; one that ran ends with a number or a signal.
    if (error instanceof Error && 'code' in error && typeof error.code === 'string') onNotStarted()
    return undefined
  }
}
