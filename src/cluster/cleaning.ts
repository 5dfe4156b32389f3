import type { Clock } from '../base/index.js'
import type { Store } from '../store/index.js'
import * as announcementRows from './transactions/cluster-announcements.js'
import * as nodeRows from './transactions/cluster-nodes.js'

/** Old rows are deleted this often. */
const CLEAN_EVERY_MS = 60_000

/** Deletes announcements and rows of nodes that are no longer needed. Only the leader does it. */
export class Cleaning {
  readonly #store: Store
  readonly #clock: Clock
  readonly #nowMs: () => number
  #lastMs = Number.NEGATIVE_INFINITY

  /** @param nowMs monotonic time. */
  constructor(store: Store, clock: Clock, nowMs: () => number) {
    this.#store = store
    this.#clock = clock
    this.#nowMs = nowMs
  }

  async runIfDue(): Promise<void> {
    const nowMs = this.#nowMs()
    if (nowMs - this.#lastMs < CLEAN_EVERY_MS) return
    this.#lastMs = nowMs
    await this.#store.run(announcementRows.dropSeen, {})
    await this.#store.run(nodeRows.dropOld, { now: this.#clock.now() })
  }
}
