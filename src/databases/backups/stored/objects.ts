import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { type Static, Type } from 'typebox'
import { codeOf, syncPath } from '../../../base/index.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import { compileChecker } from '../../../http/index.js'
import { type BackupKeys, type ObjectStorage, seal, sealedBytes, unseal } from '../../../objects/index.js'
import type { DueBackup } from '../../transactions/backup-objects.js'
import type { BackupDeps } from '../deps.js'
import type { BackupFiles, BackupName } from '../files.js'

/** What an object says of its backup, so that a server that never knew it can restore it. */
const FactsSchema = Type.Object({
  version: Type.Literal(1),
  database_id: Type.String(),
  backup_id: Type.String(),
  database_name: Type.String(),
  name: Type.String(),
  kind: Type.String(),
  created_at: Type.Integer(),
  size_bytes: Type.Integer(),
  key_count: Type.Integer(),
  data_bytes: Type.Integer(),
  sha256: Type.String(),
})

/** What an object says of its backup. */
export type ObjectFacts = Static<typeof FactsSchema>

/** Codes of errors that say nothing about a file: this process has too many files open, or too little memory. */
const OUT_OF_RESOURCES = new Set(['EMFILE', 'ENFILE', 'ENOMEM'])
const isFacts = compileChecker(FactsSchema, 'body')
const FOLDER = 'databases/'
const LENGTH_BYTES = 4
const MAX_FACTS_LENGTH = 16 * 1024
const SAFE_ID = /^[A-Za-z0-9_-]{1,100}$/

/** The key of a backup's object. */
export const objectKey = ({ database_id, backup_id }: BackupName): string => `${FOLDER}${database_id}/${backup_id}`

/** An object that is named like a backup. */
export interface FoundObject extends BackupName {
  readonly sizeBytes: number
}

/**
 * Backups as objects: the length of the facts, the facts as JSON, then the RDB file; all of it sealed under the name of the
 * object.
 */
export class BackupObjects {
  readonly #storage: ObjectStorage
  readonly #keys: BackupKeys
  readonly #files: BackupFiles

  constructor(storage: ObjectStorage, keys: BackupKeys, files: BackupFiles) {
    this.#storage = storage
    this.#keys = keys
    this.#files = files
  }

  /** The place, for people. */
  get place(): string {
    return this.#storage.place
  }

  /** @throws HomeportError that says what is wrong with the storage or its options. */
  check(): Promise<void> {
    return this.#storage.check()
  }

