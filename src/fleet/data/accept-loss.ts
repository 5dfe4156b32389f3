/** Accepts the loss of missing or unreadable data, because the owner said so. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '../../base/index.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import type { EngineSpec } from '../types.js'
import { cutLog } from './inspect.js'
import { MANIFEST_FILE, NOTE_FILE, readLogFiles } from './log-files.js'
import { scanLog } from './log-scan.js'
import { type QuarantineSource, quarantineData } from './quarantine-data.js'

const CHANGES = 'appendonly.aof.1.incr.aof'

/**
 * Reduces the data of a member to what is readable: all commands of the log before the damage, or nothing. Everything
 * goes to quarantine first. The engine must not run. Idempotent after a crash.
 */
export async function acceptLoss(
  what: Omit<QuarantineSource, 'reason'>,
  persistence: EngineSpec['persistence'],
): Promise<void> {
  const { memberDir } = what
  const reason = 'The owner of this database has accepted that its data is lost.'
  // Copies, because the log is truncated and appended to.
  await quarantineData({ ...what, reason }, 'copy')
  if (persistence === 'append-only' && (await keepReadable(what))) return
  await mkdir(memberDir, { recursive: true, mode: 0o700 })
  if (persistence === 'append-only') await beginLog(memberDir)
  else await rm(join(memberDir, SNAPSHOT_FILE), { force: true })
  await syncPath(memberDir)
}

/** Truncates the log at the damage. False when that does not help: no log, or other files are damaged. */
async function keepReadable(what: Omit<QuarantineSource, 'reason'>): Promise<boolean> {
  const files = await readLogFiles(what.memberDir)
  if (files?.last === undefined) return false
  const path = join(files.dir, files.last)
  const scan = await scanLog(path).catch(() => undefined)
  if (!scan || scan.kind === 'whole') return false
  await cutLog(what, path, scan.bytes)
  await rm(join(what.memberDir, NOTE_FILE), { force: true })
  return true
}

async function beginLog(memberDir: string): Promise<void> {
  const [next, log] = [join(memberDir, `${LOG_DIRECTORY}.next`), join(memberDir, LOG_DIRECTORY)]
  await rm(next, { recursive: true, force: true })
  await mkdir(next, { mode: 0o700 })
  await writeFile(join(next, CHANGES), '', { mode: 0o600, flush: true })
  await writeFile(join(next, MANIFEST_FILE), `file ${CHANGES} seq 1 type i\n`, { mode: 0o600, flush: true })
  await syncPath(next)
  await rm(join(memberDir, NOTE_FILE), { force: true })
  await rm(log, { recursive: true, force: true })
  await rename(next, log)
}
