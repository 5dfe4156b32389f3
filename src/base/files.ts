import { existsSync, mkdirSync } from 'node:fs'
import { mkdir, open, readFile, rename } from 'node:fs/promises'
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

const OWNER_ONLY = { mode: 0o700 }
/** Succeeds on a folder that exists, and fails on a file. */
const OR_THERE = { ...OWNER_ONLY, recursive: true }

/**
 * Makes a folder that a user has named, with its parents, for its owner only. Nothing happens if it exists.
 *
 * `mkdir` of Node with `recursive` never ends below a folder that answers ENOENT although it exists, such as `/proc` or the
 * root of an automounter: it makes the parent again and again.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, OWNER_ONLY)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return void (await mkdir(path, OR_THERE))
    if (!lacksParent(path, error)) throw error
    await makeFolder(dirname(path))
    await makeFolder(path)
  }
}

/** `makeFolder`, synchronously. Returns whether the folder was made. */
export function makeFolderSync(path: string): boolean {
  try {
    mkdirSync(path, OWNER_ONLY)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return mkdirSync(path, OR_THERE) !== undefined
    if (!lacksParent(path, error)) throw error
    makeFolderSync(dirname(path))
    return makeFolderSync(path)
  }
}

const lacksParent = (path: string, error: unknown): boolean => codeOf(error) === 'ENOENT' && !existsSync(dirname(path))
