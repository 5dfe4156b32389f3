import type { Timer } from '../../base/index.js'
import type { DatabasesDeps, SleepControl } from '../deps.js'
import type { DesiredEngines } from '../desired-engine.js'
import type { SleepCandidate, Sleeper, Task } from './sleeper.js'
import * as sleepers from './sleeper.js'
import { explain, type WhyAwake } from './why.js'

/** What sleep has to know of the databases around it. */
export interface SleepDeps extends Pick<DatabasesDeps, 'fleet' | 'clock' | 'logger' | 'traffic' | 'onAsleep'> {
  readonly engines: Pick<DesiredEngines, 'specOf' | 'idleMsOf' | 'servesClients'>
  /** Above so many, databases that are idle for a short time only go to sleep as well. */
  readonly mostAwake: number
}

/** Looks follow each other at this distance at least, however many databases change. */
const CHECK_GAP_MS = 200
/** A database that something holds awake is looked at again after this time at the latest. */
const LONGEST_CHECK_MS = 60_000
/** A hold that ended since the last look is noticed within this share of the time a database may be idle. */
const CHECKS_PER_IDLE_TIME = 4
/** Databases that are put to sleep side by side. */
const PARALLEL = 8

/**
 * Lets the engines of databases rest that nobody uses, and wakes them. One timer serves all databases, and is only set
 * while one is awake.
 */
export class Sleep implements SleepControl {
  readonly #deps: SleepDeps
  readonly #sleepers = new Map<string, Sleeper>()
  readonly #goingToSleep = new Set<Promise<void>>()
  readonly #startedAtMs: number
  #timer: { readonly atMs: number; readonly timer: Timer } | undefined
  #stopped = false

  constructor(deps: SleepDeps) {
    this.#deps = deps
    this.#startedAtMs = deps.clock.now()
  }

  /** Whether the engines of any database run or are about to. */
  get isAnyAwake(): boolean {
    return [...this.#sleepers.values()].some(sleepers.isUp)
  }

  /** Whether the engines of a database run or are about to. */
  isAwake(databaseId: string): boolean {
    return sleepers.isUp(this.#of(databaseId))
  }

  /**
   * Somebody needs the engines of a database now: begins to start them if it sleeps. The desired state is declared before this
   * returns, so that the next request to the fleet waits for them.
   */
  wake(databaseId: string): void {
    const sleeper = this.#of(databaseId)
    if (sleepers.isUp(sleeper)) {
      this.#put(sleepers.used(sleeper, this.#now()))
      return
    }
    const spec = this.#stopped ? undefined : this.#deps.engines.specOf(databaseId)
    if (!spec) return
    this.#put(sleepers.woken(sleeper, this.#now()))
    this.#scheduleCheck(this.#now())
    this.#deps.fleet.ensure(spec, 'while-loading').catch((error: unknown) => this.#onFailedWake(databaseId, error))
  }

  /** The engines of a database run, or are being started, by somebody else's desired state. */
  noteStarted(databaseId: string): void {
    const sleeper = this.#of(databaseId)
    this.#put(sleepers.isUp(sleeper) ? sleepers.used(sleeper, this.#now()) : sleepers.woken(sleeper, this.#now()))
    this.#scheduleCheck(this.#now())
  }

  /** Keeps a database from falling asleep until the work has ended, well or not. Does not wake it. */
  async during<Result>(databaseId: string, task: Task, work: () => Promise<Result>): Promise<Result> {
    this.#put(sleepers.withTask(this.#of(databaseId), task, 1, this.#now()))
    try {
      return await work()
    } finally {
      const sleeper = this.#sleepers.get(databaseId)
      if (sleeper) this.#put(sleepers.withTask(sleeper, task, -1, this.#now()))
      this.#scheduleCheck(this.#now())
    }
  }

  /** A database is gone. */
  forget(databaseId: string): void {
    this.#sleepers.delete(databaseId)
  }

  /** Something that decides about sleep has changed. */
  recheck(): void {
    this.#scheduleCheck(this.#now())
  }

  /** What keeps a database awake, or since when it sleeps. Wakes nothing. */
  why(databaseId: string): Promise<WhyAwake> {
    const { fleet, traffic, engines } = this.#deps
    const sleeper = this.#of(databaseId)
    return explain(sleeper, {
      meter: traffic.meterOf(databaseId),
      idleMs: engines.idleMsOf(databaseId),
      occupancy: () => fleet.occupancy(databaseId),
    })
  }

  /** Puts nothing more to sleep and wakes nothing more. What is under way ends with the fleet. */
  stop(): void {
    this.#stopped = true
    this.#timer?.timer.cancel()
    this.#timer = undefined
  }

  #now(): number {
    return this.#deps.clock.now()
  }

  /** After a start every database sleeps; only those that were awake since have an entry. */
  #of(databaseId: string): Sleeper {
    return this.#sleepers.get(databaseId) ?? sleepers.newSleeper(databaseId, this.#startedAtMs)
  }

