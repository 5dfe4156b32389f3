import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as usage from '../transactions/usage.js'
import * as usageRollups from '../transactions/usage-rollups.js'
import { DAY_MS, dayOf } from './cost.js'

const { TIERS_MS } = usage
const HOUR_MS = 60 * 60 * 1000

/** How long each tier is kept, by its place: what the longest period that is read from it needs, and some more. */
const KEPT_MS = [4 * HOUR_MS, 8 * DAY_MS, 32 * DAY_MS] as const
/** How long the totals of days are kept. */
const DAYS_KEPT_MS = 400 * DAY_MS
/** Databases that one transaction puts together. */
const DATABASES_AT_ONCE = 100

/** What roll-ups work with. */
export interface RollUpsParts {
  readonly store: Store
  readonly logger: Pick<Logger, 'warn'>
}

/** Keeps the series bounded, in small steps in the background. */
export class RollUps {
  readonly #parts: RollUpsParts
  #working: Promise<void> = Promise.resolve()
  #doneTo = 0
  /** When the last stretch of the longest tier ends that something was written into. */
  #neededTo = 0
  #state: 'running' | 'stopped' = 'running'

  constructor(parts: RollUpsParts) {
    this.#parts = parts
  }

  /** Catches up with what an earlier life has left. */
  begin(nowMs: number): void {
    this.look(nowMs, true)
  }

  /** Begins to work when a stretch of the second tier has ended since the last time and may be needed. */
  look(nowMs: number, hasWritten: boolean): void {
    if (hasWritten) this.#neededTo = nowMs - (nowMs % TIERS_MS[2]) + TIERS_MS[2]
    const endedTo = nowMs - (nowMs % TIERS_MS[1])
    if (endedTo <= this.#doneTo || this.#doneTo >= this.#neededTo) return
    this.#doneTo = endedTo
    this.#working = this.#working.then(() => this.#work(nowMs)).catch((error: unknown) => this.#onFailure(error))
  }

  /** Begins with no further step, and waits for the present one. */
  async stop(): Promise<void> {
    this.#state = 'stopped'
    await this.#working
  }

  async #work(nowMs: number): Promise<void> {
    for (const tier of [1, 2] as const) await this.#rollUp(tier, nowMs)
    const tiers = [nowMs - KEPT_MS[0], nowMs - KEPT_MS[1], nowMs - KEPT_MS[2]] as const
    const expiry = { tiers, days: dayOf(nowMs - DAYS_KEPT_MS) }
    while (this.#state === 'running') {
      if ((await this.#parts.store.run(usageRollups.expire, expiry)) === 'done') return
    }
  }

  async #rollUp(tier: 1 | 2, endedBefore: number): Promise<void> {
    for (let after = ''; this.#state === 'running'; ) {
      const args = { tier, endedBefore, after, limit: DATABASES_AT_ONCE }
      const outcome = await this.#parts.store.run(usageRollups.rollUp, args)
      if (outcome.kind === 'done') return
      after = outcome.after
    }
  }

  #onFailure(error: unknown): void {
    this.#doneTo = 0
    if (this.#state === 'running') this.#parts.logger.warn({ error }, 'series of usage are not rolled up yet')
  }
}
