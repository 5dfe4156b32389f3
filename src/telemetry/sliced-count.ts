import type { Clock } from '../base/index.js'

/** A count that is made slice by slice, because there may be millions. */
export interface SlicedCountOptions<Place> {
  readonly clock: Clock
  /** The place before the first item. */
  readonly start: Place
  /** Counts one slice behind a place; `next` is absent when nothing is left. */
  readonly slice: (after: Place) => Promise<{ readonly count: number; readonly next?: Place }>
}

/** A count is not made again sooner than this after the last one. */
const LEAST_GAP_MS = 15_000
/** Nor sooner than this multiple of its duration: counting takes at most about 5 % of the time. */
const GAP_PER_WALK = 20
/** A reader waits this long for a count that is being made, then gets the one before. */
const PATIENCE_MS = 250

/**
 * How many there are, as of the last walk over them. A walk begins when somebody asks and the last one is old enough.
 * What comes and goes during a walk may be missed.
 */
export class SlicedCount<Place> {
  readonly #options: SlicedCountOptions<Place>
  #value: number | undefined
  #walk: Promise<void> | undefined
  #nextAtMs = Number.NEGATIVE_INFINITY

  constructor(options: SlicedCountOptions<Place>) {
    this.#options = options
  }

  /** The count; `undefined` while the first walk lasts, or when it has failed. */
  async read(): Promise<number | undefined> {
    const { clock } = this.#options
    if (!this.#walk && clock.now() >= this.#nextAtMs) this.#walk = this.#count().finally(() => this.#rest())
    if (!this.#walk) return this.#value
    let timer: ReturnType<Clock['after']> | undefined
    const patience = new Promise<void>((resolve) => (timer = clock.after(PATIENCE_MS, resolve)))
    // A failure of the store is reported elsewhere, and the other values are read all the same.
    await Promise.race([this.#walk.catch(() => undefined), patience])
    timer?.cancel()
    return this.#value
  }

  #rest(): void {
    this.#walk = undefined
  }

  async #count(): Promise<void> {
    const { clock, start, slice } = this.#options
    const beganMs = clock.now()
    try {
      let total = 0
      for (let place: Place | undefined = start; place !== undefined; ) {
        const { count, next }: { readonly count: number; readonly next?: Place } = await slice(place)
        total += count
        place = next
      }
      this.#value = total
    } finally {
      const endedMs = clock.now()
      this.#nextAtMs = endedMs + Math.max(LEAST_GAP_MS, (endedMs - beganMs) * GAP_PER_WALK)
    }
  }
}
