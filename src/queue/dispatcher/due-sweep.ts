import { type Clock, type Timer, Turns } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import { AfterLostCommits } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import { DUE_WINDOW_MS, DueComparison, type DueComparisonDeps } from './due-comparison.js'

/** How often messages that have just become due are compared. */
const SWEEP_EVERY_MS = 2_000
/** After a longer time between two sweeps, everything is compared: a commit may come later than its messages are due. */
const LONGEST_GAP_MS = 10_000
/** A sweep ends when nothing has happened for this long. Within it, all that memory covered has become due. */
const ACTIVE_MS = 60_000 + DUE_WINDOW_MS
/** How often everything is compared. */
const WALK_EVERY_MS = 5 * 60_000
/** One comparison runs at a time. */
const COMPARISON = ''

/** What the sweep is built from. `onFound` is also called when limits have changed. */
export interface DueSweepDeps extends DueComparisonDeps {
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Finds what the dispatcher's memory has missed: when to compare it with the store (`DueComparison`).
 *
 * The caller that commits a message offers it to the dispatcher. If the reply to a commit is lost, nobody does: the message is
 * pending in the store, memory covers its place and does not hold it. Such a message is a stray. The same commit may
 * have ended messages that memory still holds, and changed the limits of flow-control keys.
 *
 * In a cluster, the hint of another node that has published or changed a message may be lost: the same kind of stray. A node
 * that did not hear anything does not know that anything happens, so its sweeps do not end; after a time without the store they
 * compare everything. A load of strays that has failed is no try: the next sweep compares everything.
 *
 * - After a lost commit, everything is compared: limits, held messages, and all places that memory covers.
 * - Every 2 s, the messages that became due in the last 15 s are compared, while anything happens at all; in a cluster always.
 * - Every 5 minutes, all places that memory covers are compared.
 *
 * The last two also guard against defects: without a fault they never find a stray.
 */
export class DueSweep {
  readonly #deps: DueSweepDeps
  readonly #comparison: DueComparison
  readonly #turns = new Turns()
  readonly #afterLostCommits: AfterLostCommits
  #sweepTimer: Timer | undefined
  #walkTimer: Timer | undefined
  #activeAt = Number.NEGATIVE_INFINITY
  #sweptAt = Number.NEGATIVE_INFINITY
  /** Strays that a sweep has found could not be loaded. */
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

  /** A load of strays is over, which did not bring these. */
  straysLoaded(unread: readonly number[] | 'failed'): void {
    if (unread === 'failed') this.#isBehind = true
    else this.#comparison.noteUnread(unread)
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
    // The store was away, and hints may have been lost before.
    const isLate = this.#deps.partitions() !== undefined && now - this.#sweptAt > LONGEST_GAP_MS
    const isBehind = this.#isBehind || isLate
    this.#isBehind = false
    if (isBehind) this.#sweptAt = Number.NEGATIVE_INFINITY
    await (isBehind ? this.#walk() : this.#comparison.recent(now))
    this.#sweptAt = now
  }

  #walk(): Promise<void> {
    return this.#comparison.all(() => !this.#isStopped)
  }

  /** What a lost commit may have changed: limits, held messages, and messages that nobody has offered. */
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

  /** A comparison that failed is made again the next time. */
  #compareSoon(compare: () => Promise<void>): void {
    this.#inTurn(compare).catch((error: unknown) => {
      // The store closes: the dispatcher stops soon.
      if (!this.#isStopped && !isError(error, 'starting')) this.#deps.logger.warn('queue_sweep_failed', { error })
    })
  }
}
