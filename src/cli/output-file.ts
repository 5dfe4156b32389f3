import { rename, rm } from 'node:fs/promises'
import { codeOf } from '../base/index.js'
import { failedWith } from './errors.js'

/**
 * Replaces a file when its content is complete.
 * @param write writes the content to the path that it gets.
 * @throws HomeportError `cli_failed` when the file cannot be written; otherwise what `write` throws.
 */
export async function replaceWhenComplete(file: string, write: (partial: string) => Promise<void>): Promise<void> {
  const partial = `${file}.part`
  try {
    await write(partial)
    await rename(partial, file)
  } catch (cause) {
    throw REASONS[codeOf(cause)] === undefined ? cause : unwritable(file, cause)
  } finally {
    await rm(partial, { force: true })
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'its folder does not exist',
  ENOTDIR: 'its folder is a file',
  EISDIR: 'it is a folder',
  EACCES: 'you may not write there',
  EPERM: 'you may not write there',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
}

const unwritable = (file: string, cause: unknown) =>
  failedWith(`${file} cannot be written: ${REASONS[codeOf(cause)]}.`, { cause })
