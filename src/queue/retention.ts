import type { Clock, Service, Timer } from '../base/index.js'
import { isError } from '../contract/errors/errors.js'
import type { Logger } from '../telemetry/index.js'
import type { BudgetPart, BudgetStep } from './transactions/messages-retention.js'

const EVERY_MS = 10 * 60_000
/** So much is looked at in one transaction; other traffic goes on between two. */
const CHUNK = 500
/** A sweep goes around damage this often; the next one begins anew. */
const MOST_DAMAGED = 5_000

/** One step of a sweep. */
export interface SweepStep {
  /** Where the step before has ended; 0 at first. */
  readonly after: number
  /** What ended before this time is too old. */
  readonly finishedBefore: number
  readonly now: number
  readonly limit: number
}

/** What retention works with. */
export interface RetentionDeps {
  /** What is retained, in words. */
  readonly name: string
  readonly clock: Clock
  readonly logger: Logger
  /** What has finished is deleted this long after its end. */
  readonly keepMs: number
  /** Takes one step; answers where to go on, or `undefined` when the rest is too young. */
  readonly sweep: (step: SweepStep) => Promise<number | undefined>
  /** What follows when nothing is too old any more, in small steps as long as `goesOn` says so. */
  readonly afterwards?: (goesOn: () => boolean) => Promise<void>
}

/** Deletes what has been finished for long enough, in small steps. */
export class Retention implements Service {
  readonly name: string
  readonly #deps: RetentionDeps
  #timer: Timer | undefined
  #stopped = false
  #underWay: Promise<void> = Promise.resolve()

  constructor(deps: RetentionDeps) {
    this.name = `${deps.name} retention`
    this.#deps = deps
  }

  async start(): Promise<void> {
    this.#plan()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#underWay
  }

  #plan(): void {
    if (this.#stopped) return
    this.#timer = this.#deps.clock.after(EVERY_MS, () => {
      this.#underWay = this.#sweep().finally(() => this.#plan())
    })
  }

  async #sweep(): Promise<void> {
    const { logger, name } = this.#deps
    const goesOn = (): boolean => !this.#stopped
    try {
      await this.#sweepOld(goesOn)
      await this.#deps.afterwards?.(goesOn)
    } catch (error) {
      if (!this.#stopped) logger.warn({ error }, `old ${name} could not be deleted; trying again later`)
    }
  }

  async #sweepOld(goesOn: () => boolean): Promise<void> {
    const { clock, keepMs, sweep } = this.#deps
    const now = clock.now()
    const args = { finishedBefore: now - keepMs, now }
    let limit = CHUNK
    let damaged = 0
    let after = 0
    while (goesOn()) {
      try {
        const next = await sweep({ ...args, after, limit })
        if (next === undefined) return
        after = next
        limit = Math.min(CHUNK, limit * 2)
      } catch (error) {
        if (!isError(error, 'store_damaged') || ++damaged > MOST_DAMAGED) throw error
        // Smaller steps lead up to what is damaged, and one of them over it.
        if (limit === 1) after++
        limit = Math.max(1, limit >> 1)
      }
    }
  }
}

/** Looked at in one read, and deleted in one transaction; other traffic goes on between two. */
const READ_CHUNK = 2_000
const DELETE_CHUNK = 500

/** How a budget sees and deletes what it holds. */
export interface ByteBudgetDeps {
  /** Of what has finished the newest is kept, up to this much. */
  readonly keepBytes: number
  /** Measures the next older items before a number; what has not finished takes nothing. */
  readonly measure: (step: BudgetStep) => Promise<BudgetPart>
  /** Deletes what has finished among the next items after a number, up to another; answers where to go on. */
  readonly trim: (step: { after: number; upTo: number; limit: number }) => Promise<number | undefined>
}

/** Deletes the oldest of what has finished as long as there is more of it than fits a budget. */
export class ByteBudget {
  readonly #deps: ByteBudgetDeps

  constructor(deps: ByteBudgetDeps) {
    this.#deps = deps
  }

  /** Looks and deletes, in small steps, as long as `goesOn` says so. */
  async enforce(goesOn: () => boolean): Promise<void> {
    const upTo = await this.#firstBeyond(goesOn)
    if (upTo === undefined) return
    let after: number | undefined = 0
    while (after !== undefined && goesOn()) after = await this.#deps.trim({ after, upTo, limit: DELETE_CHUNK })
  }

  /** The newest item that does not fit any more. */
  async #firstBeyond(goesOn: () => boolean): Promise<number | undefined> {
    let step: BudgetStep = { before: Number.MAX_SAFE_INTEGER, leftBytes: this.#deps.keepBytes, limit: READ_CHUNK }
    while (goesOn()) {
      const part = await this.#deps.measure(step)
      if (part.kind === 'beyond') return part.seq
      if (part.kind === 'fits') return undefined
      step = { before: part.before, leftBytes: part.leftBytes, limit: READ_CHUNK }
    }
    return undefined
  }
}
