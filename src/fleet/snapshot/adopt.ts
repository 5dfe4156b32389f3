/**
 * Makes a snapshot the data of a member whose engine does not run. Every step may be cut short and the whole repeated:
 * the caller that replaces the data repeats it until it is done, and starts no engine before.
 */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '../../base/index.js'
import { NOTE_FILE } from '../data/log-note.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import type { EngineSpec } from '../types.js'
import { placeLink } from './files.js'

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
