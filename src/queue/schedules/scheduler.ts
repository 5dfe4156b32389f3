import { type Clock, type Service, type Timer, TimeSlice } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { isPassing, type Store } from '../../store/index.js'
import type { Logger, PublicationEnd, QueueMeter, Tracer } from '../../telemetry/index.js'
import { batchesOf } from '../batches.js'
import { groupNameOf } from '../publish/destination.js'
import { draftItem, readGroups, refuseLarge } from '../publish/groups.js'
import type { DropReplaced } from '../publish/publishing.js'
import { AS_ACCEPTED } from '../publish/settings.js'
import { itemInTrace, refusedBy, type TracedItem, traceItem } from '../publish/traced.js'
import type { PendingRow, PublishEntry } from '../transactions/messages.js'
import type { ScheduleKey, ScheduleRow } from '../transactions/schedules.js'
import * as schedules from '../transactions/schedules.js'
import type { PublishItem } from '../types.js'
import { itemOfSchedule, nextFire } from './schedule.js'

/** Longest sleep between two checks, because the clock may be set while a timer runs. */
const MAX_SLEEP_MS = 15_000
const PAUSE_AFTER_FAILURE_MS = 1_000
/** Large enough that a read costs little compared to the fires, and small enough that each account soon has its turn. */
const FIRES_PER_READ = 2_000
/** Schedules that are drafted and stored together: so few that drafting them does not delay other work. */
const AT_ONCE = { items: 50, bytes: 16 * 2 ** 20 }
const CHECKS_PER_READ = 200
/** If the clock is set back by at most this much, no fire is repeated. */
const SMALL_JUMP_MS = 60_000

/** A fire that cannot be stored is skipped after this many permanent failures in a row. */
const GIVE_UP_AFTER = 5

/** Result of a fire of a suspended account. Like a fire of a paused schedule, it is not made up for later. */
const SKIPPED = { entries: [], error: schedules.SUSPENDED_FIRE }

/** The time after which to search for the next fire. */
function searchFrom(lastAt: number | null, now: number): number {
  return lastAt !== null && lastAt > now && lastAt - now <= SMALL_JUMP_MS ? lastAt : now
}

interface FirePlace {
  readonly accountId: string
  readonly scheduleId: string
  readonly dueAt: number
  readonly madeAt: number
  readonly nextAt: number | null
  readonly now: number
}

/** Gives a schedule its weight in a batch. A schedule with a URL group fires alone, because it may make many messages. */
const weighed = (one: schedules.DueSchedule): schedules.DueSchedule =>
  groupNameOf(one.target) === undefined ? one : { ...one, bytes: AT_ONCE.bytes }

const keyOf = ({ accountId, scheduleId }: ScheduleKey): string => `${accountId}/${scheduleId}`

interface Drafted {
  readonly entries: readonly PublishEntry[]
  readonly error: string | null
}

function endOfFire({ entries, error }: Drafted, rows: readonly PendingRow[]): PublicationEnd {
  if (error !== null) return { kind: 'refused', code: 'invalid_request' }
  const messageIds = entries.map(({ message }) => message.message_id)
  return { kind: 'accepted', messageIds, isDuplicate: messageIds.length > 0 && rows.length === 0 }
}

/** What the scheduler is built from. */
export interface SchedulerDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  /** Called with the numbers of messages that a fire has replaced, after its commit. */
  readonly drop: DropReplaced
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly meter: QueueMeter
  /** The partition of what is published here; `undefined` on a server that is alone. */
  readonly partitionFor: (accountId: string) => number | undefined
  /** Whether this node is the leader. Only the leader fires schedules. */
  readonly isLeader: () => boolean
  /** Whether an account is held: none of its messages is delivered now. */
  readonly isHeld: (accountId: string) => boolean
  /** Daily message limit of an account; `undefined`: no limit. */
  readonly dailyMessagesOf: (accountId: string) => number | undefined
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
}

/**
 * Fires schedules when they are due.
 *
 * The store holds the time of the next fire. One transaction moves that time on and publishes the messages
 * of the fire. It first checks that the schedule is still at this fire and was not replaced. So each fire
 * happens once, despite crashes and retries.
 *
 * The next fire is computed from the current time. So fires that were missed while the server was off, or skipped by a
 * jump of the clock, are made up by a single one. When the clock is set back, now or before a start, a schedule returns
 * to its next fire from that time on; otherwise it would not fire for as long as the clock was ahead. Fires of a
 * suspended account are skipped at their time, so that there are none to make up when the account is resumed.
 *
 * In a cluster only the leader fires. Call `clockChanged` when this node has become the leader.
 */
