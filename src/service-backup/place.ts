import { mkdir, rename, rm } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { codeOf, makeFolder, syncPath } from '../base/index.js'
import type { BackupKeys, ObjectStorage } from '../objects/index.js'
import {
  beyondKept,
  checkFiles,
  keepNewest,
  type ListedBackup,
  listBackups,
  type Manifest,
  PARTIAL,
  removePartial,
} from './manifest.js'
import { StoredBackups } from './stored.js'

/** Where backups of the whole service are kept. A backup is made in a folder of this machine first. */
export interface BackupPlace {
  /** For people. */
  readonly name: string
  /** Where a backup is, for people. */
  pathOf(name: string): string
  /** Creates the empty folder in which a backup is made. Removes what earlier incomplete backups left. */
  begin(name: string, nowMs: number): Promise<string>
  /** Completes the backup in that folder. */
  complete(name: string, manifest: Manifest, signal: AbortSignal): Promise<void>
  /** Deletes that folder. */
  discard(name: string): Promise<void>
  /** Removes all but the newest backups, after every file of this one was read back. */
  keepNewest(keep: number, name: string, manifest: Manifest): Promise<void>
  /** The complete backups, newest first. */
  list(): Promise<readonly ListedBackup[]>
}

/** The place at an absolute path; undefined for any other path. */
export function folderPlace(folder: string): BackupPlace | undefined {
  return isAbsolute(folder) ? new FolderPlace(folder) : undefined
}

/** An incomplete backup in which no file was created for this long belongs to a process that was killed. */
const LEFT_AFTER_MS = 24 * 60 * 60_000

class FolderPlace implements BackupPlace {
  readonly name: string

  constructor(folder: string) {
    this.name = folder
  }

  pathOf(name: string): string {
    return join(this.name, name)
  }

  async begin(name: string, nowMs: number): Promise<string> {
    const partial = `${this.pathOf(name)}${PARTIAL}`
    await makeFolder(this.name)
    await removePartial(this.name, nowMs - LEFT_AFTER_MS)
    await mkdir(partial, { mode: 0o700 })
    return partial
  }

  async complete(name: string): Promise<void> {
    await rename(`${this.pathOf(name)}${PARTIAL}`, this.pathOf(name))
    await syncPath(this.name)
  }

  async discard(name: string): Promise<void> {
    await rm(`${this.pathOf(name)}${PARTIAL}`, { recursive: true, force: true })
  }

  async keepNewest(keep: number, name: string, manifest: Manifest): Promise<void> {
    await checkFiles(this.pathOf(name), manifest)
    await keepNewest(this.name, keep, name)
  }

  /** A folder that does not exist has no backups. */
  list(): Promise<readonly ListedBackup[]> {
    return listBackups(this.name).catch((error: unknown) => {
      const cause = error instanceof Error ? error.cause : undefined
      if (codeOf(cause) === 'ENOENT') return []
      throw error
    })
  }
}

/** What a place in object storage is built from. */
export interface StoredPlaceDeps {
  readonly storage: ObjectStorage
  /** The keys that encrypt; read when they are needed. */
  readonly keys: () => Promise<BackupKeys>
  /** Backups are made in this folder, which needs the space of one. */
  readonly workDir: string
}

/** A place in object storage. */
export class StoredPlace implements BackupPlace {
  readonly #deps: StoredPlaceDeps

  constructor(deps: StoredPlaceDeps) {
    this.#deps = deps
  }

  get name(): string {
    return this.#deps.storage.place
  }

  pathOf(name: string): string {
    return `${this.name}/${StoredBackups.folderOf(name)}`
  }

  async begin(name: string, nowMs: number): Promise<string> {
    const folder = join(this.#deps.workDir, `${name}${PARTIAL}`)
    // A failed removal must not prevent this backup.
    await (await this.#stored()).removeLeft(nowMs - LEFT_AFTER_MS).catch(() => undefined)
    // The folder can only contain an incomplete backup of a server that was killed.
    await rm(this.#deps.workDir, { recursive: true, force: true })
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return folder
  }

  async complete(name: string, manifest: Manifest, signal: AbortSignal): Promise<void> {
    await (await this.#stored()).upload(join(this.#deps.workDir, `${name}${PARTIAL}`), name, manifest, signal)
    await this.discard()
  }

  async discard(): Promise<void> {
    await rm(this.#deps.workDir, { recursive: true, force: true })
  }

  /** `complete` has read every file back already. */
  async keepNewest(keep: number, made: string): Promise<void> {
    const stored = await this.#stored()
    for (const { name, manifest } of beyondKept(await stored.list(), keep, made)) await stored.remove(name, manifest)
  }

  async list(): Promise<readonly ListedBackup[]> {
    return (await this.#stored()).list()
  }

  async #stored(): Promise<StoredBackups> {
    return new StoredBackups(this.#deps.storage, await this.#deps.keys())
  }
}
