import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, rename, rm, stat } from 'node:fs/promises'
import { basename, join, resolve, sep } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'
import { codeOf, readFileIfThere, tryParseJson } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

/** The format that this version writes and reads. */
export const FORMAT = 1
/** The file that makes a folder a backup. */
export const MANIFEST_FILE = 'manifest.json'
/** The end of the name of a folder that is not a complete backup. */
export const PARTIAL = '.partial'
const PREFIX = 'homeport-'
const DATABASES = 'databases'

const FileSchema = Type.Object({ path: Type.String(), bytes: Type.Integer(), sha256: Type.String() })

const DatabaseSchema = Type.Object({
  databaseId: Type.String(),
  name: Type.String(),
  region: Type.String(),
  persistence: Type.Enum(['append-only', 'snapshot']),
  /** `failed`: its data is not in the backup. */
  state: Type.Enum(['saved', 'failed']),
  /** Why it failed; empty otherwise. */
  problem: Type.String(),
})

const ManifestSchema = Type.Object({
  format: Type.Integer(),
  /** Version of Homeport that made it. */
  version: Type.String(),
  /** The identity of the server's store; absent in backups of older versions. */
  installation: Type.Optional(Type.String()),
  /** Number of the last migration of the store. */
  schema: Type.Integer(),
  /** When the store was copied and when the last file was written, Unix milliseconds. */
  startedAt: Type.Integer(),
  endedAt: Type.Integer(),
  databases: Type.Array(DatabaseSchema),
  files: Type.Array(FileSchema),
})

/** What a backup contains. Sizes in bytes, times in Unix milliseconds, digests in hexadecimal SHA-256. */
export type Manifest = Static<typeof ManifestSchema>
/** A database of a backup. */
export type SavedDatabase = Static<typeof DatabaseSchema>
/** A file of a backup. */
export type SavedFile = Static<typeof FileSchema>

/** A complete backup in a folder of backups. */
export interface ListedBackup {
  readonly name: string
  readonly path: string
  readonly manifest: Manifest
}

/** The name of a backup that begins at this time. Names sort by time. */
export const backupName = (atMs: number): string => `${PREFIX}${new Date(atMs).toISOString().replace(/[:.]/g, '-')}`

/** When the backup of this name was begun, Unix milliseconds; NaN for another name. */
export function timeOfName(name: string): number {
  const time = name.slice(PREFIX.length).replace(/T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z$/, 'T$1:$2:$3.$4Z')
  return name.startsWith(PREFIX) ? Date.parse(time) : Number.NaN
}

/** The path of a database's snapshot in a backup. */
export const snapshotPath = (databaseId: string): string => `${DATABASES}/${databaseId}.rdb`

/** Whether a backup is of this server, as far as it says. */
export const isOf = ({ installation = '' }: Manifest, own: string | undefined): boolean =>
  installation === '' || own === undefined || installation === own

/** Total size of a backup, bytes. */
export const bytesOf = ({ files }: Manifest): number => files.reduce((sum, { bytes }) => sum + bytes, 0)

/** Size and digest of a file of a backup. */
export async function factsOf(folder: string, path: string): Promise<SavedFile> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(join(folder, path)), hash)
  return { path, bytes: (await stat(join(folder, path))).size, sha256: hash.digest('hex') }
}

/** Whether a text is the name of a backup, complete or not. */
export const isBackupName = (name: string): boolean => new RegExp(`^${PREFIX}[\\w-]+$`).test(name)

/** Reads the manifest of a backup. @throws HomeportError `service_backup_unusable`. */
export async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFileIfThere(join(folder, MANIFEST_FILE)).catch((cause: unknown) => {
    throw new HomeportError('service_backup_unusable', { folder, reason: codeOf(cause) }, { cause })
  })
  if (text !== undefined) return parseManifest(folder, text)
  const reason = `it has no ${MANIFEST_FILE}, so it is not a complete backup`
  throw new HomeportError('service_backup_unusable', { folder, reason })
}