export class Scheduler implements Service {
  readonly name = 'scheduler'
  readonly #deps: SchedulerDeps
  #phase: 'idle' | 'running' | 'stopped' = 'idle'
  #timer: Timer | undefined
  #round: Promise<void> | undefined
  #runAgain = false
  /** `due`: a schedule's stored fire may be later than its next one, and is checked before the next round of fires. */
  #check: 'due' | 'done' = 'due'
  /** Failures in a row to store a fire, by its schedule. */
  readonly #failures = new Map<string, number>()

  constructor(deps: SchedulerDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    this.#phase = 'running'
    this.fireDue()
  }

  async stop(): Promise<void> {
    this.#phase = 'stopped'
    this.#timer?.cancel()
    await this.#round
  }

  /** Fires due schedules. Call it after a schedule was changed. */
  fireDue(): void {
    if (this.#phase !== 'running' || !this.#deps.isLeader()) return
    if (this.#round) {
      this.#runAgain = true
      return
    }
    this.#timer?.cancel()
    this.#round = this.#fireAll().then((sleepMs) => this.#sleep(sleepMs))
  }

  /** Call it after the clock was set: checks whether the stored fires are still the next ones. */
  clockChanged(): void {
    this.#check = 'due'
    this.fireDue()
  }

  #sleep(sleepMs: number): void {
    this.#round = undefined
    if (this.#phase !== 'running') return
    const waitMs = this.#runAgain ? 0 : Math.min(MAX_SLEEP_MS, Math.max(0, sleepMs))
    this.#runAgain = false
    if (waitMs === 0) this.fireDue()
    else this.#timer = this.#deps.clock.after(waitMs, () => this.fireDue())
  }

  /** Fires due schedules. Returns the milliseconds until the next fire. Never rejects. */
  async #fireAll(): Promise<number> {
    const { store, clock, logger } = this.#deps
    try {
      if (this.#check === 'due') await this.#moveFiresBack()
      const now = clock.now()
      const due = await store.run(schedules.due, { now, limit: FIRES_PER_READ })
      if (due.length < FIRES_PER_READ) this.#forgetFailures(due)
      for (const batch of batchesOf(due.map(weighed), AT_ONCE)) {
        // In parallel: many schedules are due at the same minute, and together they need one commit.
        const fires = await Promise.allSettled(batch.map((key) => this.#fireIfDue(key)))
        const failed = fires.find((fire) => fire.status === 'rejected')
        if (failed) throw failed.reason
      }
      if (due.length === FIRES_PER_READ) return 0
      const nextAt = await store.run(schedules.next, { after: now })
      return nextAt === null ? MAX_SLEEP_MS : nextAt - clock.now()
    } catch (error) {
      if (this.#phase !== 'running') return PAUSE_AFTER_FAILURE_MS
      logger.error('schedule_read_failed', { error })
      if (!isError(error, 'store_damaged')) {
        this.#check = 'due'
        return PAUSE_AFTER_FAILURE_MS
      }
      await this.#fireOneByOne().catch(() => undefined)
      return MAX_SLEEP_MS
    }
  }

  /** Forgets failures of schedules that are no longer due, because they were deleted, paused or replaced. */
  #forgetFailures(due: readonly ScheduleKey[]): void {
    if (this.#failures.size === 0) return
    const failing = new Set(due.map(keyOf))
    for (const key of this.#failures.keys()) if (!failing.has(key)) this.#failures.delete(key)
  }

  /** Fires schedules one by one when a damaged page prevents reading them together. */
  async #fireOneByOne(): Promise<void> {
    for (const key of await this.#deps.store.run(schedules.keys, {})) await this.#fireIfDue(key)
  }

  async #fireIfDue({ accountId, scheduleId }: ScheduleKey): Promise<void> {
    const { store, clock, logger } = this.#deps
    if (this.#phase !== 'running') return
    try {
      const row = await store.run(schedules.ifDue, { accountId, scheduleId, now: clock.now() })
      if (row) await this.#fire(row)
    } catch (error) {
      if (!isError(error, 'store_damaged')) throw error
      logger.error('schedule_damaged', { error, accountId, scheduleId })
    }
  }

  /**
   * While the clock was ahead, schedules moved on to fires that are now far away. Moves each back to its next fire from
   * now on, but repeats no fire that has just happened, even if the clock was corrected only slightly.
   */
  async #moveFiresBack(): Promise<void> {
    const { store, clock, logger } = this.#deps
    this.#check = 'done'
    let after: { accountId: string; scheduleId: string } | undefined = { accountId: '', scheduleId: '' }
    const slice = new TimeSlice()
    while (after && this.#phase === 'running') {
      const rows: readonly schedules.AheadRow[] = await store.run(schedules.ahead, {
        ...after,
        now: clock.now(),
        limit: CHECKS_PER_READ,
      })
      for (const row of rows) {
        if (slice.isOver) await slice.rest()
        const { account_id: accountId, schedule_id: scheduleId, next_at: from } = row
        const to = nextFire(row, searchFrom(row.last_at, clock.now()))
        if (to === null || to >= from) continue
        await store.run(schedules.pullBack, { accountId, scheduleId, from, to })
        logger.info('schedule_moved_back', { scheduleId, fromAt: from, toAt: to })
      }
      const last = rows.at(-1)
      after =
        last && rows.length === CHECKS_PER_READ
          ? { accountId: last.account_id, scheduleId: last.schedule_id }
          : undefined
    }
  }

  async #fire(row: ScheduleRow): Promise<void> {
    const { clock, meter } = this.#deps
    const { account_id: accountId, schedule_id: scheduleId, next_at: dueAt, created_at: madeAt } = row
    if (this.#phase !== 'running' || dueAt === null || !this.#deps.isLeader()) return
    const now = clock.now()
    const place = { accountId, scheduleId, dueAt, madeAt, nextAt: nextFire(row, Math.max(now, dueAt)), now }
    if (this.#deps.isHeld(accountId)) return void (await this.#commit({ ...place, ...SKIPPED }))
    const error = await this.#publish(row, place).catch((failure: unknown) => this.#giveUp(place, failure))
    this.#failures.delete(keyOf(place))
    if (error === null) meter.fires++
    else meter.failedFires++
  }

  /** Publishes the messages of a fire. Returns why nothing was published; null if it was. */
  async #publish(row: ScheduleRow, place: FirePlace): Promise<string | null> {
    const { tracer } = this.#deps
    const { scheduleId } = place
    // The trace context of the request that made the schedule is left out: otherwise all fires would be in one trace.
    const traced = tracer && traceItem(tracer, itemInTrace(itemOfSchedule(row), {}), { operation: 'fire', scheduleId })
    return this.#store(row, place, traced)
  }

  /** Skips a fire that cannot be stored, so that later fires are not blocked. @throws the failure while it is retried. */
  async #giveUp(place: FirePlace, failure: unknown): Promise<string | null> {
    if (isPassing(failure) || isError(failure, 'store_damaged')) throw failure
    const failures = (this.#failures.get(keyOf(place)) ?? 0) + 1
    this.#failures.set(keyOf(place), failures)
    if (failures < GIVE_UP_AFTER) throw failure
    const why = failure instanceof HomeportError ? failure.message : 'see schedule_read_failed in the log of the server'
    const { error } = await this.#commit({
      ...place,
      entries: [],
      error: `not published: it cannot be stored (${why})`,
    })
    return error
  }

  /** Stores the messages of a fire. `error` says why nothing was published. */
  async #commit(
    fire: schedules.Fire,
  ): Promise<{ readonly rows: readonly PendingRow[]; readonly error: string | null }> {
    const { store, offer, dailyMessagesOf, meter } = this.#deps
    const limit = dailyMessagesOf(fire.accountId)
    const quota = limit === undefined ? undefined : { accountId: fire.accountId, limit }
    try {
      const { offers, dropped } = await store.run(schedules.fire, { ...fire, quota })
      offer(offers)
      if (fire.error === null) meter.activity.add(fire.accountId, 'published', fire.entries.length)
      if (dropped.length > 0) await this.#deps.drop(dropped, fire.entries)
      return { rows: offers, error: fire.error }
    } catch (error) {
      if (!isError(error, 'daily_limit')) throw error
      await store.run(schedules.fire, { ...fire, entries: [], error: error.message })
      return { rows: [], error: error.message }
    }
  }

  /** Drafts the messages of a fire and stores them. Returns why nothing was published; null if it was. */
  async #store(row: ScheduleRow, fire: FirePlace, traced: TracedItem | undefined): Promise<string | null> {
    try {
      const drafted = await this.#draft(row, traced?.item ?? itemOfSchedule(row), fire.now)
      const { rows, error } = await this.#commit({ ...fire, ...drafted })
      traced?.span.end(endOfFire({ ...drafted, error }, rows))
      return error
    } catch (error) {
      traced?.span.end(refusedBy(error))
      throw error
    }
  }

  /** The messages of a fire, or the reason why there are none. */
  async #draft(row: ScheduleRow, item: PublishItem, now: number): Promise<Drafted> {
    const { store } = this.#deps
    const { account_id: accountId, schedule_id: scheduleId, caller_ip: callerIp } = row
    const groups = await readGroups(store, accountId, [item])
    try {
      refuseLarge([item], groups)
      const partition = this.#deps.partitionFor(accountId)
      const drafting = { accountId, callerIp, now, limits: AS_ACCEPTED, scheduleId, partition }
      const { entries } = draftItem(item, drafting, groups)
      return { entries, error: null }
    } catch (error) {
      if (error instanceof HomeportError) return { entries: [], error: error.message }
      throw error
    }
  }
}
