/**
 * The files of the quarantine: files unknown to the store, and data that left a database although nobody deleted it. All
 * code that quarantines something makes an entry here, so that entries are listed, adopted and pruned alike.
 *
 * ```
 * <dataDir>/quarantine/<time>-<name>-<4 digits>/note.json    what it is, where it was, why and when it was moved here
 *                                                data        the directory of a database, the file of a backup, the end
 *                                                            of a log, or the write-ahead log of the store, which the
 *                                                            store itself moves here (`store/sqlite/write-ahead-log.ts`)
 * ```
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { codeOf, readFileIfThere, replaceFile, syncPath, tryParseJson } from '../../base/index.js'

const NoteSchema = Type.Object({
  kind: Type.Enum(['database', 'backup', 'tail', 'store-log']),
  databaseId: Type.String(),
  backupId: Type.Optional(Type.String()),
  /** Where it was, relative to the data directory. */
  from: Type.String(),
  reason: Type.String(),
  /** Unix milliseconds. */
  movedAt: Type.Integer(),
})

/** The note of an entry. */
export type QuarantineNote = Static<typeof NoteSchema>

/** An entry of the quarantine. */
export interface QuarantineEntry extends QuarantineNote {
  /** The name of its directory. */
  readonly id: string
}

const MOVED = 'The database has moved to the node'

/** The reason in the note when the database of the quarantined files is now served by another node. */
export const movedReason = (node: string): string => `${MOVED} ${node}.`

/** Whether an entry has such files. Nobody needs to act, and the files must not be adopted. */
export const hasMoved = ({ reason }: QuarantineEntry): boolean => reason.startsWith(MOVED)

/** An entry whose data is not there yet. */
export interface OpenEntry {
  readonly id: string
  /** Where to put the data; nothing is there yet. */
  readonly data: string
}

const NOTE = 'note.json'
const DATA = 'data'
/** Safe as a directory name. */
const ENTRY_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,199}$/

/** Reads and writes the entries in `quarantine/`. */
export class QuarantineFiles {
  readonly #dataDir: string
  readonly #root: string

  constructor(dataDir: string) {
    this.#dataDir = dataDir
    this.#root = join(dataDir, 'quarantine')
  }

  /**
   * Moves a file or directory into quarantine. The note is written first: an entry without data was never moved. Rejects
   * when it cannot be moved; then it stays, and there is no entry.
   * @param path of the data, on the same file system.
   */
  async take(path: string, what: Omit<QuarantineNote, 'from'>): Promise<QuarantineEntry> {
    const note = { ...what, from: relative(this.#dataDir, path) }
    const { id, data } = await this.open(note)
    try {
      await rename(path, data)
    } catch (error) {
      await this.delete(id).catch(() => undefined)
      throw error
    }
    await syncPath(dirname(data))
    await syncPath(dirname(path))
    return { ...note, id }
  }

  /** Makes an entry with its note. It does not count until `data` exists. */
  async open(note: QuarantineNote): Promise<OpenEntry> {
    const time = new Date(note.movedAt).toISOString().replace(/[-:.]/g, '')
    const name = (note.backupId ?? note.databaseId).replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 80)
    const id = `${time}-${name}-${randomBytes(2).toString('hex')}`
    const dir = join(this.#root, id)
    await mkdir(dir, { recursive: true, mode: 0o700 })
    try {
      await replaceFile(join(dir, NOTE), `${JSON.stringify(note, null, 2)}\n`)
    } catch (error) {
      await this.delete(id).catch(() => undefined)
      throw error
    }
    await syncPath(this.#root)
    return { id, data: join(dir, DATA) }
  }

  /** Path of the data of an entry. */
  dataOf(id: string): string {
    return join(this.#root, id, DATA)
  }

  /** All entries with data, oldest first. If a note cannot be read, the entry is described from its place. */
  async list(): Promise<readonly QuarantineEntry[]> {
    const entries: QuarantineEntry[] = []
    for (const id of (await namesIn(this.#root)).filter((name) => ENTRY_ID.test(name)).sort()) {
      const found = await stat(this.dataOf(id)).catch(() => undefined)
      if (!found) continue
      const text = await readFileIfThere(join(this.#root, id, NOTE)).catch(() => undefined)
      const note = tryParseJson(text ?? '')
      const unknown = { databaseId: id, from: 'unknown', reason: 'its note cannot be read', movedAt: found.ctimeMs }
      const kind = found.isDirectory() ? ('database' as const) : ('backup' as const)
      entries.push({ ...(Value.Check(NoteSchema, note) ? note : { ...unknown, kind }), id })
    }
    return entries
  }

  /** Finds an entry by id. */
  async find(id: string): Promise<QuarantineEntry | undefined> {
    return (await this.list()).find((entry) => entry.id === id)
  }

  /** Moves the data of an entry to a free path; the note stays until `delete`. */
  async restore(id: string, path: string): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    if (await stat(path).catch(() => undefined)) throw new Error(`${basename(path)} exists already`)
    await rename(this.dataOf(id), path)
    await syncPath(dirname(path))
    await syncPath(join(this.#root, id))
  }

  /** Undoes `restore`. */
  async undoRestore(id: string, path: string): Promise<void> {
    await rename(path, this.dataOf(id))
    await syncPath(join(this.#root, id))
  }

  /** Deletes an entry with its data. */
  async delete(id: string): Promise<void> {
    await rm(join(this.#root, id), { recursive: true, force: true })
  }

  /** Deletes entries older than a time. @returns their ids. */
  async prune(movedBefore: number): Promise<readonly string[]> {
    const old = (await this.list()).filter(({ movedAt }) => movedAt < movedBefore).map(({ id }) => id)
    for (const id of old) await this.delete(id)
    return old
  }

  /** Deletes notes whose data was never moved. Only at a start: later, an entry may be about to get its data. */
  async deleteUnfilled(): Promise<void> {
    const filled = new Set((await this.list()).map(({ id }) => id))
    const unfilled = (await namesIn(this.#root)).filter((name) => ENTRY_ID.test(name) && !filled.has(name))
    for (const id of unfilled) await this.#deleteNote(id)
  }

  /**
   * Deletes an entry that has only a note, and perhaps a copy that a crash interrupted. Other files were put there by a
   * person, and stay.
   */
  async #deleteNote(id: string): Promise<void> {
    const dir = join(this.#root, id)
    const isNoteAlone = (await namesIn(dir)).every((name) => name === NOTE || name === `${DATA}.part`)
    if (isNoteAlone) await this.delete(id)
  }
}

/** The names in a directory; none if it does not exist. */
export async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}
