/** The files of an append-only log, as its manifest names them. */
import { rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readFileIfThere, replaceFile } from '../../base/index.js'
import { LOG_DIRECTORY } from '../engine-files.js'

/** The manifest: which files make up the log, in order. */
export const MANIFEST_FILE = 'appendonly.aof.manifest'

/** The files of a log, in the order in which an engine reads them. */
export interface LogFiles {
  /** The directory that holds them. */
  readonly dir: string
  readonly names: readonly string[]
  /** The file that commands are appended to. */
  readonly last: string | undefined
}

const LINE = /^file (\S+) seq \d+ type ([bi])/gm

/** Reads which files a member's log consists of; undefined when there is no log. */
export async function readLogFiles(memberDir: string): Promise<LogFiles | undefined> {
  const dir = join(memberDir, LOG_DIRECTORY)
  const manifest = await readFileIfThere(join(dir, MANIFEST_FILE))
  if (manifest === undefined) return undefined
  const lines = [...manifest.matchAll(LINE)].map(([, name = '', type = '']) => ({ name, type }))
  return { dir, names: lines.map(({ name }) => name), last: lines.findLast(({ type }) => type === 'i')?.name }
}

/** The sizes of the files of a log, bytes; a file that is not there has none. */
export async function sizesOfLog({ dir, names }: LogFiles): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {}
  for (const name of names) {
    const found = await stat(join(dir, name)).catch(() => undefined)
    if (found) sizes[name] = found.size
  }
  return sizes
}

/** The note, in a member's directory. */
export const NOTE_FILE = 'log-sizes.json'

/** Sizes of files by name, bytes. */
type Sizes = Readonly<Record<string, number>>

/** What is noted of a log. */
export interface LogNote {
  /** When `seen` was true, Unix milliseconds. */
  readonly atMs: number
  /** Identifies the boot of the machine; empty where the system does not say. */
  readonly boot: string
  readonly seen: Sizes
  /** What was seen long enough before to be on the disk by then. */
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

/** Reads the note beside a log; undefined when there is none that can be read. */
export async function readLogNote(memberDir: string): Promise<LogNote | undefined> {
  try {
    const { atMs, boot, seen, durable } = JSON.parse((await readFileIfThere(join(memberDir, NOTE_FILE))) ?? '{}')
    const isNote = Number.isSafeInteger(atMs) && typeof boot === 'string' && isSizes(seen) && isSizes(durable)
    return isNote ? { atMs, boot, seen, durable } : undefined
  } catch {
    // A note of which a power cut has left half says nothing; it is written anew at the next start of the engine.
    return undefined
  }
}

/** The size that a file of a log has to have at least, bytes; 0 when nothing is noted of it. */
export async function leastSize(note: LogNote | undefined, name: string): Promise<number> {
  if (!note) return 0
  const isSameBoot = note.boot !== '' && note.boot === (await thisBoot())
  return (isSameBoot ? note.seen : note.durable)[name] ?? 0
}

/** Notes the sizes of a log that an engine has closed: every byte of them is on the disk. */
export async function noteClosedLog(memberDir: string, atMs: number): Promise<void> {
  const files = await readLogFiles(memberDir)
  if (!files) return
  const seen = await sizesOfLog(files)
  const note: LogNote = { atMs, boot: await thisBoot(), seen, durable: seen }
  await replaceFile(join(memberDir, NOTE_FILE), JSON.stringify(note))
}

/** Notes the sizes of a log while an engine appends to it. */
export class LogNoter {
  readonly #memberDir: string
  #last: Sizes = {}

  constructor(memberDir: string) {
    this.#memberDir = memberDir
  }

  /** Looks at the log; to be called every few seconds. Costs nothing on the disk while nothing is appended. */
  async look(atMs: number): Promise<void> {
    const files = await readLogFiles(this.#memberDir)
    if (!files) return
    const seen = await sizesOfLog(files)
    const before = this.#last
    this.#last = seen
    if (isSame(before, seen)) return
    await this.#write({ atMs, boot: await thisBoot(), seen, durable: durableOf(files, before) })
  }

  /** Without waiting for the disk: a note that is lost or old only asks for less. */
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
