import { type Clock, TasksByKey, type Timer } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import { AfterLostCommits } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import { DUE_WINDOW_MS, DueComparison, type DueComparisonDeps } from './due-comparison.js'

/** How often messages that have just become due are compared. */
const SWEEP_EVERY_MS = 2_000
/**
 * After a longer gap between two sweeps, everything is compared, because a
 * commit may be later than its messages are due.
 */
const MAX_GAP_MS = 10_000
/** Sweeps stop after this long without activity. By then, all messages that memory covered have become due. */
const ACTIVE_MS = 60_000 + DUE_WINDOW_MS
/** How often everything is compared. */
const WALK_EVERY_MS = 5 * 60_000
/** Key of `TasksByKey`: one comparison runs at a time. */
const COMPARISON = ''

/** What the sweep is built from. `onFound` is also called when limits have changed. */
export interface DueSweepDeps extends DueComparisonDeps {
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Finds messages that the dispatcher's memory has missed. It decides when to compare
 * memory with the store (`DueComparison`).
 *
 * The caller that commits a message offers it to the dispatcher. If the reply to the commit is lost, no caller offers
 * it: the message is pending in the store, and memory covers its place without holding it. Such a message is a stray.
 * The same commit may have ended messages that memory still holds, and changed the limits of flow-control keys.
 *
 * In a cluster, a stray also results from a lost hint of a node that has published or changed a message. A node that
 * receives no hint sees no activity, so in a cluster sweeps never stop. After a time without the store, a sweep compares
 * everything. It also does so after a load of strays has failed; such a load does not count as a try.
 *
 * - After a lost commit, everything is compared: limits, held messages, and all places that memory covers.
 * - Every 2 s, the messages that became due in the last 15 s are compared, while there is activity; in a cluster always.
 * - Every 5 minutes, all places that memory covers are compared.
 *
 * The last two also guard against defects: without a fault they never find a stray.
 */
export class DueSweep {
  readonly #deps: DueSweepDeps
  readonly #comparison: DueComparison
  readonly #turns = new TasksByKey()
  readonly #afterLostCommits: AfterLostCommits
  #sweepTimer: Timer | undefined
  #walkTimer: Timer | undefined
  #activeAt = Number.NEGATIVE_INFINITY
  #sweptAt = Number.NEGATIVE_INFINITY
  /** A load of strays has failed: the next sweep compares everything. */
  #isBehind = false
  #isStopped = true

  constructor(deps: DueSweepDeps) {
    this.#deps = deps
    this.#comparison = new DueComparison(deps)
    const recover = () => this.#inTurn(() => this.#recover())
    this.#afterLostCommits = new AfterLostCommits({ ...deps, what: 'due messages', recover })
  }

  start(): void {
    this.#isStopped = false
    this.#afterLostCommits.start()
    this.#setWalkTimer()
    this.#sweptAt = this.#deps.clock.now()
    if (this.#deps.partitions()) this.noteActivity()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const timer of [this.#sweepTimer, this.#walkTimer]) timer?.cancel()
    await Promise.all([this.#afterLostCommits.stop(), this.#turns.idle()])
  }

  /** Messages have come or gone. */
  noteActivity(): void {
    this.#activeAt = this.#deps.clock.now()
    if (!this.#sweepTimer && !this.#isStopped) this.#setSweepTimer()
  }

  /** A load of strays has ended without bringing these, or has failed. */
  straysLoaded(unread: readonly number[] | 'failed'): void {
    if (unread === 'failed') this.#isBehind = true
    else this.#comparison.countUnread(unread)
  }

  #setSweepTimer(): void {
    this.#sweepTimer = this.#deps.clock.after(SWEEP_EVERY_MS, () => {
      const now = this.#deps.clock.now()
      this.#sweepTimer = undefined
      if (now - this.#activeAt > ACTIVE_MS && !this.#deps.partitions()) return
      this.#setSweepTimer()
      if (!this.#turns.has(COMPARISON)) this.#compareSoon(() => this.#sweep(now))
    })
  }

  #setWalkTimer(): void {
    this.#walkTimer = this.#deps.clock.after(WALK_EVERY_MS, () => {
      this.#setWalkTimer()
      this.#comparison.forgetTries()
      this.#compareSoon(() => this.#walk())
    })
  }

  async #sweep(now: number): Promise<void> {
    // The gap means that the store was unavailable, and hints may have been lost meanwhile.
    const isLate = this.#deps.partitions() !== undefined && now - this.#sweptAt > MAX_GAP_MS
    const isBehind = this.#isBehind || isLate
    this.#isBehind = false
    if (isBehind) this.#sweptAt = Number.NEGATIVE_INFINITY
    await (isBehind ? this.#walk() : this.#comparison.recent(now))
    this.#sweptAt = now
  }

  #walk(): Promise<void> {
    return this.#comparison.all(() => !this.#isStopped)
  }

  /** Compares what a lost commit may have changed: limits, held messages, and messages that no caller has offered. */
  async #recover(): Promise<void> {
    const { limits, backlog, onFound } = this.#deps
    this.noteActivity()
    await limits.readAll()
    await this.#comparison.dropEnded()
    backlog.rewind('parked')
    await this.#walk()
    onFound()
  }

  /** Runs one comparison after the other. */
  #inTurn(compare: () => Promise<void>): Promise<void> {
    return this.#turns.take(COMPARISON, async () => {
      if (!this.#isStopped) await compare()
    })
  }

  /** Runs a comparison in its turn. After a failure, the next sweep or walk compares again. */
  #compareSoon(compare: () => Promise<void>): void {
    this.#inTurn(compare).catch((error: unknown) => {
      // `starting` means that the store closes: the dispatcher stops soon.
      if (!this.#isStopped && !isError(error, 'starting')) this.#deps.logger.warn('queue_sweep_failed', { error })
    })
  }
}