  #put(sleeper: Sleeper): void {
    this.#sleepers.set(sleeper.databaseId, sleeper)
  }

  /** Looks at the given time or, if a look comes before it anyway, then. */
  #scheduleCheck(atMs: number): void {
    if (this.#stopped || (this.#timer && this.#timer.atMs <= atMs)) return
    this.#timer?.timer.cancel()
    const delayMs = Math.max(atMs - this.#now(), CHECK_GAP_MS)
    const timer = this.#deps.clock.after(delayMs, () => this.#check())
    this.#timer = { atMs: this.#now() + delayMs, timer }
  }

  #check(): void {
    this.#timer = undefined
    const nowMs = this.#now()
    const candidates: SleepCandidate[] = []
    const awake = [...this.#sleepers.values()].filter((one) => one.state === 'awake')
    for (const sleeper of awake) {
      const candidate = this.#candidateOf(sleeper)
      if (candidate) candidates.push(candidate)
      else this.#onHeld(sleeper, nowMs)
    }
    const { due, nextAtMs } = sleepers.sleepPlanOf(candidates, awake.length - this.#deps.mostAwake, nowMs)
    for (const candidate of due) this.#beginToSleep(candidate)
    if (nextAtMs !== undefined) this.#scheduleCheck(nextAtMs)
  }

  /** Undefined while something holds the database awake. */
  #candidateOf(sleeper: Sleeper): SleepCandidate | undefined {
    const { traffic, engines } = this.#deps
    const { databaseId, usedAtMs } = sleeper
    if (sleepers.isWorkedOn(sleeper)) return undefined
    if (!engines.servesClients(databaseId)) return { databaseId, usedAtMs, idleMs: 0 }
    const meter = traffic.meterOf(databaseId)
    if (meter && meter.holds > 0) return undefined
    return {
      databaseId,
      usedAtMs: Math.max(usedAtMs, meter?.lastActivityAtMs ?? 0),
      idleMs: engines.idleMsOf(databaseId),
    }
  }

  #onHeld(sleeper: Sleeper, nowMs: number): void {
    this.#put(sleepers.used(sleeper, nowMs))
    this.#scheduleCheck(
      nowMs + Math.min(this.#deps.engines.idleMsOf(sleeper.databaseId) / CHECKS_PER_IDLE_TIME, LONGEST_CHECK_MS),
    )
  }

  #beginToSleep({ databaseId, usedAtMs }: SleepCandidate): void {
    if (this.#goingToSleep.size >= PARALLEL) {
      this.#scheduleCheck(this.#now())
      return
    }
    this.#put(sleepers.compacting(this.#of(databaseId)))
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
    await fleet.tidyLog(databaseId).catch((error: unknown) => {
      if (!this.#stopped)
        logger.warn({ databaseId, error }, 'the log of a database was not rewritten before it falls asleep')
    })
    const sleeper = this.#sleepers.get(databaseId)
    if (this.#stopped || sleeper?.state !== 'compacting') return
    // From here to the desired state of `rest` nothing else runs: a request comes either before it or finds it falling asleep.
    const isUnused = this.#candidateOf(sleeper)?.usedAtMs === usedAtMs
    const manner = engines.servesClients(databaseId) ? 'when-unused' : 'and-send-away'
    const isReleased = isUnused && traffic.release(databaseId, manner)
    this.#put(isReleased ? sleepers.fallingAsleep(sleeper) : sleepers.used(sleeper, this.#now()))
    if (isReleased) await this.#rest(databaseId)
  }

  async #rest(databaseId: string): Promise<void> {
    await this.#deps.fleet.rest(databaseId)
    const sleeper = this.#sleepers.get(databaseId)
    if (sleeper?.state !== 'falling-asleep') return
    this.#put(sleepers.asleep(sleeper, this.#now()))
    this.#deps.logger.info({ databaseId }, 'a database sleeps')
    this.#deps.onAsleep?.()
  }

  /**
   * Those who waited have been told. Nothing is tried again before the next request, unless only a replica is missing.
   */
  #onFailedWake(databaseId: string, error: unknown): void {
    const { fleet, logger } = this.#deps
    const sleeper = this.#sleepers.get(databaseId)
    if (this.#stopped || !sleeper || !sleepers.isUp(sleeper)) return
    const isServing = ['running', 'answering'].includes(fleet.observe(databaseId)[0]?.state ?? '')
    logger.error({ databaseId, error }, isServing ? 'a read region does not come up' : 'a database does not wake')
    if (isServing || sleepers.isWorkedOn(sleeper)) return
    this.#put(sleepers.fallingAsleep(sleeper))
    this.#rest(databaseId).catch((restError: unknown) => this.#onFailedRest(databaseId, restError))
  }

  #onFailedRest(databaseId: string, error: unknown): void {
    if (!this.#stopped) this.#deps.logger.error({ databaseId, error }, 'a database cannot fall asleep')
  }
}
