import { copyFile, mkdir, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Clock, codeOf, pause, replaceFile, type Service, syncPath, VERSION } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type CopiedDatabase, contentsOfCopy, copyRunning } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import {
  backupName,
  FORMAT,
  factsOf,
  isOf,
  MANIFEST_FILE,
  type Manifest,
  type SavedDatabase,
  type SavedFile,
  snapshotPath,
} from './manifest.js'
import type { BackupPlace } from './place.js'

/** What `ServiceBackups` is built from. */
export interface ServiceBackupsDeps {
  readonly dataDir: string
  /** Why this server cannot make backups, if it cannot. */
  readonly refusal: string | undefined
  readonly clock: Clock
  readonly logger: Pick<Logger, 'info' | 'error'>
  /** The identity of the store, as the data directory has it. */
  readonly installation: () => Promise<string | undefined>
  /** The place that a text names; undefined when it names none. */
  readonly placeAt: (to: string) => BackupPlace | undefined
  /** Wakes a database and writes a snapshot of it to a path. */
  readonly snapshot: (databaseId: string, file: string) => Promise<void>
}

/** The last backup since the server started. Times in Unix milliseconds. */
export type BackupState =
  | { readonly kind: 'none' }
  | { readonly kind: 'running'; readonly path: string; readonly startedAt: number; readonly progress: Progress }
  | { readonly kind: 'completed'; readonly path: string; readonly manifest: Manifest }
  | {
      readonly kind: 'failed'
      readonly path: string
      readonly startedAt: number
      readonly endedAt: number
      readonly problem: string
    }

interface Progress {
  readonly done: number
  readonly databases: number
}

const ON_SERVER = 'on the machine of the server'
/**
 * Secrets and identities in the data directory; missing files are skipped. A server that was a node before may have
 * `token-keys-of-nodes`.
 */
const KEPT_FILES = ['store-id', 'credentials.json', 'token-key', 'token-keys-of-nodes', 'backup-keys'] as const
const KEPT_FOLDER = 'tls'

/** Makes backups of the whole service, one at a time. */
export class ServiceBackups implements Service {
  readonly name = 'service backups'
  readonly #deps: ServiceBackupsDeps
  readonly #stopping = new AbortController()
  #state: BackupState = { kind: 'none' }
  #work: Promise<void> = Promise.resolve()

  constructor(deps: ServiceBackupsDeps) {
    this.#deps = deps
  }

  get state(): BackupState {
    return this.#state
  }

