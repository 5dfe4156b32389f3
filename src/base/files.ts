import { open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from './error-code.js'

/**
 * Puts a file that only its owner may read in the place of another, as a whole: a crash leaves the old or the new one.
 * One at a time for each path, since all of them write the same file first.
 */
export async function replaceFile(path: string, content: string): Promise<void> {
  const next = `${path}.new`
  const file = await open(next, 'w', 0o600)
  try {
    await file.chmod(0o600) // A file that an earlier crash left keeps its mode otherwise.
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(next, path)
  await syncPath(dirname(path))
}

/** The text of a file, or `undefined` when there is none. */
export async function readFileIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Makes the content of a file, or the names in a directory, survive a power cut. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
