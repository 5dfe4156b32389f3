import type { Logger } from '../telemetry/index.js'

/** Logs the first failure of a row of exports, and the first success after it. */
export class OutageLog {
  readonly #logger: Logger
  readonly #what: string
  #isDown = false

  /** @param what `traces` or `metrics`. */
  constructor(logger: Logger, what: string) {
    this.#logger = logger
    this.#what = what
  }

  /** An export has failed, or has succeeded without an `error`. */
  note(error?: Error): void {
    if (error === undefined) {
      if (this.#isDown) this.#logger.info('otlp_export_resumed', { what: this.#what })
      this.#isDown = false
      return
    }
    if (this.#isDown) return
    this.#isDown = true
    this.#logger.warn('otlp_export_failed', { error, what: this.#what })
  }
}
