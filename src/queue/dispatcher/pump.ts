import type { Clock, Timer } from '../../base/index.js'

/** When the dispatcher looks for messages to send: once for many reasons to look, and only between `start` and `stop`. */
export class Pump {
  readonly #clock: Clock
  readonly #look: () => void
  #isRunning = false
  #isDue = false
  #wake: { readonly at: number; readonly timer: Timer } | undefined
  #pause: Timer | undefined

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock
    this.#look = look
  }

  start(): void {
    this.#isRunning = true
    this.atEndOfTick()
  }

  stop(): void {
    this.#isRunning = false
    this.#wake?.timer.cancel()
    this.#pause?.cancel()
  }

  /** Whether the dispatcher will look soon. */
  get isDue(): boolean {
    return this.#isDue
  }

  /** Whether nothing may be sent now. */
  get isPaused(): boolean {
    return this.#pause !== undefined
  }

  /** Once for all outcomes of a tick, at its end. */
  atEndOfTick(): void {
    if (this.#isDue || !this.#isRunning) return
    this.#isDue = true
    setImmediate(() => this.#take())
  }

  /**
   * For messages that an answer of the store has brought: once all that waited for answers has continued. By then publishers
   * have their replies and can read them while requests are built. The end of the tick would be later than necessary.
   */
  afterAnswers(): void {
    if (!this.#isRunning) return
    this.#isDue = true
    process.nextTick(() => this.#take())
  }

  /** Also at this time, instead of the one set before. */
  wakeAt(at: number, now: number): void {
    if (at === this.#wake?.at) return
    this.#wake?.timer.cancel()
    this.#wake = undefined
    if (at === Number.POSITIVE_INFINITY) return
    const timer = this.#clock.after(at - now, () => {
      this.#wake = undefined
      this.atEndOfTick()
    })
    this.#wake = { at, timer }
  }

  /** Nothing may be sent for this long, then the dispatcher looks again. Without effect during a pause. */
  pauseFor(ms: number): void {
    this.#pause ??= this.#clock.after(ms, () => {
      this.#pause = undefined
      this.atEndOfTick()
    })
  }

  #take(): void {
    if (!this.#isDue) return
    this.#isDue = false
    if (this.#isRunning) this.#look()
  }
}
