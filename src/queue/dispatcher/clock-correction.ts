import type { Clock } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as messagesClock from '../transactions/messages-clock.js'

const PER_STEP = 1_000
/** Smaller differences are normal clock drift. */
const MIN_AHEAD_MS = 1_000
/** Longest time until a deduplication key expires. */
const MAX_KEY_MS = 10 * 60_000

/** What the correction is built from. */
export interface ClockCorrectionDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Corrects due times after a clock that ran ahead was set back. Otherwise delays, sleeps and retries that were stored
 * while the clock was ahead would wait longer by that difference.
 */
export class ClockCorrection {
  readonly #deps: ClockCorrectionDeps

  constructor(deps: ClockCorrectionDeps) {
    this.#deps = deps
  }

  /**
   * Runs at the start. The newest stored times show whether the clock was ahead when the server last ran. If they cannot
   * be read because of damage, nothing is corrected, and readable messages are still delivered.
   */
  async settle(): Promise<void> {
    const { store, clock, logger } = this.#deps
    try {
      const aheadMs = (await store.run(messagesClock.latest, {})) - clock.now()
      if (aheadMs >= MIN_AHEAD_MS) await this.correct(aheadMs)
    } catch (error) {
      if (!isError(error, 'store_damaged')) throw error
      logger.warn('queue_clock_unknown', { error })
    }
  }

  /** Moves due times back by this much. A repeated call changes nothing. */
  async correct(byMs: number): Promise<void> {
    const { store, clock, logger } = this.#deps
    const now = clock.now()
    logger.warn('queue_clock_set_back', { byMs })
    for (const state of ['pending', 'held'] as const) {
      let after: { nextAt: number; seq: number } | undefined = { nextAt: now, seq: 0 }
      while (after) after = await store.run(messagesClock.shift, { state, now, byMs, after, limit: PER_STEP })
    }
    await store.run(messagesClock.limitKeys, { latest: now + MAX_KEY_MS })
  }
}
