import type { Clock, Timer } from '../../base/index.js'

/** Schedules the dispatcher's looks for messages to send. Many requests cause one look, only between `start` and `stop`. */
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

  /** Schedules a look at the end of the tick: one for all outcomes of the tick. */
  atEndOfTick(): void {
    if (this.#isDue || !this.#isRunning) return
    this.#isDue = true
    setImmediate(() => this.#take())
  }

  /**
   * Schedules a look right after the callers that waited for replies of the store have continued. By then publishers
   * have their replies and can read them while requests are built. The end of the tick would be later than necessary.
   */
  afterAnswers(): void {
    if (!this.#isRunning) return
    this.#isDue = true
    process.nextTick(() => this.#take())
  }

  /** Schedules a look at this time, Unix milliseconds. Replaces the time set before. */
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

  /** Pauses sending for this long, then schedules a look. Without effect during a pause. */
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
