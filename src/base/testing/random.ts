/** Reproducible random numbers: the same seed makes the same choices. */
export interface Random {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number
  /** A random item; `undefined` for an empty list. */
  pick<Item>(items: readonly Item[]): Item | undefined
  /** True with this probability. */
  chance(probability: number): boolean
}

/** Numbers from 0 (included) to 1 (excluded), the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Creates a generator from a seed. */
export function seeded(seed: number): Random {
  const next = randomFrom(seed)
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    pick: (items) => items[below(items.length)],
    chance: (probability) => next() < probability,
  }
}
