/**
 * Places snapshot files, which are written once and never changed, and makes one the data of a stopped member. Adoption
 * can be interrupted at any step and repeated as a whole: its caller repeats it until it is done, and starts no engine
 * before.
 */
import { constants, copyFile, link, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { codeOf, syncPath } from '../../base/index.js'
import { NOTE_FILE } from '../data/log-files.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import type { EngineSpec } from '../types.js'

/** Error codes of file systems without hard links. */
const NO_LINKS = new Set(['EXDEV', 'EPERM', 'EMLINK', 'ENOTSUP', 'ENOSYS'])

/**
 * Copies a finished file; durable when it resolves. The copy has its own inode, so one bad block never hits backup and
 * data together, except on file systems that share blocks (reflinks). A crash leaves at most a file with the extension
 * `.part`.
 */
export async function placeCopy(from: string, to: string): Promise<void> {
  const part = `${to}.part`
  try {
    await copyFile(from, part, constants.COPYFILE_FICLONE)
    await syncPath(part)
    await rename(part, to)
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined)
    throw error
  }
  await syncPath(dirname(to))
}

/**
 * Hard-links a finished file where possible, otherwise copies it; durable when it resolves. Only for a file whose other
 * name is about to be removed.
 */
export async function placeLink(from: string, to: string): Promise<void> {
  await rm(to, { force: true })
  try {
    await link(from, to)
  } catch (error) {
    if (!NO_LINKS.has(codeOf(error))) throw error
    return placeCopy(from, to)
  }
  await syncPath(to)
  await syncPath(dirname(to))
}

const BASE = 'appendonly.aof.1.base.rdb'
const CHANGES = 'appendonly.aof.1.incr.aof'
/** An append-only log is a base, which may be a snapshot, and the changes since; the manifest lists both. */
const MANIFEST = `file ${BASE} seq 1 type b\nfile ${CHANGES} seq 1 type i\n`

/**
 * Replaces the data in the directory of a member.
 * @param file is hard-linked where possible, which needs no disk space: it must be a copy that is removed afterwards.
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
  // The note describes the old log, whose files may have the same names.
  await rm(join(dir, NOTE_FILE), { force: true })
  await rm(log, { recursive: true, force: true })
  await rename(next, log)
}

async function adoptAsSnapshot(dir: string, file: string): Promise<void> {
  const next = join(dir, `${SNAPSHOT_FILE}.next`)
  await placeLink(file, next)
  await rename(next, join(dir, SNAPSHOT_FILE))
}
