import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { auditRow } from '../../accounts/index.js'
import { isUnwritable, newId, randomSecret } from '../../base/index.js'
import type { ImportRecord } from '../../contract/databases/backups.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type EngineSpec, processMemoryFor, throwawayId } from '../../fleet/index.js'
import type { Caller } from '../../http/index.js'
import { engineSpecOf, planOf } from '../desired-engine.js'
import type { DatabaseRow } from '../lifecycle.js'
import type * as backups from '../transactions/backups.js'
import * as databases from '../transactions/databases.js'
import * as imports from '../transactions/imports.js'
import { jobOf } from '../transactions/restores.js'
import { refuse, renderImport } from './answers.js'
import {
  connectToEngine,
  connectToSource,
  copyAll,
  countKeys,
  type ImportSource,
  parseSource,
  refusePart,
} from './copy.js'
import { type BackupCreation, reasonOf } from './creation.js'
import { type BackupDeps, retryUntilDone } from './deps.js'
import type { Restores } from './restores.js'
import { Stall } from './stall.js'

type NewBackup = backups.NewBackup
type BackupRow = backups.BackupRow
type Progress = imports.Progress

/** An import that is stored and runs in the background. */
export interface BegunImport {
  readonly record: ImportRecord
  /** Resolves when the database serves the imported data; rejects when nothing was changed. */
  readonly ended: Promise<void>
}

/** Reads the foreign data into the pending backup, until the signal ends it, and resolves to the completed backup. */
type Filling = (backup: NewBackup, database: DatabaseRow, signal: AbortSignal) => Promise<BackupRow>

/** A file that a client sends, which may take hours. */
export interface ReceivedFile {
  readonly content: Readable
  /** Whether the client may still change the database. */
  readonly isStillAllowed: () => Promise<boolean>
}

/** An active import. */
interface ActiveImport {
  readonly accountId: string
  readonly databaseId: string
  readonly ending: AbortController
}

/** Maximum imports of one account at a time: each needs an engine, and memory for the data of its database. */
const MAX_ACTIVE = 4

/**
 * Imports foreign data: it becomes a backup first, which is then restored. So the data of the database stays untouched
 * until the import is complete and known to load.
 */
export class Imports {
  readonly #deps: BackupDeps
  readonly #creation: BackupCreation
  readonly #restores: Restores
  /** Active imports by their backup id. Progress is counted here, and stored only when the state changes. */
  readonly #progress = new Map<string, Progress>()
  readonly #active = new Set<ActiveImport>()

  constructor(deps: BackupDeps, creation: BackupCreation, restores: Restores) {
    this.#deps = deps
    this.#creation = creation
    this.#restores = restores
  }

  /** Starts copying all keys of another server. */
  fromUrl(caller: Caller, databaseId: string, url: string): Promise<BegunImport> {
    const source = parseSource(url)
    const fill: Filling = (backup, database, signal) => this.#copy(backup, database, { source, caller }, signal)
    return this.#begin(caller, databaseId, source.shown, fill)
  }

  /** Starts receiving an RDB file. */
  fromFile(caller: Caller, databaseId: string, file: ReceivedFile): Promise<BegunImport> {
    const fill: Filling = (backup, database, signal) => this.#receive(backup, database, file, signal)
    return this.#begin(caller, databaseId, 'RDB file', fill)
  }

