/**
 * Keeps data that is about to leave a database although nobody has deleted it: damaged files, and the end of a log that
 * was cut.
 *
 * ```
 * <dataDir>/quarantine/<time>-<databaseId>-<4 letters>/note.json   what it is, and why it is here
 *                                                      ...         the files
 * ```
 */
import { createReadStream, createWriteStream } from 'node:fs'
import { cp, link, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { randomSecret, syncPath } from '../../base/index.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import { NOTE_FILE } from './log-note.js'

/** What is set aside, and why. */
export interface SetAside {
  /** `<dataDir>/quarantine`. */
  readonly quarantineDir: string
  readonly databaseId: string
  /** The member's directory. */
  readonly memberDir: string
  /** One sentence for people. */
  readonly reason: string
  readonly atMs: number
}

const SUFFIX_CHARACTERS = 4

/** Makes the directory for what is set aside, with its note. @returns the directory. */
async function openEntry({ quarantineDir, databaseId, memberDir, reason, atMs }: SetAside): Promise<string> {
  const time = new Date(atMs).toISOString().replace(/[-:]|\.\d+/g, '')
  const dir = join(quarantineDir, `${time}-${databaseId}-${randomSecret(12).slice(0, SUFFIX_CHARACTERS)}`)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const note = { kind: 'database-data', database_id: databaseId, from: memberDir, reason, set_aside_at: atMs }
  await writeFile(join(dir, 'note.json'), `${JSON.stringify(note, undefined, 2)}\n`, { mode: 0o600, flush: true })
  return dir
}

async function makeDurable(dir: string): Promise<void> {
  await syncPath(dir)
  await syncPath(dirname(dir))
}

/** A second name needs no room; where the file system has none, a copy. */
async function keepFile(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => cp(from, to))
}

/**
 * Sets all data of a member aside, of which the engine does not run. The data also stays where it is: whoever replaces
 * it afterwards takes those names away.
 * @returns the directory; undefined when there was nothing.
 */
export async function setDataAside(what: SetAside): Promise<string | undefined> {
  const logDir = join(what.memberDir, LOG_DIRECTORY)
  const names = [
    ...[SNAPSHOT_FILE, NOTE_FILE].map((name) => ({ from: join(what.memberDir, name), name })),
    ...(await readdir(logDir).catch(() => [])).map((name) => ({ from: join(logDir, name), name })),
  ]
  const present = new Set(await readdir(what.memberDir).catch(() => []))
  if (!present.has(LOG_DIRECTORY) && !present.has(SNAPSHOT_FILE)) return undefined
  const dir = await openEntry(what)
  for (const { from, name } of names) {
    const isThere = dirname(from) === logDir || present.has(name)
    if (isThere) await keepFile(from, join(dir, name))
  }
  await makeDurable(dir)
  return dir
}

/** Copies the end of a file, from a byte on, aside. @returns the directory. */
export async function setTailAside(what: SetAside, file: string, fromByte: number): Promise<string> {
  const dir = await openEntry(what)
  const to = join(dir, `tail-from-${fromByte}.aof`)
  await pipeline(createReadStream(file, { start: fromByte }), createWriteStream(to, { mode: 0o600, flush: true }))
  await makeDurable(dir)
  return dir
}
