import type { Timer } from '../../base/index.js'
import type { DatabasesDeps, SleepControl } from '../deps.js'
import type { DesiredEngines } from '../desired-engine.js'
import type { SleepCandidate, Sleeper, Task } from './sleeper.js'
import * as sleepers from './sleeper.js'
import { explain, type WhyAwake } from './why.js'

/** What `Sleep` is built from. */
export interface SleepDeps
  extends Pick<DatabasesDeps, 'fleet' | 'clock' | 'logger' | 'traffic' | 'onAsleep' | 'meter'> {
  readonly engines: Pick<DesiredEngines, 'specOf' | 'idleMsOf' | 'servesClients'>
  /** When more databases than this are awake, those idle for only a short time fall asleep too. */
  readonly mostAwake: number
}

/** Shortest time between two checks, however many databases change. */
const CHECK_GAP_MS = 200
/** Longest time until a database that is kept awake is checked again. */
const MAX_CHECK_MS = 60_000
/** A database that is kept awake is checked this often per idle time, to notice soon when the reason has ended. */
const CHECKS_PER_IDLE_TIME = 4
/** Databases that fall asleep in parallel. */
const PARALLEL = 8

/**
 * Stops the engines of idle databases and starts them again. One timer serves all databases; it is set only while one is
 * awake.
 */
export class Sleep implements SleepControl {
  readonly #deps: SleepDeps
  readonly #sleepers = new Map<string, Sleeper>()
  readonly #goingToSleep = new Set<Promise<void>>()
  /**
   * Suspended databases whose engines still had commands to answer when they were to stop. New commands wait since then.
   */
  readonly #holding = new Set<string>()
  readonly #startedAtMs: number
  #timer: { readonly atMs: number; readonly timer: Timer } | undefined
  #stopped = false

  constructor(deps: SleepDeps) {
    this.#deps = deps
    this.#startedAtMs = deps.clock.now()
  }

  /** Whether the engines of any database run or are starting. */
  get isAnyAwake(): boolean {
    return [...this.#sleepers.values()].some(sleepers.isDesiredUp)
  }

  /** Whether the engines of a database run or are starting. */
  isAwake(databaseId: string): boolean {
    return sleepers.isDesiredUp(this.#sleeperOf(databaseId))
  }

  /**
   * A request needs the engines of a database now: starts them if it sleeps. The fleet knows the desired state before
   * this returns, so the next call of the fleet waits for the engines.
   */
  wake(databaseId: string): void {
    const sleeper = this.#sleeperOf(databaseId)
    if (sleepers.isDesiredUp(sleeper)) {
      this.#set(sleepers.used(sleeper, this.#now()))
      return
    }
    const spec = this.#stopped ? undefined : this.#deps.engines.specOf(databaseId)
    if (!spec) return
    this.#set(sleepers.woken(sleeper, this.#now()))
    if (this.#deps.meter) this.#deps.meter.wakeUps++
    this.#scheduleCheck(this.#now())
    this.#deps.fleet.ensure(spec, 'while-loading').catch((error: unknown) => this.#onFailedWake(databaseId, error))
  }

  /** Notes that the caller itself has started the engines of a database. */
  reportStarted(databaseId: string): void {
    const sleeper = this.#sleeperOf(databaseId)
    this.#set(
      sleepers.isDesiredUp(sleeper) ? sleepers.used(sleeper, this.#now()) : sleepers.woken(sleeper, this.#now()),
    )
    this.#scheduleCheck(this.#now())
  }

  /** Keeps a database from falling asleep until the work has settled. Does not wake it. */
  async during<Result>(databaseId: string, task: Task, work: () => Promise<Result>): Promise<Result> {
    this.#set(sleepers.withTask(this.#sleeperOf(databaseId), task, 1, this.#now()))
    try {
      return await work()
    } finally {
      const sleeper = this.#sleepers.get(databaseId)
      if (sleeper) this.#set(sleepers.withTask(sleeper, task, -1, this.#now()))
      this.#scheduleCheck(this.#now())
    }
  }

  /** Forgets a database that this node no longer serves. */
  forget(databaseId: string): void {
    this.#sleepers.delete(databaseId)
    this.#holding.delete(databaseId)
  }

  /** Checks soon: something that decides about sleep has changed. */
  recheck(): void {
    this.#proceedWhereResumed()
    this.#scheduleCheck(this.#now())
  }

  #proceedWhereResumed(): void {
    const { engines, traffic } = this.#deps
    for (const databaseId of this.#holding) {
      if (!engines.servesClients(databaseId)) continue
      this.#holding.delete(databaseId)
      traffic.proceed(databaseId)
    }
  }

  /** What keeps a database awake, or since when it sleeps. Does not wake it. */
  why(databaseId: string): Promise<WhyAwake> {
    const { fleet, traffic, engines } = this.#deps
    const sleeper = this.#sleeperOf(databaseId)
    return explain(sleeper, {
      meter: traffic.meterOf(databaseId),
      idleMs: engines.idleMsOf(databaseId),
      occupancy: () => fleet.occupancy(databaseId),
    })
  }

  /** Starts and stops no more engines. Active work ends with the fleet. */
  stop(): void {
    this.#stopped = true
    this.#timer?.timer.cancel()
    this.#timer = undefined
  }

  #now(): number {
    return this.#deps.clock.now()
  }

  /** Only databases that have been awake since the start have an entry; all others sleep. */
  #sleeperOf(databaseId: string): Sleeper {
    return this.#sleepers.get(databaseId) ?? sleepers.newSleeper(databaseId, this.#startedAtMs)
  }

