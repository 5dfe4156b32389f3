import { newId, type Timer } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type * as backups from '../transactions/backups.js'
import * as backupsDaily from '../transactions/backups-daily.js'
import { reasonOf } from './creation.js'
import { type DeletionDeps, deleteFiles } from './deletions.js'
import type { BackupDeps } from './deps.js'

type DueDatabase = backupsDaily.DueDatabase

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
/** Retention of daily backups (reference redis 1.9). */
export const DAILY_ON_DISK_MS = DAY_MS
/** Retention of daily backups with the production pack. */
export const DAILY_ON_DISK_WITH_PACK_MS = 3 * DAY_MS
/** Retention of safety and import backups, which restores and imports make. */
const INTERMEDIATE_RETENTION_MS = 3 * DAY_MS
/**
 * Delay before the backup of a database is retried that was busy, or whose backup has failed. It doubles with each further
 * failure.
 */
const FIRST_RETRY_MS = 5 * 60 * 1000

/** What `DailyBackups` is built from. */
export interface DailyDeps extends DeletionDeps, Pick<BackupDeps, 'clock' | 'home' | 'ages'> {
  /** Which daily backups expire in object storage and not here: all completed ones, or only those that are stored there. */
  readonly keep: backupsDaily.Ages['keep']
  /** Creates a backup and resolves when it is completed. */
  readonly create: (backup: backups.NewBackup) => Promise<unknown>
}

/** When the first daily backup is due: one day after daily backups were switched on. */
export function firstDailyAt(nowMs: number): number {
  return nowMs + DAY_MS
}

/** The next time after `nowMs` that is a whole number of days after the due one: missed days are skipped. */
function nextDailyOf({ next_daily_backup_at }: DueDatabase, nowMs: number): number {
  const dueMs = next_daily_backup_at ?? nowMs
  return dueMs + DAY_MS * (Math.floor(Math.max(nowMs - dueMs, 0) / DAY_MS) + 1)
}

/** A database whose daily backup is tried again later, because the database was busy, or because the backup has failed. */
interface Waiting {
  readonly since: number
  readonly pauseMs: number
  readonly hasFailed: boolean
}

/**
 * Creates the daily backups, one at a time, and deletes backups past their retention. Accounts take turns. A backup that
 * fails stays due and is retried with growing pauses until that of the next day is due. Only the first failure of a day is
 * listed, and raises an alert.
 */
