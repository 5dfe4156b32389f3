import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { HomeportError } from '../contract/errors/errors.js'
import { type BackupKeys, type ObjectStorage, seal, sealedBytes, unseal } from '../objects/index.js'
import {
  isBackupName,
  type ListedBackup,
  MANIFEST_FILE,
  type Manifest,
  parseManifest,
  type SavedFile,
  timeOfName,
} from './manifest.js'

const FOLDER = 'service/'
/** A manifest has about 200 bytes for each file. */
const MAX_MANIFEST_BYTES = 64 * 2 ** 20

/**
 * Backups of the whole service in object storage: `service/<name>/<path>`, each file sealed under that name. The manifest
 * is written last, after every other object was read back. So a backup with a manifest is complete.
 */
export class StoredBackups {
  readonly #storage: ObjectStorage
  readonly #keys: BackupKeys

  constructor(storage: ObjectStorage, keys: BackupKeys) {
    this.#storage = storage
    this.#keys = keys
  }

  /** The folder of a backup below the prefix of the storage. */
  static folderOf(name: string): string {
    return `${FOLDER}${name}`
  }

  /** Uploads a backup from a folder. When the upload fails, the objects uploaded so far are deleted, as far as possible. */
  async upload(folder: string, name: string, manifest: Manifest, signal: AbortSignal): Promise<void> {
    const paths = [...manifest.files.map(({ path }) => path), MANIFEST_FILE]
    try {
      for (const file of manifest.files) {
        await this.#put(keyOf(name, file.path), createReadStream(join(folder, file.path)), file.bytes, signal)
      }
      for (const file of manifest.files) await this.#check(name, file, signal)
      const text = Buffer.from(JSON.stringify(manifest))
      await this.#put(keyOf(name, MANIFEST_FILE), Readable.from([text]), text.length, signal)
    } catch (error) {
      for (const path of paths.reverse()) await this.#storage.remove(keyOf(name, path)).catch(() => undefined)
      throw error
    }
  }

  /** The complete backups, newest first. @throws HomeportError when one cannot be read with these keys. */
  async list(): Promise<readonly ListedBackup[]> {
    const found: ListedBackup[] = []
    for await (const { key, sizeBytes } of this.#storage.list(FOLDER)) {
      const [name = '', file, ...more] = key.slice(FOLDER.length).split('/')
      if (file !== MANIFEST_FILE || more.length > 0 || !isBackupName(name) || sizeBytes > MAX_MANIFEST_BYTES) continue
      const path = `${this.#storage.place}/${StoredBackups.folderOf(name)}`
      found.push({ name, path, manifest: parseManifest(path, await this.#text(key)) })
    }
    return found.sort((one, other) => (one.name < other.name ? 1 : -1))
  }

  /**
   * Removes the objects and unfinished uploads of incomplete backups that a killed server left, but not of backups begun at
   * `since` (Unix milliseconds) or later.
   */
  async removeLeft(since: number): Promise<void> {
    const keysOf = new Map<string, string[]>()
    for await (const { key } of this.#storage.list(FOLDER)) {
      const name = nameIn(key)
      if (timeOfName(name) < since) keysOf.set(name, [...(keysOf.get(name) ?? []), key])
    }
    for (const [name, keys] of keysOf) {
      if (!(await this.#isComplete(name))) for (const key of keys) await this.#storage.remove(key)
    }
    await this.#storage.abortUploads(FOLDER, (key) => timeOfName(nameIn(key)) < since)
  }

  /** Asks for each backup separately, because a list of very many objects ends early. */
  async #isComplete(name: string): Promise<boolean> {
    const manifest = keyOf(name, MANIFEST_FILE)
    for await (const { key } of this.#storage.list(manifest)) if (key === manifest) return true
    return false
  }

  /** Downloads a backup into an empty folder. The caller compares the files with the manifest. */
  async download({ name, manifest }: ListedBackup, into: string): Promise<void> {
    for (const { path } of manifest.files) {
      const target = join(into, path)
      await mkdir(dirname(target), { recursive: true, mode: 0o700 })
      await pipeline(
        Readable.from(this.#get(keyOf(name, path))),
        createWriteStream(target, { mode: 0o600, flush: true }),
      )
    }
    const text = Readable.from([JSON.stringify(manifest)])
    await pipeline(text, createWriteStream(join(into, MANIFEST_FILE), { mode: 0o600, flush: true }))
  }

  /** Removes a backup, the manifest first: without it, the backup no longer counts as complete. */
  async remove(name: string, { files }: Manifest): Promise<void> {
    for (const path of [MANIFEST_FILE, ...files.map((file) => file.path)]) await this.#storage.remove(keyOf(name, path))
  }

  #put(key: string, content: AsyncIterable<Buffer>, bytes: number, signal: AbortSignal): Promise<void> {
    return this.#storage.put(key, seal(content, this.#keys.current, key), sealedBytes(bytes), signal)
  }

  #get(key: string, signal?: AbortSignal): AsyncGenerator<Buffer> {
    return unseal(this.#storage.get(key, signal), this.#keys, key)
  }

  async #check(name: string, { path, bytes, sha256 }: SavedFile, signal: AbortSignal): Promise<void> {
    const hash = createHash('sha256')
    let length = 0
    for await (const chunk of this.#get(keyOf(name, path), signal)) {
      hash.update(chunk)
      length += chunk.length
    }
    if (length === bytes && hash.digest('hex') === sha256) return
    const reason = `${path} was read back with ${length} bytes, and ${bytes} were written`
    throw new HomeportError('object_storage_failed', { place: this.#storage.place, reason })
  }

  async #text(key: string): Promise<string> {
    const chunks: Buffer[] = []
    for await (const chunk of this.#get(key)) chunks.push(chunk)
    return Buffer.concat(chunks).toString('utf8')
  }
}

/** The name of the backup that an object belongs to. */
const nameIn = (key: string): string => key.slice(FOLDER.length).split('/')[0] ?? ''

const keyOf = (name: string, path: string): string => `${StoredBackups.folderOf(name)}/${path}`
