import type { Clock, Service, Timer } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors.js'
import { operations, type Store } from '../../store/index.js'
import type { PendingRow } from '../../store/operations/messages.js'
import type { PublishEntry } from '../../store/operations/messages-publish.js'
import type { ScheduleRow } from '../../store/operations/schedules.js'
import type { Logger } from '../../telemetry/index.js'
import { draftItem, readGroups } from '../publish/groups.js'
import { AS_ACCEPTED } from '../publish/settings.js'
import { itemOfSchedule, nextFire } from './schedule.js'

/** The clock is looked at this often at least: it may have been set while a timer ran. */
const LONGEST_SLEEP_MS = 15_000
const PAUSE_AFTER_FAILURE_MS = 1_000
const FIRES_PER_READ = 200

/** What the scheduler works with. */
export interface SchedulerDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  readonly offer: (rows: readonly PendingRow[]) => void
}

/**
 * Fires schedules when they are due.
 *
 * The time of the next fire stands in the store. A fire moves it on and publishes its messages in one transaction that
 * first checks that the schedule is still at that fire: so each fire happens once, whatever dies in between and however
 * often it is tried. The fire after it is the next one from now on. What fell into a time when the server was away, or
 * over which its clock jumped, is therefore made up for by one fire; and a clock that is set back fires nothing twice,
 * because the next fire stays where it is.
 */
export class Scheduler implements Service {
  readonly name = 'scheduler'
  readonly #deps: SchedulerDeps
  #phase: 'idle' | 'running' | 'stopped' = 'idle'
  #timer: Timer | undefined
  #round: Promise<void> | undefined
  #again = false

  constructor(deps: SchedulerDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    this.#phase = 'running'
    this.look()
  }

  async stop(): Promise<void> {
    this.#phase = 'stopped'
    this.#timer?.cancel()
    await this.#round
  }

  /** Looks for what is due. To be called when a schedule was changed. */
  look(): void {
    if (this.#phase !== 'running') return
    if (this.#round) {
      this.#again = true
      return
    }
    this.#timer?.cancel()
    this.#round = this.#fireAll().then((sleepMs) => this.#sleep(sleepMs))
  }

  #sleep(sleepMs: number): void {
    this.#round = undefined
    if (this.#phase !== 'running') return
    const waitMs = this.#again ? 0 : Math.min(LONGEST_SLEEP_MS, Math.max(0, sleepMs))
    this.#again = false
    if (waitMs === 0) this.look()
    else this.#timer = this.#deps.clock.after(waitMs, () => this.look())
  }

  /** Fires what is due. Answers how long there is nothing to do. Never rejects. */
  async #fireAll(): Promise<number> {
    const { store, clock, logger } = this.#deps
    try {
      const now = clock.now()
      const { rows } = await store.run(operations.schedules.due, { now, limit: FIRES_PER_READ })
      // Beside each other, because many are due at the same minute: together they need one commit.
      const fires = await Promise.allSettled(rows.map((row) => this.#fire(row)))
      const failed = fires.find((fire) => fire.status === 'rejected')
      if (failed) throw failed.reason
      const { nextAt } = await store.run(operations.schedules.due, { now, limit: 0 })
      return nextAt === null ? LONGEST_SLEEP_MS : nextAt - clock.now()
    } catch (error) {
      if (this.#phase !== 'running') return PAUSE_AFTER_FAILURE_MS
      logger.error({ error }, 'schedules could not be fired; trying again')
      if (!isError(error, 'store_damaged')) return PAUSE_AFTER_FAILURE_MS
      await this.#fireOneByOne().catch(() => undefined)
      return LONGEST_SLEEP_MS
    }
  }

  /** Where a damaged schedule keeps the others from being read together, each is read by itself. */
  async #fireOneByOne(): Promise<void> {
    const { store, clock, logger } = this.#deps
    for (const key of await store.run(operations.schedules.keys, {})) {
      if (this.#phase !== 'running') return
      try {
        const row = await store.run(operations.schedules.ifDue, { ...key, now: clock.now() })
        if (row) await this.#fire(row)
      } catch (error) {
        if (!isError(error, 'store_damaged')) throw error
        logger.error({ error, ...key }, 'a schedule cannot be fired, because the store is damaged')
      }
    }
  }

  async #fire(row: ScheduleRow): Promise<void> {
    const { store, clock, offer } = this.#deps
    const { account_id: accountId, schedule_id: scheduleId, next_at: dueAt } = row
    if (this.#phase !== 'running' || dueAt === null) return
    const now = clock.now()
    const drafted = await this.#draft(row, now)
    const nextAt = nextFire(row, Math.max(now, dueAt))
    offer(await store.run(operations.schedules.fire, { accountId, scheduleId, dueAt, nextAt, now, ...drafted }))
  }

  /** The messages of a fire, or why there are none. */
  async #draft(row: ScheduleRow, now: number): Promise<{ entries: readonly PublishEntry[]; error: string | null }> {
    const { store } = this.#deps
    const { account_id: accountId, schedule_id: scheduleId, caller_ip: callerIp } = row
    const item = itemOfSchedule(row)
    const groups = await readGroups(store, accountId, [item])
    try {
      const { entries } = draftItem(item, { accountId, callerIp, now, limits: AS_ACCEPTED, scheduleId }, groups)
      return { entries, error: null }
    } catch (error) {
      if (error instanceof HomeportError) return { entries: [], error: error.message }
      throw error
    }
  }
}
