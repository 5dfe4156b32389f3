import { isObject, type Timer } from '../../../base/index.js'
import { HomeportError, isError } from '../../../contract/errors/errors.js'
import type { BackupKeys } from '../../../objects/index.js'
import type { DatabasesDeps, Retention } from '../../deps.js'
import * as deletions from '../../transactions/backup-deletions.js'
import * as objects from '../../transactions/backup-objects.js'
import { reasonOf } from '../creation.js'
import { deleteFiles } from '../deletions.js'
import type { BackupDeps } from '../deps.js'
import type { BackupFiles, BackupName } from '../files.js'
import { type BackupObjects, objectKey } from './objects.js'
import { beyondRetention, locallyExpired } from './retention.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Delay after the first failure in a row; it doubles with each further one, up to an hour. */
const FIRST_RETRY_MS = MINUTE_MS
const BATCH = 20
/** After this many failures in one round, the remaining items wait for the next round. */
const MAX_FAILURES = 3
const KEYS = 'backups.keys'

/** What `Uploads` is built from. */
export interface UploadDeps
  extends Pick<BackupDeps, 'store' | 'clock' | 'logger' | 'home' | 'ages'>,
    Pick<DatabasesDeps, 'problems' | 'cluster'> {
  readonly objects: BackupObjects
  readonly keys: BackupKeys
  readonly files: Pick<BackupFiles, 'remove'>
  readonly retention: Retention
}

/** What a round does. `all`: everything that waits. `new`: uploads that were never tried, and deletions, but no retries. */
type Round = 'all' | 'new'

/**
 * Uploads backups to object storage, one at a time, and deletes the objects of backups that are deleted or past their
 * retention. A backup whose upload failed waits until the others are uploaded, as long as the storage answers.
 *
 * ```
 *   completed ──▶ waiting ──upload, read back, compare──▶ stored ──▶ deleting ──▶ (none)
 *                    │  ▲                                              ▲
 *                    │  └── the storage fails: later, with back-off     │ the backup is deleted
 *                    └──▶ unusable: the file itself has changed ────────┘
 * ```
 *
 * A row exists before its object does, so an object is never left without one. The file on the disk is deleted only after
 * the object was read back.
 */