export class DailyBackups {
  readonly #deps: DailyDeps
  readonly #waiting = new Map<string, Waiting>()
  /** The number of each account's last turn, while a backup is due. Numbers only grow. */
  readonly #turns = new Map<string, number>()
  #timer: Timer | undefined
  /** Infinite at first: the clock may have been ahead before this start, see `#pullBack`. */
  #checkedAtMs = Number.POSITIVE_INFINITY
  #checking: Promise<void> = Promise.resolve()
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: DailyDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#state = 'running'
    this.check()
  }

  /** Checks the schedule now, because it has changed. */
  check(): void {
    if (this.#state !== 'running') return
    this.#timer?.cancel()
    this.#checking = this.#checking.then(() => this.#checkOnce())
  }

  /** Starts nothing more, and waits for the active check. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#checking
  }

  async #checkOnce(): Promise<void> {
    let againMs = FIRST_RETRY_MS
    try {
      againMs = await this.#work()
    } catch (error) {
      this.#deps.logger.error('backup_schedule_failed', { error })
    }
    if (this.#state !== 'running') return
    this.#timer?.cancel()
    this.#timer = this.#deps.clock.after(againMs, () => this.check())
  }

  /** Makes the backups that are due. Resolves to the delay until the next check, milliseconds. */
  async #work(): Promise<number> {
    const { store, clock, home } = this.#deps
    await this.#pullBack(clock.now())
    let asOf = clock.now()
    for (let row = await this.#nextDue(asOf); row; row = await this.#nextDue(asOf)) {
      await this.#createOne(row)
      if (this.#state !== 'running') return 0
      await this.#expire()
      asOf = clock.now()
    }
    await this.#expire()
    const nextAt = await store.run(backupsDaily.next, { after: asOf, home })
    const latestMs = this.#waiting.size > 0 ? FIRST_RETRY_MS : HOUR_MS
    return nextAt === undefined ? latestMs : Math.min(Math.max(nextAt - clock.now(), 0), latestMs)
  }

  /** The most overdue database of the account whose last turn was the longest ago. */
  async #nextDue(now: number): Promise<DueDatabase | undefined> {
    const { store, home } = this.#deps
    const due = await store.run(backupsDaily.due, { now, home })
    const ids = new Set(due.map((row) => row.database_id))
    for (const id of this.#waiting.keys()) if (!ids.has(id)) this.#waiting.delete(id)
    const turnOf = ({ account_id }: DueDatabase): number => this.#turns.get(account_id) ?? 0
    const ready = due.filter((row) => !this.#isWaiting(row, now))
    const next = ready.reduce<DueDatabase | undefined>(
      (best, row) => (best && turnOf(best) <= turnOf(row) ? best : row),
      undefined,
    )
    if (next) this.#turns.set(next.account_id, Math.max(0, ...this.#turns.values()) + 1)
    else this.#turns.clear()
    return next
  }

  #isWaiting({ database_id }: DueDatabase, now: number): boolean {
    const waiting = this.#waiting.get(database_id)
    return waiting !== undefined && now >= waiting.since && now < waiting.since + waiting.pauseMs
  }

  /** When the clock was set back, backups may be due more than a day ahead; moves them to one day from now. */
  async #pullBack(now: number): Promise<void> {
    const { store, home } = this.#deps
    if (now < this.#checkedAtMs) await store.run(backupsDaily.pullBack, { latest: firstDailyAt(now), home })
    this.#checkedAtMs = now
  }

  /** Takes a backup that is due. It remains due when its database is busy, or when it fails. */
  async #createOne(row: DueDatabase): Promise<void> {
    const { store, clock, logger, create } = this.#deps
    const { database_id: databaseId } = row
    const now = clock.now()
    const last = this.#waiting.get(databaseId)
    const hadFailed = last?.hasFailed === true
    const backupId = newId('bak_', now)
    const name = `Daily ${new Date(now).toISOString().slice(0, 16).replace('T', ' ')} UTC`
    const wait = (pauseMs: number, hasFailed: boolean): void =>
      void this.#waiting.set(databaseId, { since: clock.now(), pauseMs, hasFailed })
    try {
      await create({ backup_id: backupId, database_id: databaseId, name, kind: 'daily', created_at: now })
    } catch (error) {
      if (isError(error, 'database_busy')) return wait(FIRST_RETRY_MS, hadFailed)
      if (hadFailed) await store.run(backupsDaily.forgetFailed, { backupId })
      else logger.error('backup_daily_failed', { databaseId, reason: reasonOf(error) })
      const pauseMs = hadFailed ? 2 * last.pauseMs : FIRST_RETRY_MS
      if (clock.now() + pauseMs < nextDailyOf(row, clock.now())) return wait(pauseMs, true)
    }
    this.#waiting.delete(databaseId)
    await store.run(backupsDaily.postpone, { databaseId, nextAt: nextDailyOf(row, clock.now()) })
  }

  async #expire(): Promise<void> {
    const { store, clock, home, ages } = this.#deps
    if (!ages.mayDelete) return
    const now = clock.now()
    const gone = await store.run(backupsDaily.expire, {
      daily: now - DAILY_ON_DISK_MS,
      dailyWithPack: now - DAILY_ON_DISK_WITH_PACK_MS,
      intermediate: now - INTERMEDIATE_RETENTION_MS,
      home,
      at: now,
      keep: this.#deps.keep,
    })
    await deleteFiles(this.#deps, gone)
  }
}
