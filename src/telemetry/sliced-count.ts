import type { Clock } from '../base/index.js'

/** How to count items slice by slice, because there may be millions. */
export interface SlicedCountOptions<Place> {
  readonly clock: Clock
  /** The place before the first item. */
  readonly start: Place
  /** Counts one slice behind a place; `next` is absent when nothing is left. */
  readonly slice: (after: Place) => Promise<{ readonly count: number; readonly next?: Place }>
}

/** Least time between the end of a walk and the start of the next one. */
const MIN_GAP_MS = 15_000
/** The time is also at least this multiple of the walk's duration, so counting takes at most about 5 % of the time. */
const GAP_PER_WALK = 20
/** A reader waits this long for an active walk, then gets the result of the walk before. */
const PATIENCE_MS = 250

/**
 * Number of items, as of the last walk over them. A read starts a walk if the last one is old enough. Items that are added
 * or removed during a walk may be missed.
 */
export class SlicedCount<Place> {
  readonly #options: SlicedCountOptions<Place>
  #value: number | undefined
  #walk: Promise<void> | undefined
  #nextAtMs = Number.NEGATIVE_INFINITY

  constructor(options: SlicedCountOptions<Place>) {
    this.#options = options
  }

  /** The count; `undefined` during the first walk, or when it failed. */
  async read(): Promise<number | undefined> {
    const { clock } = this.#options
    if (!this.#walk && clock.now() >= this.#nextAtMs) this.#walk = this.#count().finally(() => this.#rest())
    if (!this.#walk) return this.#value
    let timer: ReturnType<Clock['after']> | undefined
    const patience = new Promise<void>((resolve) => (timer = clock.after(PATIENCE_MS, resolve)))
    // The store reports its failures itself, and a scrape still needs its other values.
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
      this.#nextAtMs = endedMs + Math.max(MIN_GAP_MS, (endedMs - beganMs) * GAP_PER_WALK)
    }
  }
}