  /** Waits until the running backup ends, but at most this time. @returns the state then. */
  async ended(withinMs: number): Promise<BackupState> {
    if (withinMs > 0) await Promise.race([this.#work, pause(this.#deps.clock, withinMs)])
    return this.#state
  }

  async start(): Promise<void> {}

  /** Aborts a running backup: it fails, and its files are deleted. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#work
  }

  /**
   * Begins a backup.
   * @param to the absolute path of a folder of this machine, which is created if it is missing, or a place in object storage.
   * @param keep how many backups stay there afterwards; undefined: all.
   * @throws HomeportError `service_backup_refused`.
   */
  begin(to: string, keep: number | undefined): void {
    const place = this.#deps.placeAt(to)
    const problem =
      this.#refusal ??
      (place
        ? undefined
        : `"${to}" is neither the absolute path of a folder ${ON_SERVER} nor a place such as s3://bucket/prefix`)
    if (problem !== undefined || !place) throw new HomeportError('service_backup_refused', { problem: problem ?? '' })
    const startedAt = this.#deps.clock.now()
    const path = place.pathOf(backupName(startedAt))
    this.#state = { kind: 'running', path, startedAt, progress: { done: 0, databases: 0 } }
    this.#work = this.#make(place, path, startedAt, keep)
  }

  get #refusal(): string | undefined {
    if (this.#deps.refusal !== undefined) return this.#deps.refusal
    if (this.#stopping.signal.aborted) return 'the server is stopping'
    if (this.#state.kind === 'running') return `one is being made in ${this.#state.path}; wait until it has ended`
    return undefined
  }

  async #make(place: BackupPlace, path: string, startedAt: number, keep: number | undefined): Promise<void> {
    const { clock, logger } = this.#deps
    const name = basename(path)
    try {
      const installation = await this.#deps.installation()
      await refuseOthers(place, installation)
      const manifest = await this.#fill(await place.begin(name, startedAt), startedAt, installation)
      await place.complete(name, manifest, this.#stopping.signal)
      if (keep !== undefined) await place.keepNewest(keep, name, manifest)
      this.#state = { kind: 'completed', path, manifest }
      logger.info('service_backup_made', { file: basename(path), durationMs: manifest.endedAt - startedAt })
    } catch (error) {
      await place.discard(name).catch(() => undefined)
      this.#state = { kind: 'failed', path, startedAt, endedAt: clock.now(), problem: problemOf(error) }
      logger.error('service_backup_failed', { file: basename(path), error })
    }
  }

  /** The store first, then the databases that it knows, the manifest last. */
  async #fill(into: string, startedAt: number, installation: string | undefined): Promise<Manifest> {
    const { dataDir, clock } = this.#deps
    await copyRunning(dataDir, into)
    const { schema, databases: found } = contentsOfCopy(into)
    const files: SavedFile[] = [await factsOf(into, 'homeport.sqlite')]
    for (const path of await this.#keptFiles(into)) files.push(await factsOf(into, path))
    await mkdir(join(into, 'databases'), { mode: 0o700 })
    const databases: SavedDatabase[] = []
    for (const one of found) {
      this.#stopping.signal.throwIfAborted()
      this.#noteProgress({ done: databases.length, databases: found.length })
      const saved = await this.#save(into, one)
      databases.push(saved)
      if (saved.state === 'saved') files.push(await factsOf(into, snapshotPath(one.databaseId)))
    }
    const times = { startedAt: Math.floor(startedAt), endedAt: Math.floor(clock.now()) }
    const facts = { format: FORMAT, version: VERSION, ...(installation !== undefined && { installation }), schema }
    const manifest = { ...facts, ...times, databases, files }
    await syncPath(join(into, 'databases'))
    await replaceFile(join(into, MANIFEST_FILE), `${JSON.stringify(manifest, undefined, 1)}\n`)
    await syncPath(into)
    return manifest
  }

  #noteProgress(progress: Progress): void {
    if (this.#state.kind === 'running') this.#state = { ...this.#state, progress }
  }

  async #save(into: string, { modifyingState, ...one }: CopiedDatabase): Promise<SavedDatabase> {
    try {
      if (modifyingState === 'restoring') {
        throw new HomeportError('database_busy', { modifyingState })
      }
      await this.#deps.snapshot(one.databaseId, join(into, snapshotPath(one.databaseId)))
      return { ...one, state: 'saved', problem: '' }
    } catch (error) {
      if (this.#stopping.signal.aborted) throw error
      this.#deps.logger.error('service_backup_without', { databaseId: one.databaseId, error })
      return { ...one, state: 'failed', problem: problemOf(error) }
    }
  }

  /** Copies secrets and identities. @returns their paths in the backup. */
  async #keptFiles(into: string): Promise<readonly string[]> {
    const { dataDir } = this.#deps
    const inFolder = await readdir(join(dataDir, KEPT_FOLDER)).catch(() => [])
    await mkdir(join(into, 'files', KEPT_FOLDER), { recursive: true, mode: 0o700 })
    const copied: string[] = []
    for (const name of [...KEPT_FILES, ...inFolder.map((file) => `${KEPT_FOLDER}/${file}`)]) {
      const path = `files/${name}`
      try {
        await copyFile(join(dataDir, name), join(into, path))
      } catch (error) {
        if (codeOf(error) === 'ENOENT') continue
        throw error
      }
      await syncPath(join(into, path))
      copied.push(path)
    }
    return copied
  }
}

/**
 * Refuses a place with backups of another server. That server would delete our backups as old ones, and each server would
 * mistake a new backup of the other for its own. Object storage with the keys of another server is accepted: neither server
 * can list the backups of the other, so neither happens there.
 */
async function refuseOthers(place: BackupPlace, own: string | undefined): Promise<void> {
  const backups = await place.list().catch(() => [])
  const others = backups.find(({ manifest }) => !isOf(manifest, own))
  if (!others) return
  const problem = `${place.name} has backups of another server, such as ${others.name}; give each server a place of its own`
  throw new HomeportError('service_backup_refused', { problem })
}

const problemOf = (error: unknown): string =>
  error instanceof HomeportError
    ? error.message
    : `${REASONS[codeOf(error)] ?? 'It failed'} (${codeOf(error) || 'an internal error'}); the log has the details.`

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'The server may not write there',
  EROFS: 'The file system is read-only',
  ENOENT: 'The folder cannot be created',
  ENOTDIR: 'A part of the path is a file',
  EEXIST: 'A file with this name exists',
  ENOSPC: 'The disk is full',
}