/** Reads the text of the manifest of the backup in `folder`. @throws HomeportError `service_backup_unusable`. */
export function parseManifest(folder: string, text: string): Manifest {
  const unusable = (reason: string) => new HomeportError('service_backup_unusable', { folder, reason })
  const found = tryParseJson(text)
  const format: unknown = typeof found === 'object' && found !== null && 'format' in found ? found.format : undefined
  if (typeof format === 'number' && format > FORMAT) throw unusable('a newer version of Homeport made it')
  if (!Value.Check(ManifestSchema, found)) throw unusable(`its ${MANIFEST_FILE} is damaged`)
  const outside = found.files.find(({ path }) => !resolve(folder, path).startsWith(resolve(folder) + sep))
  if (outside) throw unusable(`its ${MANIFEST_FILE} names ${outside.path}, which is outside of the backup`)
  const strange = found.databases.find(
    ({ databaseId, region }) => !/^[\w-]+$/.test(databaseId) || !/^[\w-]+$/.test(region),
  )
  if (strange) throw unusable(`its ${MANIFEST_FILE} names the database ${strange.databaseId}`)
  return found
}

/** Compares every file with its size and digest. @throws HomeportError that names the first file that differs. */
export async function checkFiles(folder: string, { files }: Manifest): Promise<void> {
  for (const { path, bytes, sha256 } of files) {
    const found = await factsOf(folder, path).catch((cause: unknown) => {
      const reason = `its file ${path} cannot be read (${codeOf(cause)})`
      throw new HomeportError('service_backup_unusable', { folder, reason }, { cause })
    })
    if (found.bytes === bytes && found.sha256 === sha256) continue
    const reason = `its file ${path} is damaged: ${found.bytes === bytes ? 'its checksum differs' : `it has ${found.bytes} bytes, but ${bytes} were written`}`
    throw new HomeportError('service_backup_unusable', { folder, reason })
  }
}

/** The complete backups in a folder, newest first. */
export async function listBackups(folder: string): Promise<readonly ListedBackup[]> {
  const names = await readdir(folder).catch((cause: unknown) => {
    throw new HomeportError(
      'service_backup_unusable',
      { folder, reason: `it cannot be read (${codeOf(cause)})` },
      { cause },
    )
  })
  const found: ListedBackup[] = []
  for (const name of names.sort().reverse()) {
    if (!name.startsWith(PREFIX) || name.endsWith(PARTIAL)) continue
    const path = join(folder, name)
    const manifest = await readManifest(path).catch(() => undefined)
    if (manifest) found.push({ name: basename(path), path, manifest })
  }
  return found
}

/**
 * The backups to delete, from a list with the newest first. The backup that was just made (`made`) is always kept, even if
 * the clock was set back.
 */
export const beyondKept = (backups: readonly ListedBackup[], keep: number, made: string): readonly ListedBackup[] =>
  backups.filter(({ name }) => name !== made).slice(keep - 1)

/**
 * Removes all but the newest backups. Each is renamed first, so an interrupted removal leaves no incomplete backup in the
 * list.
 */
export async function keepNewest(folder: string, keep: number, made: string): Promise<void> {
  for (const { path } of beyondKept(await listBackups(folder), keep, made)) {
    await rename(path, `${path}${PARTIAL}`)
    await rm(`${path}${PARTIAL}`, { recursive: true, force: true })
  }
}

/** Removes incomplete backups, also of other servers, that have not changed since a time, Unix milliseconds. */
export async function removePartial(folder: string, beforeMs: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(PREFIX) || !name.endsWith(PARTIAL)) continue
    const path = join(folder, name)
    // A folder that cannot be removed, such as that of another user, must not prevent a new backup.
    if ((await changedAt(path)) < beforeMs) await rm(path, { recursive: true, force: true }).catch(() => undefined)
  }
}

/** When a file was last created in the folder of a backup, Unix milliseconds. */
async function changedAt(path: string): Promise<number> {
  const times = await Promise.all([path, join(path, DATABASES)].map((one) => stat(one).catch(() => undefined)))
  return Math.max(...times.map((one) => one?.mtimeMs ?? 0))
}
