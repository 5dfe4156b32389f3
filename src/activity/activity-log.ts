import type { Clock, Service, Timer } from '../base/index.js'
import { ACTIVITY_PERIODS, type Activity, type ActivityPeriod } from '../contract/console/activity.js'
import type { Store } from '../store/index.js'
import { type ActivityMeter, BLOCK_MS, type BlockCounts, type Logger } from '../telemetry/index.js'
import { seriesOf, spanOf } from './series.js'
import * as activityBlocks from './transactions/activity-blocks.js'
import { packCounts } from './transactions/packed-counts.js'

/** What `ActivityLog` is built from. */
export interface ActivityLogDeps {
  readonly store: Store
  /** The clock of the meter. */
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  readonly meter: ActivityMeter
  /** Moves counts of an account that other modules hold into the meter. Default: does nothing. */
  readonly collect?: (accountId: string) => void
}

/** Time from the first count to the write. */
const STORE_AFTER_MS = 60_000
/** Accounts of one write. */
const ACCOUNTS_PER_WRITE = 200
/** A little more than the longest period. */
const KEPT_MS = 25 * 60 * 60_000

/** Stores the counts of the meter, and returns them as series. Without new counts, it has no timer and writes nothing. */
export class ActivityLog implements Service {
  readonly name = 'activity'
  readonly #deps: ActivityLogDeps
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()
  #isStopped = false
  /** Start of the last block in which old ones were deleted. */
  #expiredAt = 0

  constructor(deps: ActivityLogDeps) {
    this.#deps = deps
  }

  async start(): Promise<void> {
    this.#deps.meter.onChange(() => this.#writeLater())
  }

  /** Stores all counts. */
  async stop(): Promise<void> {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#timer?.cancel()
    await this.#writing
    await this.#write()
  }

  /** What an account did until now. Counts of this node are complete; other nodes may not have stored the last minute. */
  async read(accountId: string, period: ActivityPeriod): Promise<Activity> {
    const { store, clock, meter, collect } = this.#deps
    collect?.(accountId)
    const span = spanOf(clock.now(), ACTIVITY_PERIODS[period])
    // Copied before the read of the store: a block that is stored and dropped during the read would be in neither.
    const own = meter.of(accountId).map(({ counts, ...block }) => ({ ...block, counts: packCounts(counts) }))
    const from = span.from - (span.from % BLOCK_MS)
    const stored = await store.run(activityBlocks.since, { accountId, from })
    const writers = new Set(own.map(({ writer }) => writer))
    const series = seriesOf([...own, ...stored.filter(({ writer }) => !writers.has(writer))], span)
    return { from: span.from / 1_000, step_seconds: span.stepMs / 1_000, series }
  }

  #writeLater(): void {
    if (this.#isStopped || this.#timer) return
    this.#timer = this.#deps.clock.after(STORE_AFTER_MS, () => {
      this.#timer = undefined
      // Writes run one after the other, so that an older block never replaces a newer one.
      this.#writing = this.#writing.then(() => this.#write())
    })
  }

  /** Never rejects: if a write fails, the next write stores its counts. */
  async #write(): Promise<void> {
    const { meter, logger } = this.#deps
    const blocks = meter.takeChanged()
    try {
      for (let at = 0; at < blocks.length; at += ACCOUNTS_PER_WRITE) {
        await this.#store(blocks.slice(at, at + ACCOUNTS_PER_WRITE))
      }
      meter.dropStored()
      await this.#expire()
    } catch (error) {
      meter.putBack(blocks)
      logger.warn('activity_not_stored', { error })
      this.#writeLater()
    }
  }

  async #store(blocks: readonly BlockCounts[]): Promise<void> {
    const packed = blocks.map(({ accountId, start, writer, counts }) => ({
      account_id: accountId,
      start,
      writer,
      counts: packCounts(counts),
    }))
    if (packed.length > 0) await this.#deps.store.run(activityBlocks.store, { blocks: packed })
  }

  /** Deletes old blocks, once a quarter of an hour. Every node does so; it costs little when nothing is left to delete. */
  async #expire(): Promise<void> {
    const { store, clock } = this.#deps
    const now = clock.now()
    const block = now - (now % BLOCK_MS)
    if (block === this.#expiredAt || this.#isStopped) return
    while ((await store.run(activityBlocks.expire, { before: now - KEPT_MS })) === 'more' && !this.#isStopped);
    this.#expiredAt = block
  }
}
