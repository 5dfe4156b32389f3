/**
 * Damage of the data of a database: checks its files before an engine reads them, diagnoses why an engine refused them,
 * repairs the end of a log, and accepts a loss when the owner says so.
 */
import { mkdir, open, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf, syncPath } from '../../base/index.js'
import { failureOf, LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import type { DataReport, EngineSpec, UnservableReport } from '../types.js'
import {
  type LogFiles,
  type LogNote,
  MANIFEST_FILE,
  minSize,
  NOTE_FILE,
  readLogFiles,
  readLogNote,
  sizesOfLog,
} from './log-files.js'
import { scanLog } from './log-scan.js'
import { type QuarantineSource, quarantineData, quarantineTail } from './quarantine-data.js'

/** Thrown for data on which no engine is started. */
export class UnservableData extends Error {
  readonly report: UnservableReport

  constructor(report: UnservableReport) {
    super(report.what)
    this.report = report
  }
}

const BASE = /\.base\.(?:rdb|aof)$/
const WHOLE: DataReport = { kind: 'whole' }

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return false
    throw error
  }
}

/**
 * Checks the files of a database that must have data.
 * @throws UnservableData when an engine would find nothing and start empty.
 */
export async function inspectData(memberDir: string, spec: EngineSpec): Promise<DataReport> {
  const note = await readLogNote(memberDir)
  const noted = note ? { lastWholeAtMs: note.atMs } : {}
  if (!(await exists(memberDir)))
    throw new UnservableData({ kind: 'missing', what: 'its data directory is missing', ...noted })
  if (spec.persistence === 'snapshot') {
    const isLost = (await minSize(note, SNAPSHOT_FILE)) > 0 && !(await exists(join(memberDir, SNAPSHOT_FILE)))
    if (isLost) throw new UnservableData({ kind: 'missing', what: 'its snapshot is missing', ...noted })
    return WHOLE
  }
  const files = await readLogFiles(memberDir)
  if (!files) throw new UnservableData({ kind: 'missing', what: 'its log is missing', ...noted })
  return inspectSizes(files, note)
}

async function inspectSizes(files: LogFiles, note: LogNote | undefined): Promise<DataReport> {
  const present = await sizesOfLog(files)
  const noted = note ? { lastWholeAtMs: note.atMs } : {}
  for (const name of files.names) {
    const [least, found] = [await minSize(note, name), present[name]]
    if (found === undefined) {
      throw new UnservableData({ kind: 'missing', what: `the file ${name} of its log is missing`, ...noted })
    }
    if (found === 0 && least > 0) {
      const what = `its log is empty, but had ${least} bytes`
      throw new UnservableData({ kind: 'missing', what, ...noted })
    }
    // An engine writes a base file once under a unique name. The engine itself reports one that is damaged.
    if (BASE.test(name) && least > 0 && found !== least) {
      const what = `the file ${name} of its log was replaced or cut: it had ${least} bytes, and has ${found}`
      throw new UnservableData({ kind: 'unreadable', what, ...noted })
    }
    if (name !== files.last || found >= least) continue
    return { kind: 'cut', what: missingText(least, found), ...noted }
  }
  return WHOLE
}

const missingText = (least: number, found: number): string =>
  `the last ${least - found} of ${least} bytes of its log are missing`

/** Messages of an engine about damaged data, not about data of another engine. */
const DAMAGED = [
  /(?:Bad file format|Unexpected end of file|Unknown command '.*'|Unrecoverable error) reading the append only file/,
  /Error reading the RDB (?:base file|preamble)/,
  /Wrong RDB checksum|Internal error in RDB reading|Terminating server after rdb file reading failure/,
  /FATAL AOF MANIFEST FILE ERROR|Found an empty AOF manifest|Error opening the append only file/i,
]
const CUT = /Unexpected end of file reading the append only file/

/** Result of a diagnosis; undefined when the engine did not end because of its data. */
export type Refusal =
  /** The end of the log was no whole command and was cut off into quarantine: the engine can start again. */
  | { readonly kind: 'repaired'; readonly report: DataReport; readonly cutBytes: number; readonly keptIn: string }
  | { readonly kind: 'unreadable'; readonly report: UnservableReport }

/**
 * Diagnoses why an engine ended at its start. After a crash, a log may end in the middle of a command that the engine had
 * not acknowledged. The log is cut before that command, and the rest is kept in quarantine. If the cut would lose data that
 * was recorded as durable, a person must decide.
 */
export async function diagnoseRefusal(
  output: string,
  what: Omit<QuarantineSource, 'reason'>,
): Promise<Refusal | undefined> {
  // Data of another engine, and a full disk, are reported separately.
  const isKnown = failureOf(output, '').reason !== ''
  if (isKnown || !DAMAGED.some((pattern) => pattern.test(output))) return undefined
  const files = await readLogFiles(what.memberDir)
  if (files?.last === undefined) return unreadable('the engine cannot read its data')
  const path = join(files.dir, files.last)
  const scan = await scanLog(path).catch(() => undefined)
  if (!scan || scan.kind === 'whole') return unreadable('the engine cannot read its data')
  const location = `its log cannot be read from byte ${scan.bytes} of ${scan.size} on`
  const note = await readLogNote(what.memberDir)
  const least = await minSize(note, files.last)
  const isCutOnly = scan.kind === 'cut' && CUT.test(output) && (scan.bytes >= least || scan.size < least)
  if (!isCutOnly) return unreadable(location, note)
  const keptIn = await cutLog(what, path, scan.bytes)
  // The note is outdated; it is rewritten when the engine answers.
  await rm(join(what.memberDir, NOTE_FILE), { force: true })
  const cutBytes = scan.size - scan.bytes
  if (scan.bytes >= least) return { kind: 'repaired', report: WHOLE, cutBytes, keptIn }
  const noted = note ? { lastWholeAtMs: note.atMs } : {}
  const report: DataReport = { kind: 'cut', what: missingText(least, scan.bytes), ...noted, keptIn }
  return { kind: 'repaired', report, cutBytes, keptIn }
}

function unreadable(what: string, note?: LogNote): Refusal {
  return { kind: 'unreadable', report: { kind: 'unreadable', what, ...(note && { lastWholeAtMs: note.atMs }) } }
}

/** Truncates a log after its last whole command, and keeps the rest. @returns the quarantine entry. */
async function cutLog(what: Omit<QuarantineSource, 'reason'>, path: string, bytes: number): Promise<string> {
  const reason = 'The end of the log of this database cannot be read as commands, and was cut off.'
  const kept = await quarantineTail({ ...what, reason }, path, bytes)
  const file = await open(path, 'r+')
  try {
    await file.truncate(bytes)
  } finally {
    await file.close()
  }
  await syncPath(path)
  return kept
}

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
  else for (const name of [NOTE_FILE, SNAPSHOT_FILE]) await rm(join(memberDir, name), { force: true })
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
