/** Files of snapshots: they are written once and never changed, so one file may stand in several places. */
import { constants, copyFile, link, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf } from '../../base/index.js'

/** Error codes of file systems that cannot give a file a second name. */
const NO_LINKS = new Set(['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'ENOSYS'])

/** Gives a finished file a second place, without copying where the file system can; durable when it resolves. */
export async function placeCopy(from: string, to: string): Promise<void> {
  await rm(to, { force: true })
  try {
    await link(from, to)
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error))) throw error
    await copyFile(from, to, constants.COPYFILE_FICLONE)
  }
  await sync(to)
  await sync(dirname(to))
}

/** Makes a file's content, or a directory's names, durable. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