  /** Ends the import into a database, if one is active. A slow client or source could make it last for hours. */
  end(databaseId: string): void {
    for (const one of this.#active) if (one.databaseId === databaseId) one.ending.abort()
  }

  /** Progress of the last import into a database; rejects with `import_not_found`. */
  async progress({ accountId }: Caller, databaseId: string): Promise<ImportRecord> {
    const last = await this.#last(accountId, databaseId)
    if (!last) throw new HomeportError('import_not_found', { databaseId })
    return last
  }

  /** The last import into a database, if there was one; rejects with `database_not_found`. */
  async list({ accountId }: Caller, databaseId: string): Promise<ImportRecord[]> {
    const last = await this.#last(accountId, databaseId)
    if (last) return [last]
    if (await this.#deps.store.run(databases.get, { accountId, databaseId })) return []
    throw new HomeportError('database_not_found', { databaseId })
  }

  async #last(accountId: string, databaseId: string): Promise<ImportRecord | undefined> {
    // Copied before the row is read: an import that ends meanwhile leaves `#progress`, and the row read may be older.
    const before = new Map(this.#progress)
    const row = await this.#deps.store.run(imports.get, { accountId, databaseId })
    return row && renderImport({ ...row, ...(this.#progress.get(row.backup_id) ?? before.get(row.backup_id)) })
  }

  async #begin(caller: Caller, databaseId: string, source: string, fill: Filling): Promise<BegunImport> {
    const { accountId } = caller
    const active = [...this.#active].filter((one) => one.accountId === accountId)
    if (active.length >= MAX_ACTIVE) throw new HomeportError('too_many_imports', { most: MAX_ACTIVE })
    const entry: ActiveImport = { accountId, databaseId, ending: new AbortController() }
    this.#active.add(entry)
    try {
      const { database, backup } = await this.#store(caller, databaseId, source)
      const ended = this.#carryOut(database, backup, () => fill(backup, database, entry.ending.signal))
      // The import may fail before the caller waits for it.
      ended.catch(() => undefined).finally(() => this.#active.delete(entry))
      return { ended, record: await this.progress(caller, databaseId) }
    } catch (error) {
      this.#active.delete(entry)
      throw error
    }
  }

  async #store(caller: Caller, databaseId: string, source: string) {
    const { store, clock, lost, home } = this.#deps
    const now = clock.now()
    const backup: NewBackup = {
      backup_id: newId('bak_', now),
      database_id: databaseId,
      name: `Import from ${source}`.slice(0, 128),
      kind: 'import',
      created_at: now,
    }
    const event = { action: 'Import Database', entity: databaseId, details: { source } } as const
    const audit = auditRow(caller, event, now)
    const begun = store.run(imports.begin, { accountId: caller.accountId, backup, source, home, audit })
    const outcome = await lost.watch(jobOf(backup), begun)
    if (outcome.kind !== 'begun') return refuse(outcome, databaseId)
    const nothingYet = { keys_read: 0, keys_total: null, bytes_read: 0, finished_at: null, failure: null }
    this.#progress.set(backup.backup_id, { state: 'reading', ...nothingYet })
    return { database: outcome.database, backup }
  }

  async #carryOut(database: DatabaseRow, backup: NewBackup, fill: () => Promise<BackupRow>): Promise<void> {
    const { clock } = this.#deps
    try {
      await this.#restores.run(database, async () => {
        const row = await fill()
        await this.#note(backup, { state: 'restoring', keys_read: row.key_count })
        return row
      })
      await this.#note(backup, { state: 'completed', finished_at: clock.now() })
    } catch (error) {
      await this.#note(backup, { state: 'failed', finished_at: clock.now(), failure: reasonOf(error) })
      throw error
    } finally {
      this.#progress.delete(backup.backup_id)
    }
  }

  /** The uploaded file itself is never kept: one of our engines loads it and writes the backup from that. */
  #receive(
    backup: NewBackup,
    database: DatabaseRow,
    { content, isStillAllowed }: ReceivedFile,
    signal: AbortSignal,
  ): Promise<BackupRow> {
    return this.#creation.settle(backup, async () => {
      const { fleet, files, plans, clock } = this.#deps
      const upload = await files.prepareUpload(backup)
      try {
        const limitBytes = planOf(database, plans).db_disk_threshold
        const hasSpace = (): Promise<boolean> => fleet.checkSpace(LOOK_EVERY_BYTES)
        const counting: Counting = { limitBytes, hasSpace, onBytes: (bytes) => this.#count(backup, 0, bytes) }
        const disk = createWriteStream(upload, { mode: 0o600, flush: true })
        const stall = new Stall(clock, () => disk.bytesWritten)
        const either = AbortSignal.any([signal, stall.signal])
        await pipeline(content, (chunks: AsyncIterable<Buffer>) => passing(chunks, counting), disk, { signal: either })
          .catch((error: unknown) => asImportFailure(stall.problem ?? error))
          .finally(() => stall.end())
        if (!(await isStillAllowed())) throw new HomeportError('unauthorized', { scheme: 'Basic' })
        await this.#note(backup, { state: 'checking' })
        const { maxMemoryBytes } = engineSpecOf(database, plans)
        const evidence = await fleet.rewriteSnapshot(upload, await files.prepare(backup), maxMemoryBytes)
        return await this.#creation.figures(backup, evidence)
      } finally {
        await rm(upload, { force: true })
      }
    })
  }

