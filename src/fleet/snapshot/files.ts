/** Files of snapshots: they are written once and never changed. */
import { constants, copyFile, link, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, syncPath } from '../../base/index.js'
import { NOTE_FILE } from '../data/log-files.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import type { EngineSpec } from '../types.js'

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

const BASE = 'appendonly.aof.1.base.rdb'
const CHANGES = 'appendonly.aof.1.incr.aof'
/** An append-only log is a base, which may be a snapshot, and the changes since; this file names both. */
const MANIFEST = `file ${BASE} seq 1 type b\nfile ${CHANGES} seq 1 type i\n`

/**
 * Replaces the data in a member's directory.
 * @param file is linked where possible, which needs no room on the disk: so it must be a copy that goes afterwards.
 */
export async function adoptSnapshot(dir: string, persistence: EngineSpec['persistence'], file: string): Promise<void> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  if (persistence === 'append-only') await adoptAsLog(dir, file)
  else await adoptAsSnapshot(dir, file)
  await syncPath(dir)
}

async function adoptAsLog(dir: string, file: string): Promise<void> {
  const [next, log] = [join(dir, `${LOG_DIRECTORY}.next`), join(dir, LOG_DIRECTORY)]
  await rm(next, { recursive: true, force: true })
  await mkdir(next, { mode: 0o700 })
  await placeLink(file, join(next, BASE))
  for (const [name, text] of [
    [CHANGES, ''],
    ['appendonly.aof.manifest', MANIFEST],
  ] as const) {
    await writeFile(join(next, name), text, { mode: 0o600 })
    await syncPath(join(next, name))
  }
  await syncPath(next)
  // It speaks of the old log, whose files may have had the same names.
  await rm(join(dir, NOTE_FILE), { force: true })
  await rm(log, { recursive: true, force: true })
  await rename(next, log)
}

async function adoptAsSnapshot(dir: string, file: string): Promise<void> {
  const next = join(dir, `${SNAPSHOT_FILE}.next`)
  await placeLink(file, next)
  await rename(next, join(dir, SNAPSHOT_FILE))
}
