/**
 * The files of backups.
 *
 * ```
 * <dataDir>/backups/<databaseId>/<backupId>.rdb   a backup; written once, never changed
 *                                <backupId>.upload  an uploaded file during its import; never a backup
 *                                restore.rdb      the data being restored into this database, of any database's backup
 * ```
 *
 * A row is committed before its file exists. The row of a deleted backup becomes one of `deleted_backups` until the file is
 * deleted, too. So if a file has neither row, the store has lost its row: the next start moves the file into quarantine.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rm, rmdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { codeOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { placeCopy } from '../../fleet/index.js'

const STAGED = 'restore.rdb'
const EXTENSION = '.rdb'
/** Extensions of files that exist only while their content arrives. */
const ARRIVING = ['.upload', '.download', '.part']
/** Length of the magic of an RDB file: `REDIS0012`, `VALKEY080`. */
const FORMAT_BYTES = 9

/** A backup by its ids. */
export interface BackupName {
  readonly database_id: string
  readonly backup_id: string
}

/** Size and digest of a file, to recognise changes later. */
export interface FileFacts {
  readonly sizeBytes: number
  readonly sha256: string
}

/** The files of all backups. */
export class BackupFiles {
  readonly #root: string

  constructor(dataDir: string) {
    this.#root = join(dataDir, 'backups')
  }

  /** The path of a backup's file; creates its directory. */
  async prepare({ database_id, backup_id }: BackupName): Promise<string> {
    await mkdir(join(this.#root, database_id), { recursive: true, mode: 0o700 })
    return this.path({ database_id, backup_id })
  }

  /** The path of a backup's file. */
  path({ database_id, backup_id }: BackupName): string {
    return join(this.#root, database_id, `${backup_id}${EXTENSION}`)
  }

  /** The path for an uploaded file that becomes this backup; creates its directory. */
  async prepareUpload(backup: BackupName): Promise<string> {
    return (await this.prepare(backup)).replace(/rdb$/, 'upload')
  }

  /** Reads the whole file of a backup and computes its size and digest. */
  facts(backup: BackupName): Promise<FileFacts> {
    return factsOf(this.path(backup))
  }

  /** Copies a backup for the database that it is restored into, so that the backup may be deleted meanwhile. */
  async stage(backup: BackupName, databaseId: string): Promise<void> {
    await mkdir(join(this.#root, databaseId), { recursive: true, mode: 0o700 })
    await placeCopy(this.path(backup), this.staged(databaseId))
  }

  /** The path of the staged file of a database. */
  staged(databaseId: string): string {
    return join(this.#root, databaseId, STAGED)
  }

  /** Deletes the staged file of a database. */
  async unstage(databaseId: string): Promise<void> {
    await rm(this.staged(databaseId), { force: true })
  }

  /** Whether the file of a backup is on this disk. */
  async has(backup: BackupName): Promise<boolean> {
    return (await stat(this.path(backup)).catch(() => undefined)) !== undefined
  }

  /** Whether the file of a backup may be on this disk. Only a missing file counts as none, not one that cannot be read. */
  async mayHave(backup: BackupName): Promise<boolean> {
    try {
      await stat(this.path(backup))
      return true
    } catch (error) {
      return codeOf(error) !== 'ENOENT'
    }
  }

  /** Deletes the file of a backup, if it exists. */
  async remove(backup: BackupName): Promise<void> {
    await rm(this.path(backup), { force: true })
  }

  /** Deletes the files of all backups of a database. */
  async removeAll(databaseId: string): Promise<void> {
    await rm(join(this.#root, databaseId), { recursive: true, force: true })
  }

  /**
   * Deletes staged files, files of failed and deleted backups, and files that did not arrive completely. Returns the files
   * that look like backups and are not known; these are left as they are.
   */
  async sweep(known: readonly (BackupName & { readonly state: string })[]): Promise<readonly BackupName[]> {
    const states = new Map(known.map((backup) => [this.path(backup), backup.state]))
    const unknown: BackupName[] = []
    for (const databaseId of await namesIn(this.#root)) {
      const dir = join(this.#root, databaseId)
      for (const name of await namesIn(dir)) {
        const state = states.get(join(dir, name))
        const isLeft =
          state === 'failed' || state === 'deleted' || ARRIVING.some((extension) => name.endsWith(extension))
        if (name === STAGED || isLeft) await rm(join(dir, name), { force: true })
        else if (state === undefined && name.endsWith(EXTENSION)) {
          unknown.push({ database_id: databaseId, backup_id: name.slice(0, -EXTENSION.length) })
        }
      }
      // Fails, as intended, unless the directory is empty.
      await rmdir(dir).catch(() => undefined)
    }
    return unknown
  }
}

/** Reads a whole file and computes its size and digest. */
export async function factsOf(path: string): Promise<FileFacts> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { sizeBytes: (await stat(path)).size, sha256: hash.digest('hex') }
}

/** The RDB magic of a file: engine and format version, which decide which engines can read it. */
export async function formatOf(path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(FORMAT_BYTES), 0, FORMAT_BYTES, 0)
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await file.close()
  }
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/**
 * The file of a backup as a stream that ends only when its digest matches. The last chunk is held back until the digest
 * is known, so the download of a damaged file breaks off instead of looking complete.
 * @throws HomeportError `snapshot_unusable` when the file is missing or has another length.
 */
export async function verifiedFile(path: string, facts: FileFacts): Promise<Readable> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new HomeportError('snapshot_unusable', { reason: 'its file cannot be read' }, { cause })
  })
  if (!found.isFile() || found.size !== facts.sizeBytes)
    throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
  return Readable.from(wholeFile(path, facts), { objectMode: false })
}

async function* wholeFile(path: string, { sha256 }: FileFacts): AsyncGenerator<Buffer> {
  const hash = createHash('sha256')
  let held: Buffer | undefined
  for await (const chunk of createReadStream(path)) {
    if (held) yield held
    held = chunk as Buffer
    hash.update(held)
  }
  if (hash.digest('hex') !== sha256)
    throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
  if (held) yield held
}
