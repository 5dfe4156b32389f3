import { type Load, START } from './coverage.js'
import type { Place } from './entry.js'
import type { BacklogLimits } from './limits.js'

/** How a missing message was found: by a sweep, or through a hint of another node. */
export type FoundBy = Extract<Load, { kind: 'strays' }>['foundBy']
/** Returns the places that memory covers and does not hold. */
type Missing = (places: readonly Place[], foundBy: FoundBy) => readonly Place[]

/**
 * Messages that memory covers and does not hold, which are loaded by their numbers. A sweep has found them (`DueSweep`), or
 * another node has published or changed them and sent a hint.
 */
export class Recalls {
  readonly #limits: Pick<BacklogLimits, 'loadLimit' | 'capacity'>
  readonly #places: Readonly<Record<FoundBy, Place[]>> = { hint: [], sweep: [] }

  constructor(limits: Pick<BacklogLimits, 'loadLimit' | 'capacity'>) {
    this.#limits = limits
  }

  /** Adds places to load. Places beyond `capacity` are left to the next sweep. */
  add(places: readonly Place[], foundBy: FoundBy): void {
    const waiting = this.#places[foundBy]
    waiting.push(...places.slice(0, Math.max(0, this.#limits.capacity - waiting.length)))
  }

  /** The next load. Hinted messages go first. */
  next(missing: Missing): Load | undefined {
    return this.#nextOf('hint', missing) ?? this.#nextOf('sweep', missing)
  }

  #nextOf(foundBy: FoundBy, missing: Missing): Load | undefined {
    const waiting = this.#places[foundBy]
    while (waiting.length > 0) {
      const places = missing(waiting.splice(0, this.#limits.loadLimit), foundBy)
      const until = places.at(-1)
      if (!until) continue
      // Several sweeps may have found the same message.
      const seqs = [...new Set(places.map(({ seq }) => seq))]
      return { kind: 'strays', seqs, foundBy, after: START, until, limit: seqs.length }
    }
    return undefined
  }
}
