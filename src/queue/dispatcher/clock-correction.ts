import type { Clock } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as messagesClock from '../transactions/messages-clock.js'

const PER_STEP = 1_000
/** Less is a clock that is kept in time. */
const LEAST_AHEAD_MS = 1_000
/** How long a deduplication key may last from now. */
const LONGEST_KEY_MS = 10 * 60_000

/** What the correction works with. */
export interface ClockCorrectionDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Corrects what waits after the clock was put right that had been ahead: delays, sleeps and retries that were set
 * meanwhile would otherwise wait for as long again.
 */
export class ClockCorrection {
  readonly #deps: ClockCorrectionDeps

  constructor(deps: ClockCorrectionDeps) {
    this.#deps = deps
  }

  /**
   * At the start: what is stored tells whether the clock was ahead when the server ran last. Where a damaged page hides
   * it, nothing is corrected: the messages that can be read must be delivered all the same.
   */
  async settle(): Promise<void> {
    const { store, clock, logger } = this.#deps
    try {
      const aheadMs = (await store.run(messagesClock.latest, {})) - clock.now()
      if (aheadMs >= LEAST_AHEAD_MS) await this.correct(aheadMs)
    } catch (error) {
      if (!isError(error, 'store_damaged')) throw error
      logger.warn({ error }, 'whether the clock was ahead cannot be read, because the store is damaged')
    }
  }

  /** The clock was set back by so much. May be repeated. */
  async correct(byMs: number): Promise<void> {
    const { store, clock, logger } = this.#deps
    const now = clock.now()
    logger.warn({ byMs }, 'the clock was ahead and was set back; what was delayed meanwhile is due earlier by as much')
    for (const state of ['pending', 'held'] as const) {
      let after: { nextAt: number; seq: number } | undefined = { nextAt: now, seq: 0 }
      while (after) after = await store.run(messagesClock.shift, { state, now, byMs, after, limit: PER_STEP })
    }
    await store.run(messagesClock.limitKeys, { latest: now + LONGEST_KEY_MS })
  }
}
