import type { Clock, Timer } from '../base/index.js'
import type { Logger } from '../telemetry/index.js'
import type { Store } from './types.js'

/**
 * Delays of the comparisons of memory with the store after a lost commit, each counted from the end of the previous
 * comparison. One comparison is not enough: when the connection breaks, the server may not have processed the commit yet,
 * for as long as it is paused; and a caller that repeats its write may find only then that it was already done.
 */
const DELAYS_MS = [0, 1_000, 5_000, 15_000, 60_000]
const PAUSE_AFTER_FAILURE_MS = 1_000

/** What `AfterLostCommits` is built from. */
export interface AfterLostCommitsDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  /** Names what is compared, for the log. */
  readonly what: string
  /** Brings memory to the state of the store. Never called while it runs. */
  readonly recover: () => Promise<void>
}

/**
 * Compares something in memory with the store after commits whose outcome is unknown. Each module that keeps a view of
 * the store in memory has one: the caller of the lost commit cannot say what has changed.
 */
export class AfterLostCommits {
  readonly #deps: AfterLostCommitsDeps
  #next: { readonly timer: Timer; readonly isFirst: boolean } | undefined
  #left: readonly number[] = []
  #work: Promise<void> | undefined
  #isStopped = true
  #unsubscribe: () => void = () => undefined

  constructor(deps: AfterLostCommitsDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#isStopped = false
    this.#unsubscribe = this.#deps.store.onLostCommit(() => this.#onLost())
  }

  /** Waits for the comparison that runs. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unsubscribe()
    this.#next?.timer.cancel()
    await this.#work
  }

  /** Compares as after a lost commit. Call it when a commit succeeded but memory could not be updated. */
  compare(): void {
    if (!this.#isStopped) this.#onLost()
  }

  #onLost(): void {
    if (this.#next?.isFirst) return
    this.#next?.timer.cancel()
    this.#next = undefined
    this.#left = DELAYS_MS
    // The comparison that runs began before this loss; another one follows it.
    if (!this.#work) this.#schedule()
  }

  #schedule(): void {
    const [delayMs, ...left] = this.#left
    if (delayMs === undefined || this.#isStopped) return
    const isFirst = this.#left === DELAYS_MS
    const timer = this.#deps.clock.after(delayMs, () => {
      this.#next = undefined
      this.#left = left
      this.#work = this.#recover().finally(() => {
        this.#work = undefined
        this.#schedule()
      })
    })
    this.#next = { timer, isFirst }
  }

  /** Never rejects. */
  async #recover(): Promise<void> {
    const { recover, logger, what } = this.#deps
    try {
      await recover()
    } catch (error) {
      if (this.#isStopped) return
      logger.warn('lost_commit_not_compared', { error, what })
      this.#left = [PAUSE_AFTER_FAILURE_MS, ...DELAYS_MS]
    }
  }
}
