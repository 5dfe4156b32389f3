/** When the dispatcher looks for messages to send: once for many reasons to look. */
export class PumpTurn {
  readonly #pump: () => void
  #isDue = false

  constructor(pump: () => void) {
    this.#pump = pump
  }

  /** Whether the dispatcher will look soon. */
  get isDue(): boolean {
    return this.#isDue
  }

  /** Once for all outcomes of a tick, at its end. */
  atEndOfTick(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => this.#take())
  }

  /**
   * For messages that an answer of the store has brought: once all that waited for answers has continued. By then publishers
   * have their replies and can read them while requests are built. The end of the tick would be later than necessary: undici
   * writes to a connection that was used before only at the end of a tick, which would then be that of the next one.
   */
  afterAnswers(): void {
    this.#isDue = true
    process.nextTick(() => this.#take())
  }

  #take(): void {
    if (!this.#isDue) return
    this.#isDue = false
    this.#pump()
  }
}