export class Uploads {
  readonly #deps: UploadDeps
  readonly #stopping = new AbortController()
  #timer: Timer | undefined
  #checking: Promise<void> = Promise.resolve()
  /** Failures in a row. */
  #failures = 0
  #isFirst = true
  readonly #queued = new Set<Round>()
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: UploadDeps) {
    this.#deps = deps
    deps.cluster?.handle(KEYS, async (payload) => {
      await deps.keys.learn(keysIn(payload))
      return { keys: deps.keys.texts }
    })
  }

  /** Checks the storage and its options, and begins. Never rejects: databases are served whatever the storage does. */
  start(): void {
    this.#state = 'running'
    this.check()
  }

  /** Looks for work now; failed work is retried only when its delay is over. */
  check(): void {
    this.#begin(this.#failures === 0 ? 'all' : 'new')
  }

  /** Where a backup is going to be, as long as its object has no row. */
  planned(backup: BackupName): Pick<objects.ObjectRow, 'state' | 'object' | 'size_bytes' | 'failure'> {
    return { state: 'waiting', object: this.#addressOf(backup), size_bytes: 0, failure: null }
  }

  #begin(round: Round): void {
    if (!this.#isRunning || this.#queued.has(round)) return
    this.#queued.add(round)
    this.#checking = this.#checking.then(async () => {
      this.#queued.delete(round)
      if (!this.#isRunning) return
      if (round === 'all') await this.#checkOnce()
      // A failure is stored and logged, and the next round of all retries it.
      else await this.#work('new').catch(() => undefined)
    })
  }

  #addressOf(backup: BackupName): string {
    return `${this.#deps.objects.place}/${objectKey(backup)}`
  }

  /** Aborts the upload in progress; the next start repeats it. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    this.#stopping.abort()
    await this.#checking
    await this.#deps.objects.close()
  }

  async #checkOnce(): Promise<void> {
    this.#timer?.cancel()
    const { clock, objects: there, problems } = this.#deps
    let againMs = HOUR_MS
    try {
      if (this.#failures > 0 || this.#isFirst) await there.check()
      this.#isFirst = false
      await this.#exchangeKeys()
      await this.#work('all')
      this.#failures = 0
      problems.resolve('backup_storage', there.place)
    } catch (error) {
      againMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures, HOUR_MS)
      this.#failures++
      if (this.#isRunning) this.#report(error)
    }
    if (this.#isRunning) this.#timer = clock.after(againMs, () => this.#begin('all'))
  }

  get #isRunning(): boolean {
    return this.#state === 'running'
  }

  /** A failed upload must not prevent deletions: a full storage gets free space only by them. */
  async #work(round: Round): Promise<void> {
    const { store, home, clock } = this.#deps
    try {
      const due = () => store.run(objects.due, { home, which: round, limit: BATCH })
      await this.#each(due, (backup) => this.#upload(backup))
    } finally {
      if (this.#isRunning) await this.#expire()
      const gone = () => store.run(objects.deleting, { node: home, before: clock.now() - DAY_MS, limit: BATCH })
      await this.#each(gone, (row) => this.#delete(row))
    }
  }

  /** Does each due item once. @throws the first failure after the other items, or a later one when there are too many. */
  async #each<Item extends BackupName>(due: () => Promise<Item[]>, work: (item: Item) => Promise<void>): Promise<void> {
    const tried = new Set<string>()
    const failures: unknown[] = []
    for (;;) {
      const next = (await due()).filter(({ backup_id }) => !tried.has(backup_id))
      if (next.length === 0) break
      for (const item of next) {
        if (!this.#isRunning) return
        tried.add(item.backup_id)
        try {
          await work(item)
        } catch (error) {
          // Rejects if the storage itself fails, and not only this item.
          await this.#deps.objects.check()
          if (failures.push(error) === MAX_FAILURES) throw error
        }
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  async #upload(backup: objects.DueBackup): Promise<void> {
    const { store, clock, home, objects: there, logger } = this.#deps
    const { backup_id: backupId, database_id: databaseId } = backup
    const object = this.#addressOf(backup)
    const begun = { backupId, databaseId, node: home, object, at: clock.now() }
    if (!(await store.run(objects.begin, begun))) return
    const finish = (outcome: Pick<objects.ObjectRow, 'state' | 'size_bytes' | 'failure'>): Promise<void> =>
      store.run(objects.finish, { backupId, node: home, outcome: { ...outcome, changed_at: clock.now() } })
    try {
      const size = await there.upload(backup, this.#stopping.signal)
      await finish({ state: 'stored', size_bytes: size, failure: null })
    } catch (error) {
      if (!this.#isRunning) return
      const isUnusable = isError(error, 'snapshot_unusable')
      await finish({ state: isUnusable ? 'unusable' : 'waiting', size_bytes: 0, failure: reasonOf(error) })
      logger.error('backup_not_uploaded', { backupId, reason: reasonOf(error) })
      if (!isUnusable) throw error
    }
  }

  /** Deletes files that object storage has too, then daily backups past their retention there. */
  async #expire(): Promise<void> {
    const { store, clock, home, files, retention, ages } = this.#deps
    if (!ages.mayDelete) return
    const now = clock.now()
    const stored = await store.run(objects.storedDaily, { home })
    for (const backup of locallyExpired(stored, now)) await files.remove(backup)
    const gone = beyondRetention(stored, retention, now)
    if (gone.length === 0) return
    await store.run(deletions.expire, { gone, at: now })
    await deleteFiles(this.#deps, gone)
  }

  async #delete(row: objects.ObjectRow): Promise<void> {
    await this.#deps.objects.remove(row, this.#stopping.signal)
    await this.#deps.store.run(objects.drop, { backupId: row.backup_id })
  }

  /**
   * Exchanges keys with the other nodes, so that each can read the backups of every other one, even when that node is gone.
   */
  async #exchangeKeys(): Promise<void> {
    const { cluster, keys } = this.#deps
    if (!cluster) return
    const answers = await cluster.ask(KEYS, { keys: keys.texts })
    for (const { answer } of answers) await keys.learn(keysIn(answer))
  }

  #report(error: unknown): void {
    const { problems, objects: there, logger } = this.#deps
    if (!(error instanceof HomeportError)) logger.error('backup_schedule_failed', { error })
    problems.report({
      kind: 'backup_storage',
      subject: there.place,
      severity: 'warning',
      title: `Backups are kept on this machine only. ${reasonOf(error)}`,
      advice:
        'Databases are served, and backups are uploaded as soon as the storage accepts them. Check the options backups, ' +
        'backupsEndpoint and backupsRegion, and the credentials: docs/backups.md.',
    })
  }
}

function keysIn(payload: unknown): readonly unknown[] {
  return isObject(payload) && Array.isArray(payload.keys) ? payload.keys : []
}
