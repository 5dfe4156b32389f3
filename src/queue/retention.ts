import { AgeTrust, type Clock, type Service, type Timer } from '../base/index.js'
import { isError } from '../contract/errors/errors.js'
import type { Logger } from '../telemetry/index.js'
import type { BudgetResult, BudgetStep } from './transactions/messages-retention.js'

const SWEEP_INTERVAL_MS = 10 * 60_000
/** Rows scanned in one transaction. Other traffic runs between two transactions. */
const CHUNK = 500
/** A sweep skips at most this many damaged rows; the next sweep starts again. */
const MAX_DAMAGED = 5_000

/** One step of a sweep. */
export interface SweepStep {
  /** Where the previous step ended; 0 for the first. */
  readonly after: number
  /** Items that ended before this time are deleted. */
  readonly finishedBefore: number
  readonly now: number
  readonly limit: number
}

/** What retention is built from. */
export interface RetentionDeps {
  /** Name of the retained items, for the log. */
  readonly name: string
  readonly clock: Clock
  readonly logger: Logger
  /** How long an ended item is kept. */
  readonly keepMs: number
  /** Runs before each sweep by age, in small steps while `shouldContinue` answers true. */
  readonly beforeSweep?: (
    times: Pick<SweepStep, 'finishedBefore' | 'now'>,
    shouldContinue: () => boolean,
  ) => Promise<void>
  /** Runs one step. Returns where the next one starts, or `undefined` when the rest is too young. */
  readonly sweep: (step: SweepStep) => Promise<number | undefined>
  /** Runs after each sweep, in small steps while `shouldContinue` answers true. */
  readonly afterSweep?: (shouldContinue: () => boolean) => Promise<void>
}

/** Deletes items that ended long enough ago, in small steps. */
export class Retention implements Service {
  readonly name: string
  readonly #deps: RetentionDeps
  #timer: Timer | undefined
  #stopped = false
  #sweeping: Promise<void> = Promise.resolve()
  readonly #trust = new AgeTrust()

  constructor(deps: RetentionDeps) {
    this.name = `${deps.name} retention`
    this.#deps = deps
  }

  async start(): Promise<void> {
    this.#scheduleSweep()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#sweeping
  }

  #scheduleSweep(): void {
    if (this.#stopped) return
    const { clock } = this.#deps
    const dueAt = clock.now() + SWEEP_INTERVAL_MS
    this.#timer = clock.after(SWEEP_INTERVAL_MS, () => {
      this.#noteJump(clock.now() - dueAt)
      this.#sweeping = this.#sweep().finally(() => this.#scheduleSweep())
    })
  }

  /** The timer is monotonic, so a difference from the clock means that the clock was set, or the machine was suspended. */
  #noteJump(byMs: number): void {
    const { clock, logger, name } = this.#deps
    if (this.#trust.jumped(byMs, clock.now())) logger.warn('queue_retention_waits', { what: name, byMs })
  }

  async #sweep(): Promise<void> {
    const { logger, name } = this.#deps
    const shouldContinue = (): boolean => !this.#stopped
    try {
      if (this.#trust.at(this.#deps.clock.now())) await this.#sweepOld(shouldContinue)
      await this.#deps.afterSweep?.(shouldContinue)
    } catch (error) {
      if (!this.#stopped) logger.warn('queue_retention_failed', { what: name, error })
    }
  }

  async #sweepOld(shouldContinue: () => boolean): Promise<void> {
    const { clock, keepMs, beforeSweep, sweep } = this.#deps
    const now = clock.now()
    const args = { finishedBefore: now - keepMs, now }
    await beforeSweep?.(args, shouldContinue).catch((error: unknown) => {
      // The store has reported the damage, which must not prevent the deletion of other items.
      if (!isError(error, 'store_damaged')) throw error
    })
    let limit = CHUNK
    let damaged = 0
    let after = 0
    while (shouldContinue()) {
      try {
        const next = await sweep({ ...args, after, limit })
        if (next === undefined) return
        after = next
        limit = Math.min(CHUNK, limit * 2)
      } catch (error) {
        if (!isError(error, 'store_damaged') || ++damaged > MAX_DAMAGED) throw error
        // Halve the step up to the damaged row, then step over it alone.
        if (limit === 1) after++
        limit = Math.max(1, limit >> 1)
      }
    }
  }
}

/** Rows measured in one read, and rows deleted in one transaction. Other traffic runs between two of these steps. */
const READ_CHUNK = 2_000
const DELETE_CHUNK = 500

/** What a byte budget is built from. */
export interface ByteBudgetDeps {
  /** Bytes to keep. The newest ended items stay. */
  readonly keepBytes: number
  /** Measures the next older items before a number. Items that have not ended count 0 bytes. */
  readonly measure: (step: BudgetStep) => Promise<BudgetResult>
  /** Deletes ended items after one number and up to another. Returns where the next step starts. */
  readonly trim: (step: { after: number; upTo: number; limit: number }) => Promise<number | undefined>
}

/** Deletes the oldest ended items while all together exceed a budget. */
export class ByteBudget {
  readonly #deps: ByteBudgetDeps

  constructor(deps: ByteBudgetDeps) {
    this.#deps = deps
  }

  /** Measures and deletes in small steps while `shouldContinue` answers true. */
  async enforce(shouldContinue: () => boolean): Promise<void> {
    const upTo = await this.#firstBeyond(shouldContinue)
    if (upTo === undefined) return
    let after: number | undefined = 0
    while (after !== undefined && shouldContinue()) after = await this.#deps.trim({ after, upTo, limit: DELETE_CHUNK })
  }

  /** The newest item that does not fit the budget. */
  async #firstBeyond(shouldContinue: () => boolean): Promise<number | undefined> {
    let step: BudgetStep = { before: Number.MAX_SAFE_INTEGER, leftBytes: this.#deps.keepBytes, limit: READ_CHUNK }
    while (shouldContinue()) {
      const result = await this.#deps.measure(step)
      if (result.kind === 'beyond') return result.seq
      if (result.kind === 'fits') return undefined
      step = { before: result.before, leftBytes: result.leftBytes, limit: READ_CHUNK }
    }
    return undefined
  }
}