  #set(sleeper: Sleeper): void {
    this.#sleepers.set(sleeper.databaseId, sleeper)
  }

  /** Schedules a check at the given time, unless an earlier one is scheduled. */
  #scheduleCheck(atMs: number): void {
    const nowMs = this.#now()
    const dueMs = Math.max(atMs, nowMs + CHECK_GAP_MS)
    // A check that is due sooner stays: changes that never end must not put it off.
    if (this.#stopped || (this.#timer && this.#timer.atMs <= dueMs)) return
    this.#timer?.timer.cancel()
    const timer = this.#deps.clock.after(dueMs - nowMs, () => this.#check())
    this.#timer = { atMs: dueMs, timer }
  }

  #check(): void {
    this.#timer = undefined
    const nowMs = this.#now()
    const candidates: SleepCandidate[] = []
    const awake = [...this.#sleepers.values()].filter((one) => one.state === 'awake')
    for (const each of awake) {
      const sleeper = this.#usedByNow(each, nowMs)
      const candidate = this.#candidateOf(sleeper)
      if (candidate) candidates.push(candidate)
      else this.#onKeptAwake(sleeper, nowMs)
    }
    const { due, nextAtMs } = sleepers.sleepPlanOf(candidates, awake.length - this.#deps.mostAwake, nowMs)
    for (const candidate of due) this.#beginToSleep(candidate)
    if (nextAtMs !== undefined) this.#scheduleCheck(nextAtMs)
  }

  /** If the clock was ahead when a database was used, the database counts as used now. */
  #usedByNow(sleeper: Sleeper, nowMs: number): Sleeper {
    if (sleeper.usedAtMs <= nowMs) return sleeper
    const used = sleepers.used(sleeper, nowMs)
    this.#set(used)
    return used
  }

  /** Undefined while something keeps the database awake. */
  #candidateOf(sleeper: Sleeper): SleepCandidate | undefined {
    const { traffic, engines } = this.#deps
    const { databaseId, usedAtMs } = sleeper
    if (sleepers.hasTasks(sleeper) || sleepers.isKeptUnsaved(sleeper, this.#now())) return undefined
    if (!engines.servesClients(databaseId)) return { databaseId, usedAtMs, idleMs: 0 }
    const meter = traffic.meterOf(databaseId)
    if (meter && meter.holds > 0) return undefined
    const activityAtMs = meter?.lastActivityAtMs ?? 0
    // An activity ahead of the clock was before the clock was set back, so it is older than `usedAtMs`.
    const lastMs = activityAtMs > this.#now() ? usedAtMs : Math.max(usedAtMs, activityAtMs)
    return { databaseId, usedAtMs: lastMs, idleMs: engines.idleMsOf(databaseId) }
  }

  #onKeptAwake(sleeper: Sleeper, nowMs: number): void {
    this.#set(sleepers.used(sleeper, nowMs))
    this.#scheduleCheck(
      nowMs + Math.min(this.#deps.engines.idleMsOf(sleeper.databaseId) / CHECKS_PER_IDLE_TIME, MAX_CHECK_MS),
    )
  }

  #beginToSleep({ databaseId, usedAtMs }: SleepCandidate): void {
    if (this.#goingToSleep.size >= PARALLEL) {
      this.#scheduleCheck(this.#now())
      return
    }
    this.#set(sleepers.compacting(this.#sleeperOf(databaseId)))
    const goingToSleep = this.#putToSleep(databaseId, usedAtMs)
      .catch((error: unknown) => this.#onFailedRest(databaseId, error))
      .finally(() => {
        this.#goingToSleep.delete(goingToSleep)
        this.#scheduleCheck(this.#now())
      })
    this.#goingToSleep.add(goingToSleep)
  }

  async #putToSleep(databaseId: string, usedAtMs: number): Promise<void> {
    const { fleet, traffic, engines, logger } = this.#deps
    await fleet.compactLog(databaseId).catch((error: unknown) => {
      if (!this.#stopped) logger.warn('database_log_rewrite_failed', { databaseId, error })
    })
    const unsaved = await fleet.save(databaseId).then(
      () => undefined,
      (error: unknown) => ({ error }),
    )
    const sleeper = this.#sleepers.get(databaseId)
    if (this.#stopped || sleeper?.state !== 'compacting') return
    if (unsaved) {
      if (sleeper.unsavedAtMs === undefined) this.#onFailedRest(databaseId, unsaved.error)
      return this.#set(sleepers.unsaved(sleeper, this.#now()))
    }
    // Nothing else runs between here and the desired state that `rest` sets: a request comes either before, and is seen
    // here, or after, and finds the database falling asleep.
    const isUnused = this.#candidateOf(sleeper)?.usedAtMs === usedAtMs
    const manner = engines.servesClients(databaseId) ? 'when-unused' : 'and-send-away'
    const isReleased = isUnused && traffic.release(databaseId, manner)
    if (isReleased) this.#holding.delete(databaseId)
    else if (isUnused && manner === 'and-send-away') this.#holding.add(databaseId)
    this.#set(isReleased ? sleepers.fallingAsleep(sleeper) : sleepers.used(sleeper, this.#now()))
    if (isReleased) await this.#rest(databaseId)
  }

  async #rest(databaseId: string): Promise<void> {
    await this.#deps.fleet.suspend(databaseId)
    const sleeper = this.#sleepers.get(databaseId)
    if (sleeper?.state !== 'falling-asleep') return
    this.#set(sleepers.asleep(sleeper, this.#now()))
    this.#deps.logger.info('database_asleep', { databaseId })
    this.#deps.onAsleep?.()
  }

  /**
   * Called when engines have not started. The waiting requests have got the error. The next request retries; when only a
   * replica failed to start, the fleet does.
   */
  #onFailedWake(databaseId: string, error: unknown): void {
    const { fleet, logger } = this.#deps
    const sleeper = this.#sleepers.get(databaseId)
    if (this.#stopped || !sleeper || !sleepers.isDesiredUp(sleeper)) return
    const isServing = ['running', 'answering'].includes(fleet.observe(databaseId)[0]?.state ?? '')
    logger.error(isServing ? 'database_replica_failed' : 'database_wake_failed', { databaseId, error })
    if (isServing || sleepers.hasTasks(sleeper)) return
    this.#set(sleepers.fallingAsleep(sleeper))
    this.#rest(databaseId).catch((restError: unknown) => this.#onFailedRest(databaseId, restError))
  }

  #onFailedRest(databaseId: string, error: unknown): void {
    if (!this.#stopped) this.#deps.logger.error('database_sleep_failed', { databaseId, error })
  }
}
