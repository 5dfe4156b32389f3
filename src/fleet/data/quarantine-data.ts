/**
 * Keeps data that is about to leave a database although nobody deleted it: damaged files, and the cut-off end of a log.
 * Each becomes a quarantine entry with the layout of a database directory, so it can be adopted:
 *
 * ```
 * data/<region>/   the snapshot, the log, and the note of its sizes; or only the end of a log
 * ```
 */
import { constants, createReadStream, createWriteStream } from 'node:fs'
import { copyFile, link, mkdir, rename, stat } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncPath } from '../../base/index.js'
import { LOG_DIRECTORY, SNAPSHOT_FILE } from '../engine-files.js'
import { NOTE_FILE } from './log-files.js'
import { namesIn, QuarantineFiles, type QuarantineNote } from './quarantine-files.js'

/** What to quarantine, and why. */
export interface QuarantineSource {
  /** `<dataDir>/quarantine`. */
  readonly quarantineDir: string
  readonly databaseId: string
  /** The member's directory. */
  readonly memberDir: string
  /** One sentence for people. */
  readonly reason: string
  readonly atMs: number
}

/**
 * How to keep files. `link`: a hard link, which needs no space, for files that will be removed. `copy`: a copy, for
 * files that will be written to.
 */
export type CopyMode = 'link' | 'copy'

/**
 * Keeps all data of a member whose engine does not run. The data also stays in place.
 * @returns the quarantine entry; undefined if there was no data.
 */
export async function quarantineData(what: QuarantineSource, mode: CopyMode = 'link'): Promise<string | undefined> {
  const { hasData, hasLog, names } = await dataFilesIn(what.memberDir)
  if (!hasData) return undefined
  return fillEntry(what, 'database', async (dir) => {
    if (hasLog) await mkdir(join(dir, LOG_DIRECTORY), { mode: 0o700 })
    for (const name of names) await keepFile(join(what.memberDir, name), join(dir, name), mode)
    if (hasLog) await syncPath(join(dir, LOG_DIRECTORY))
  })
}

/** Size of the data of a member, bytes. */
export async function dataBytesOf(memberDir: string): Promise<number> {
  const { names } = await dataFilesIn(memberDir)
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(memberDir, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

/**
 * The files of the data of a member, relative to its directory. Rejects when they cannot be listed, because there may be
 * data.
 */
async function dataFilesIn(memberDir: string) {
  const present = new Set(await namesIn(memberDir))
  const logFiles = await namesIn(join(memberDir, LOG_DIRECTORY))
  const hasLog = present.has(LOG_DIRECTORY)
  const single = [SNAPSHOT_FILE, NOTE_FILE].filter((name) => present.has(name))
  const names = [...single, ...logFiles.map((name) => join(LOG_DIRECTORY, name))]
  return { hasData: hasLog || present.has(SNAPSHOT_FILE), hasLog, names }
}

/** Copies the end of a file, from a byte offset. @returns the quarantine entry. */
export function quarantineTail(what: QuarantineSource, file: string, fromByte: number): Promise<string> {
  return fillEntry(what, 'tail', async (dir) => {
    const to = createWriteStream(join(dir, `tail-from-${fromByte}.aof`), { mode: 0o600, flush: true })
    await pipeline(createReadStream(file, { start: fromByte }), to)
  })
}

/**
 * The data is renamed last, so an entry is either complete or ignored. A copy that fails is deleted, because it would take
 * the space that it lacked.
 */
async function fillEntry(
  { quarantineDir, databaseId, memberDir, reason, atMs }: QuarantineSource,
  kind: QuarantineNote['kind'],
  fill: (dir: string) => Promise<void>,
): Promise<string> {
  const dataDir = dirname(quarantineDir)
  const note = { kind, databaseId, from: relative(dataDir, memberDir), reason, movedAt: atMs }
  const files = new QuarantineFiles(dataDir)
  const { id, data } = await files.open(note)
  const [part, member] = [`${data}.part`, join(`${data}.part`, basename(memberDir))]
  try {
    await mkdir(member, { recursive: true, mode: 0o700 })
    await fill(member)
    await syncPath(member)
    await syncPath(part)
    await rename(part, data)
  } catch (error) {
    await files.delete(id).catch(() => undefined)
    throw error
  }
  await syncPath(dirname(data))
  return id
}

/** Copies where the file system has no hard links. */
async function keepFile(from: string, to: string, mode: CopyMode): Promise<void> {
  if (mode === 'copy') await copyDurably(from, to)
  else await link(from, to).catch(() => copyDurably(from, to))
}

async function copyDurably(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_FICLONE)
  await syncPath(to)
}
