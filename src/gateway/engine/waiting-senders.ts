/** Number of senders that continue in one turn of the event loop. Each may send as much as one read brings, 256 KiB. */
const SENDERS_PER_TURN = 4

/**
 * Senders that wait until a connection is no longer congested, in order. They continue a few at a time. If all continued at
 * once, they would send megabytes before the first has to wait, which would not stay in the processor's cache.
 */
export class WaitingSenders {
  readonly #isCongested: () => boolean
  #waiting: (() => void)[] = []
  #isScheduled = false

  constructor(isCongested: () => boolean) {
    this.#isCongested = isCongested
  }

  /** Calls `proceed` when it is the turn of this sender. */
  add(proceed: () => void): void {
    this.#waiting.push(proceed)
  }

  /** Lets senders continue after bytes were sent, and more of them in later turns while the connection is not congested. */
  release(): void {
    if (this.#waiting.length === 0 || this.#isScheduled || this.#isCongested()) return
    for (const proceed of this.#waiting.splice(0, SENDERS_PER_TURN)) proceed()
    if (this.#waiting.length === 0) return
    this.#isScheduled = true
    setImmediate(this.#onTurn)
  }

  /** Lets all senders continue, because the connection is over. */
  releaseAll(): void {
    for (const proceed of this.#waiting.splice(0)) proceed()
  }

  readonly #onTurn = (): void => {
    this.#isScheduled = false
    this.release()
  }
}
