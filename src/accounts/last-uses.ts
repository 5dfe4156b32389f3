import type { Clock, Timer } from '../base/index.js'
import type { Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import type { AccountDirectory } from './directory.js'
import * as queueTokens from './transactions/queue-tokens.js'

/** How often uses are stored. */
const EVERY_MS = 60_000

/** What `LastUses` is built from. */
export interface LastUsesDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Pick<Logger, 'warn'>
  readonly directory: Pick<AccountDirectory, 'usedSince'>
}

/** Stores when keys and tokens were used last: once a minute and at the stop, never while a request waits. */
export class LastUses {
  readonly #deps: LastUsesDeps
  #writtenAt = 0
  #timer: Timer | undefined
  #work: Promise<void> = Promise.resolve()
  #state: 'new' | 'running' | 'stopped' = 'new'

  constructor(deps: LastUsesDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#writtenAt = this.#deps.clock.now() - 1
    this.#state = 'running'
    this.#schedule()
  }

  async stop(): Promise<void> {
    if (this.#state !== 'running') return
    this.#state = 'stopped'
    this.#timer?.cancel()
    await this.#work
    await this.#write()
  }

  #schedule(): void {
    this.#timer = this.#deps.clock.after(EVERY_MS, () => {
      this.#work = this.#write().finally(() => {
        if (this.#state === 'running') this.#schedule()
      })
    })
  }

  async #write(): Promise<void> {
    const { store, clock, logger, directory } = this.#deps
    // A use within the current millisecond may be written twice, so that it is never lost.
    const now = clock.now() - 1
    // After the clock was set back, all uses are written. The store keeps a later time that it already has.
    const uses = directory.usedSince(now < this.#writtenAt ? 0 : this.#writtenAt)
    try {
      if (uses.keys.length + uses.tokens.length > 0) await store.run(queueTokens.recordUses, uses)
      this.#writtenAt = now
    } catch (error) {
      logger.warn('credential_use_not_stored', { error })
    }
  }
}
