/**
 * The files of an append-only log, as its manifest lists them, and a note of their sizes beside it. Only the note shows
 * that a log was truncated: an engine may read the rest without complaint. For a database without a log, only the note
 * shows that it had a snapshot.
 *
 * An engine writes a command to its log before it answers, and syncs the log every second. So a file can be shorter
 * than recorded only if the machine itself went down, and then not shorter than it was some seconds earlier. The note
 * has both sizes and the boot id of the machine.
 */
import { rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readFileIfThere, replaceFile } from '../../base/index.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import type { EngineSpec } from '../types.js'

/** The manifest, which lists the files of the log in order. */
export const MANIFEST_FILE = 'appendonly.aof.manifest'

/** The files of a log in the order an engine reads them. */
export interface LogFiles {
  /** The directory that holds them. */
  readonly dir: string
  readonly names: readonly string[]
  /** The file that the engine appends to. */
  readonly last: string | undefined
}

const LINE = /^file (\S+) seq \d+ type ([bi])/gm

/** Reads the manifest of a log; undefined without a log. */
export async function readLogFiles(memberDir: string): Promise<LogFiles | undefined> {
  const dir = join(memberDir, LOG_DIRECTORY)
  const manifest = await readFileIfThere(join(dir, MANIFEST_FILE))
  if (manifest === undefined) return undefined
  const lines = [...manifest.matchAll(LINE)].map(([, name = '', type = '']) => ({ name, type }))
  return { dir, names: lines.map(({ name }) => name), last: lines.findLast(({ type }) => type === 'i')?.name }
}

type Persistence = EngineSpec['persistence']

/** The files whose sizes are noted; undefined without a log where there should be one. */
const notedFiles = async (memberDir: string, persistence: Persistence): Promise<LogFiles | undefined> =>
  persistence === 'append-only' ? readLogFiles(memberDir) : { dir: memberDir, names: [SNAPSHOT_FILE], last: undefined }

/** Sizes of the files of a log, bytes; missing files are left out. */
export async function sizesOfLog({ dir, names }: LogFiles): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {}
  for (const name of names) {
    const found = await stat(join(dir, name)).catch(() => undefined)
    if (found) sizes[name] = found.size
  }
  return sizes
}

/** File name of the note in the directory of a member. */
export const NOTE_FILE = 'log-sizes.json'

/** Sizes of files by name, bytes. */
type Sizes = Readonly<Record<string, number>>

/** Recorded sizes of a log. */
export interface LogNote {
  /** When `seen` was measured, Unix milliseconds. */
  readonly atMs: number
  /** Identifies the boot of the machine; empty where the system does not say. */
  readonly boot: string
  readonly seen: Sizes
  /** Sizes measured long enough before to have been synced since. */
  readonly durable: Sizes
}

let bootId: Promise<string> | undefined

/** Identifies the boot of this machine; empty where the system does not say. */
function thisBoot(): Promise<string> {
  bootId ??= readFileIfThere('/proc/sys/kernel/random/boot_id').then(
    (text) => text?.trim() ?? '',
    () => '',
  )
  return bootId
}

const isSizes = (value: unknown): value is Sizes =>
  typeof value === 'object' && value !== null && Object.values(value).every((size) => Number.isSafeInteger(size))

/** Reads the note of a log; undefined if it is missing or invalid. */
export async function readLogNote(memberDir: string): Promise<LogNote | undefined> {
  try {
    const { atMs, boot, seen, durable } = JSON.parse((await readFileIfThere(join(memberDir, NOTE_FILE))) ?? '{}')
    const isNote = Number.isSafeInteger(atMs) && typeof boot === 'string' && isSizes(seen) && isSizes(durable)
    return isNote ? { atMs, boot, seen, durable } : undefined
  } catch {
    // A power cut may leave half a note. It is rewritten when the engine starts.
    return undefined
  }
}

/** Minimum size a file of a log must have, bytes; 0 if none is recorded. */
export async function minSize(note: LogNote | undefined, name: string): Promise<number> {
  if (!note) return 0
  const isSameBoot = note.boot !== '' && note.boot === (await thisBoot())
  return (isSameBoot ? note.seen : note.durable)[name] ?? 0
}

/** Records the sizes of data that an engine has closed and synced. */
export async function recordClosedData(memberDir: string, persistence: Persistence, atMs: number): Promise<void> {
  const files = await notedFiles(memberDir, persistence)
  if (!files) return
  const seen = await sizesOfLog(files)
  const note: LogNote = { atMs, boot: await thisBoot(), seen, durable: seen }
  await replaceFile(join(memberDir, NOTE_FILE), JSON.stringify(note))
}

/** Sizes of the files of a log. */
export interface MeasuredData {
  readonly files: LogFiles
  readonly sizes: Sizes
}

/** Records the sizes of data while an engine writes it. */
export class DataSizeRecorder {
  readonly #memberDir: string
  readonly #persistence: Persistence
  #last: Sizes = {}

  constructor(memberDir: string, persistence: Persistence) {
    this.#memberDir = memberDir
    this.#persistence = persistence
  }

  /** Measures the data; undefined when the log is missing. */
  async measure(): Promise<MeasuredData | undefined> {
    const files = await notedFiles(this.#memberDir, this.#persistence)
    return files && { files, sizes: await sizesOfLog(files) }
  }

  /**
   * Records what was measured, at a moment at which the engine wrote nothing: while it writes, a size may lie within a
   * command that a kill leaves incomplete. Writes nothing while the sizes stay the same.
   */
  async record({ files, sizes: seen }: MeasuredData, atMs: number): Promise<void> {
    const before = this.#last
    this.#last = seen
    if (isSame(before, seen)) return
    await this.#write({ atMs, boot: await thisBoot(), seen, durable: durableOf(files, before) })
  }

  /** Not synced: a lost or old note only weakens the check. */
  async #write(note: LogNote): Promise<void> {
    const path = join(this.#memberDir, NOTE_FILE)
    await writeFile(`${path}.next`, JSON.stringify(note), { mode: 0o600 })
    await rename(`${path}.next`, path)
  }
}

function durableOf({ names }: LogFiles, before: Sizes): Sizes {
  return Object.fromEntries(Object.entries(before).filter(([name]) => names.includes(name)))
}

function isSame(one: Sizes, other: Sizes): boolean {
  const names = Object.keys(other)
  return names.length === Object.keys(one).length && names.every((name) => one[name] === other[name])
}
