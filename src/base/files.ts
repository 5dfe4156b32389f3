import { open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from './errors.js'

/**
 * Replaces a file atomically: a crash leaves either the old content or the new one. Only the owner may read the new file.
 * Do not run two replacements of one path at the same time: both write `<path>.new` first.
 */
export async function replaceFile(path: string, content: string): Promise<void> {
  const next = `${path}.new`
  const file = await open(next, 'w', 0o600)
  try {
    await file.chmod(0o600) // Otherwise a file left behind by a crash would keep its mode.
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(next, path)
  await syncPath(dirname(path))
}

/** The text of a file, or `undefined` when it does not exist. */
export async function readFileIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Syncs a file, or the entries of a directory, to the disk, so that they survive a power cut. */
export async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
