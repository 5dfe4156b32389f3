import { newId, type Timer } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { DatabaseRow } from '../life.js'
import type * as backups from '../transactions/backups.js'
import * as backupsDaily from '../transactions/backups-daily.js'
import { reasonOf } from './creation.js'
import type { BackupDeps } from './deps.js'
import type { BackupFiles } from './files.js'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
/** How long daily backups are kept, and with the production pack (reference redis 1.9). */
const KEPT_MS = DAY_MS
const KEPT_WITH_PACK_MS = 3 * DAY_MS
/** How long backups are kept that a restore or an import made on its way. */
const KEPT_ON_THE_WAY_MS = 3 * DAY_MS
/** A database that is being changed is asked again after this time. */
const BUSY_AGAIN_MS = 5 * 60 * 1000

/** What the schedule needs of the rest. */
export interface DailyDeps extends Pick<BackupDeps, 'store' | 'clock' | 'logger'> {
  readonly files: Pick<BackupFiles, 'remove'>
  /** Begins a backup and resolves when it is completed. */
  readonly make: (backup: backups.NewBackup) => Promise<unknown>
}

/** The first daily backup of a database is due a day after they were switched on. */
export function firstDailyAt(nowMs: number): number {
  return nowMs + DAY_MS
}

/** The time after `nowMs` that lies a whole number of days after `dueMs`: missed days are not made up for. */
function nextDailyAfter(dueMs: number, nowMs: number): number {
  return dueMs + DAY_MS * (Math.floor(Math.max(nowMs - dueMs, 0) / DAY_MS) + 1)
}

/** Makes the daily backups, one at a time, and deletes backups that are past their time. */
export class DailyBackups {
  readonly #deps: DailyDeps
  #timer: Timer | undefined
  /** The clock may have been ahead in an earlier life. */
  #lookedAtMs = Number.POSITIVE_INFINITY
  #turning: Promise<void> = Promise.resolve()
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: DailyDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#state = 'running'
    this.check()
  }

  /** Looks at the schedule now, because it has changed. */
  check(): void {
    if (this.#state !== 'running') return
    this.#timer?.cancel()
    this.#turning = this.#turning.then(() => this.#turn())
  }

  /** Begins with nothing more, and waits for a look that is under way. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#turning
  }

  async #turn(): Promise<void> {
    let againMs = BUSY_AGAIN_MS
    try {
      againMs = await this.#work()
    } catch (error) {
      this.#deps.logger.error({ error }, 'daily backups cannot be looked after; trying again')
    }
    if (this.#state !== 'running') return
    this.#timer?.cancel()
    this.#timer = this.#deps.clock.after(againMs, () => this.check())
  }

  /** Does what is due and answers after how many milliseconds to look again. */
  async #work(): Promise<number> {
    const { store, clock } = this.#deps
    await this.#pullBack(clock.now())
    for (const row of await store.run(backupsDaily.due, { now: clock.now() })) {
      if (this.#state !== 'running') return 0
      await this.#makeOne(row)
    }
    await this.#expire()
    const nextAt = await store.run(backupsDaily.next, {})
    const waitMs = nextAt === undefined ? HOUR_MS : nextAt - clock.now()
    // What is due still is busy.
    return waitMs <= 0 ? BUSY_AGAIN_MS : Math.min(waitMs, HOUR_MS)
  }

  /** None is ever further away than a day, but for those that were planned while the clock was ahead. */
  async #pullBack(now: number): Promise<void> {
    if (now < this.#lookedAtMs) await this.#deps.store.run(backupsDaily.pullBack, { latest: firstDailyAt(now) })
    this.#lookedAtMs = now
  }

  async #makeOne({ database_id, next_daily_backup_at: dueAt }: DatabaseRow): Promise<void> {
    const { store, clock, logger, make } = this.#deps
    const now = clock.now()
    const name = `Daily ${new Date(now).toISOString().slice(0, 16).replace('T', ' ')} UTC`
    try {
      await make({ backup_id: newId('bak_', now), database_id, name, kind: 'daily', created_at: now })
    } catch (error) {
      if (isError(error, 'database_busy')) return
      logger.error({ databaseId: database_id, reason: reasonOf(error) }, 'a daily backup has failed')
    }
    const nextAt = nextDailyAfter(dueAt ?? now, clock.now())
    await store.run(backupsDaily.postpone, { databaseId: database_id, nextAt })
  }

  async #expire(): Promise<void> {
    const { store, clock, files } = this.#deps
    const now = clock.now()
    const gone = await store.run(backupsDaily.expire, {
      daily: now - KEPT_MS,
      dailyWithPack: now - KEPT_WITH_PACK_MS,
      onTheWay: now - KEPT_ON_THE_WAY_MS,
    })
    for (const backup of gone) await files.remove(backup)
  }
}