  /**
   * Uploads the file of a backup, reads it back and compares it with the digest of the backup.
   * @returns the size of the object.
   * @throws HomeportError `snapshot_unusable` when the file itself has changed, `object_storage_failed` otherwise.
   */
  async upload(backup: DueBackup, signal: AbortSignal): Promise<number> {
    const facts = factsOf(backup)
    const found = await this.#files.facts(backup).catch((cause: unknown) => {
      if (OUT_OF_RESOURCES.has(codeOf(cause))) throw cause
      throw new HomeportError('snapshot_unusable', { reason: 'its file cannot be read' }, { cause })
    })
    if (found.sha256 !== backup.sha256) {
      throw new HomeportError('snapshot_unusable', { reason: 'its file has changed since it was made' })
    }
    const head = Buffer.from(JSON.stringify(facts))
    const size = sealedBytes(LENGTH_BYTES + head.length + backup.size_bytes)
    const key = objectKey(backup)
    await this.#storage.put(key, seal(content(head, this.#files.path(backup)), this.#keys.current, key), size, signal)
    await this.#read(backup, backup.sha256, undefined, signal).catch((error: unknown) => {
      if (!(error instanceof HomeportError) || error.code === 'object_storage_failed') throw error
      const reason = `it returns other data than was uploaded (${error.message})`
      throw new HomeportError('object_storage_failed', { place: this.place, reason }, { cause: error })
    })
    return size
  }

  /**
   * Downloads an object to a path.
   * @param sha256 the required digest of the file; undefined: the one that the object itself states.
   * @throws HomeportError `sealed_unusable`, `sealed_key_missing`, `object_missing`, `object_storage_failed`; then no file
   * is left.
   */
  async download(
    backup: BackupName,
    path: string,
    sha256: string | undefined,
    signal: AbortSignal,
  ): Promise<ObjectFacts> {
    const part = `${path}.download`
    const file = await open(part, 'w', 0o600)
    try {
      const facts = await this.#read(backup, sha256, (chunk) => file.writeFile(chunk), signal)
      await file.sync()
      await file.close()
      await rename(part, path)
      await syncPath(path)
      return facts
    } catch (error) {
      await file.close().catch(() => undefined)
      await rm(part, { force: true })
      throw error
    }
  }

  /** What an object says of its backup, without reading all of it. */
  async facts(backup: BackupName): Promise<ObjectFacts> {
    for await (const { facts } of this.#parts(backup)) return facts
    throw unusable('it is empty')
  }

  /** Deletes an object, if it exists, and the parts of an upload that was not completed. */
  async remove(backup: BackupName, signal: AbortSignal): Promise<void> {
    const key = objectKey(backup)
    await this.#storage.remove(key, signal)
    // A storage without this request, or one that refuses it, must not keep the row of the object for good.
    await this.#storage.abortUploads(key, (found) => found === key, signal).catch(() => undefined)
  }

  /** The objects that are named like backups; of one database, or of all. */
  async *list(databaseId: string | undefined): AsyncGenerator<FoundObject> {
    if (databaseId !== undefined && !SAFE_ID.test(databaseId)) return
    const folder = databaseId === undefined ? FOLDER : `${FOLDER}${databaseId}/`
    for await (const { key, sizeBytes } of this.#storage.list(folder)) {
      const [database_id = '', backup_id = '', ...more] = key.slice(FOLDER.length).split('/')
      if (more.length === 0 && SAFE_ID.test(database_id) && SAFE_ID.test(backup_id)) {
        yield { database_id, backup_id, sizeBytes }
      }
    }
  }

  /** Closes idle connections. */
  close(): Promise<void> {
    return this.#storage.close()
  }

  async #read(
    backup: BackupName,
    sha256: string | undefined,
    write: ((chunk: Buffer) => Promise<void>) | undefined,
    signal: AbortSignal,
  ): Promise<ObjectFacts> {
    const hash = createHash('sha256')
    let found: ObjectFacts | undefined
    for await (const { facts, chunk } of this.#parts(backup, signal)) {
      found = facts
      hash.update(chunk)
      await write?.(chunk)
    }
    if (!found) throw unusable('it is empty')
    const digest = hash.digest('hex')
    if (digest !== found.sha256 || (sha256 !== undefined && digest !== sha256)) throw unusable('it is another backup')
    return found
  }

  async *#parts(backup: BackupName, signal?: AbortSignal): AsyncGenerator<{ facts: ObjectFacts; chunk: Buffer }> {
    const key = objectKey(backup)
    let facts: ObjectFacts | undefined
    let head = Buffer.alloc(0)
    for await (const chunk of unseal(this.#storage.get(key, signal), this.#keys, key)) {
      if (facts) {
        yield { facts, chunk }
        continue
      }
      head = Buffer.concat([head, chunk])
      const length = head.length < LENGTH_BYTES ? undefined : head.readUInt32BE(0)
      if (length !== undefined && length > MAX_FACTS_LENGTH) throw unusable('its header is too long')
      if (length === undefined || head.length < LENGTH_BYTES + length) continue
      facts = parseFacts(head.subarray(LENGTH_BYTES, LENGTH_BYTES + length))
      yield { facts, chunk: head.subarray(LENGTH_BYTES + length) }
    }
  }
}

/** The objects, keys and retention that uploads need; undefined without object storage. */
export function objectsOf({ objectStorage, files }: Pick<BackupDeps, 'objectStorage' | 'files'>) {
  if (!objectStorage) return undefined
  const { storage, keys, retention } = objectStorage
  return { objects: new BackupObjects(storage, keys, files), keys, retention }
}

const unusable = (reason: string): HomeportError<'sealed_unusable'> => new HomeportError('sealed_unusable', { reason })

function parseFacts(bytes: Buffer): ObjectFacts {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    isFacts(value)
    return value as ObjectFacts
  } catch {
    throw unusable('a newer version of Homeport has written it')
  }
}

function factsOf(backup: DueBackup): ObjectFacts {
  const { database_id, backup_id, database_name, name, kind, created_at, size_bytes, key_count, data_bytes, sha256 } =
    backup
  const figures = { created_at, size_bytes, key_count, data_bytes, sha256 }
  return { version: 1, database_id, backup_id, database_name, name, kind, ...figures }
}

async function* content(head: Buffer, path: string): AsyncGenerator<Buffer> {
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(head.length)
  yield Buffer.concat([length, head])
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) yield chunk as Buffer
}
