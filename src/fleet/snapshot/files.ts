/** Files of snapshots: they are written once and never changed, so one file may stand in several places. */
import { constants, copyFile, link, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, syncPath } from '../../base/index.js'

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
  await syncPath(to)
  await syncPath(dirname(to))
}
