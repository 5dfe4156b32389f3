import type { Logger } from '../telemetry/index.js'

/** Logs the first of several failed exports in a row, and the first success after them. */
export class OutageLog {
  readonly #logger: Logger
  readonly #what: string
  #isDown = false

  /** @param what `traces` or `metrics`. */
  constructor(logger: Logger, what: string) {
    this.#logger = logger
    this.#what = what
  }

  /** Notes the outcome of an export: it failed with `error`, or succeeded if there is none. */
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
