import type { Clock, Timer } from '../base/index.js'
import { BEAT_EVERY_MS, LOOK_EVERY_MS } from './membership.js'

/** What a rhythm is built from. `beat` and `look` must not reject. */
export interface BeatScheduleDeps {
  readonly clock: Clock
  readonly beat: () => Promise<void>
  readonly look: () => Promise<void>
}

/** Schedules the beats and looks of a node. One look runs at a time. */
export class BeatSchedule {
  readonly #deps: BeatScheduleDeps
  #beatTimer: Timer | undefined
  #lookTimer: Timer | undefined
  #looking: Promise<void> | undefined
  #isLookWanted = false
  #isStopped = false

  constructor(deps: BeatScheduleDeps) {
    this.#deps = deps
  }

  start(): void {
    this.#scheduleBeat()
    this.#scheduleLook()
  }

  /** Resolves when no look runs any more. */
  async stop(): Promise<void> {
    this.end()
    await this.#looking
  }

  /** Ends the rhythm without waiting, so that a look itself can call it. */
  end(): void {
    this.#isStopped = true
    this.#beatTimer?.cancel()
    this.#lookTimer?.cancel()
  }

  /** The look that runs now has changed something, so another look follows it. */
  lookSoon(): void {
    this.#isLookWanted = true
  }

  /** Looks now. Resolves when a look that began after the call has ended. Never rejects. */
  look(): Promise<void> {
    if (this.#looking) this.#isLookWanted = true
    this.#looking ??= this.#lookUntilDone().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #lookUntilDone(): Promise<void> {
    do {
      this.#isLookWanted = false
      if (!this.#isStopped) await this.#deps.look()
    } while (this.#isLookWanted && !this.#isStopped)
  }

  #scheduleBeat(): void {
    this.#beatTimer = this.#deps.clock.after(BEAT_EVERY_MS, () => {
      this.#scheduleBeat()
      void this.#deps.beat()
    })
  }

  #scheduleLook(): void {
    this.#lookTimer = this.#deps.clock.after(LOOK_EVERY_MS, () => {
      this.#scheduleLook()
      void this.look()
    })
  }
}