  /** Copies into a temporary engine with the database's memory limit, whose snapshot becomes the backup. */
  #copy(backup: NewBackup, database: DatabaseRow, from: ForeignServer, end: AbortSignal): Promise<BackupRow> {
    return this.#creation.settle(backup, async () => {
      const { fleet, files, plans, stopping } = this.#deps
      const signal = AbortSignal.any([end, stopping])
      const password = randomSecret()
      const spec = stagingSpec(engineSpecOf(database, plans), password)
      try {
        await fleet.ensure(spec)
        const [staging] = await fleet.endpoints(spec.databaseId)
        await this.#copyInto(
          backup,
          { path: staging?.socketPath ?? '', password, maxMemoryBytes: spec.maxMemoryBytes },
          from,
          signal,
        )
        await this.#note(backup, { state: 'checking' })
        const evidence = await fleet.takeSnapshot(spec.databaseId, await files.prepare(backup))
        return await this.#creation.figures(backup, evidence)
      } finally {
        await fleet.remove(spec.databaseId)
      }
    })
  }

  async #copyInto(backup: NewBackup, staging: StagingEngine, from: ForeignServer, signal: AbortSignal): Promise<void> {
    const { clock, targets } = this.#deps
    const options = { clock, signal }
    const source = await connectToSource(from.source, targets, options)
    try {
      const target = await connectToEngine(staging.path, staging.password, options)
      try {
        await refusePart(source)
        await this.#note(backup, { keys_total: await countKeys(source) })
        const onCopied = (keys: number, bytes: number): void => {
          this.#refuseRemoved(from.caller)
          this.#count(backup, keys, bytes)
        }
        const { maxMemoryBytes } = staging
        await copyAll({ source, target, clock, signal, maxMemoryBytes, onCopied })
        this.#refuseRemoved(from.caller)
      } finally {
        target.close()
      }
    } finally {
      source.close()
    }
  }

  /** Refuses a caller who has left the team meanwhile: the source decides how long a copy takes. */
  #refuseRemoved(caller: Caller): void {
    if (this.#deps.isStillMember?.(caller) !== false) return
    throw new HomeportError('import_failed', {
      reason: 'the user who started it may no longer change databases of the team',
    })
  }

  #count({ backup_id }: NewBackup, keys: number, bytes: number): void {
    const last = this.#progress.get(backup_id)
    if (!last) return
    const [keys_read, bytes_read] = [last.keys_read + keys, last.bytes_read + bytes]
    this.#progress.set(backup_id, { ...last, keys_read, bytes_read })
  }

  async #note(backup: NewBackup, change: Partial<Progress>): Promise<void> {
    const { backup_id: backupId, database_id: databaseId } = backup
    const last = this.#progress.get(backupId)
    if (!last) return
    const progress = { ...last, ...change }
    this.#progress.set(backupId, progress)
    const { store } = this.#deps
    await retryUntilDone(this.#deps, databaseId, () => store.run(imports.note, { backupId, progress }))
  }
}

/** A server to copy from, and who asks for it. */
interface ForeignServer {
  readonly source: ImportSource
  readonly caller: Caller
}

/** The temporary engine that takes the imported keys. */
interface StagingEngine {
  readonly path: string
  readonly password: string
  readonly maxMemoryBytes: number
}

/** A temporary engine with the memory limit of the database. */
function stagingSpec({ maxMemoryBytes }: EngineSpec, password: string): EngineSpec {
  return {
    databaseId: throwawayId(),
    members: [{ region: 'import', role: 'primary' }],
    users: [{ name: 'default', password, rules: '~* &* +@all' }],
    maxMemoryBytes,
    processMemoryBytes: processMemoryFor(maxMemoryBytes),
    eviction: false,
    persistence: 'snapshot',
    state: 'running',
  }
}

/** Bytes of a file between two checks of the disk. */
const LOOK_EVERY_BYTES = 4 * 2 ** 20

interface Counting {
  readonly limitBytes: number
  /** Whether the disk has space for more; without it, no engine can write its log. */
  readonly hasSpace: () => Promise<boolean>
  readonly onBytes: (bytes: number) => void
}

/** Counts the bytes that pass through, and fails beyond `limitBytes` and before they fill the disk. */
async function* passing(chunks: AsyncIterable<Buffer>, { limitBytes, hasSpace, onBytes }: Counting) {
  let [total, lookAt] = [0, 0]
  for await (const chunk of chunks) {
    total += chunk.length
    onBytes(chunk.length)
    if (total > limitBytes) throw new HomeportError('body_too_large', { limitBytes })
    if (total > lookAt && !(await hasSpace())) throw new HomeportError('store_full', {})
    if (total > lookAt) lookAt = total + LOOK_EVERY_BYTES
    yield chunk
  }
}

function asImportFailure(error: unknown): never {
  if (error instanceof HomeportError) throw error
  if (isUnwritable(error)) throw new HomeportError('store_full', {}, { cause: error })
  throw new HomeportError('import_failed', { reason: 'the file did not arrive completely' }, { cause: error })
}
