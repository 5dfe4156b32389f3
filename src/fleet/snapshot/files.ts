/** Files of snapshots: they are written once and never changed. */
import { constants, copyFile, link, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, syncPath } from '../../base/index.js'

/** Error codes of file systems that cannot give a file a second name. */
const NO_LINKS = new Set(['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'ENOSYS'])

/**
 * Copies a finished file; durable when it resolves. The copy has an inode of its own, so that one bad block never takes
 * a backup and the data together. File systems that share blocks until one side changes (reflinks) still do so.
 */
export async function placeCopy(from: string, to: string): Promise<void> {
  await rm(to, { force: true })
  await copyFile(from, to, constants.COPYFILE_FICLONE)
  await makeDurable(to)
}

/**
 * Gives a finished file a second name where the file system can, else copies it; durable when it resolves. Only for a
 * file of which one name is about to go.
 */
export async function placeLink(from: string, to: string): Promise<void> {
  await rm(to, { force: true })
  try {
    await link(from, to)
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error))) throw error
    await copyFile(from, to, constants.COPYFILE_FICLONE)
  }
  await makeDurable(to)
}

async function makeDurable(path: string): Promise<void> {
  await syncPath(path)
  await syncPath(dirname(path))
}
