/** Chance that can be played again: the same seed makes the same choices. */
export interface Random {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number
  /** One of a list; `undefined` of an empty one. */
  pick<Item>(items: readonly Item[]): Item | undefined
  /** Whether something of this probability happens. */
  chance(probability: number): boolean
}

/** Makes chance from a seed. */
export function seeded(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number): number => Math.floor(next() * limit)
  return {
    below,
    pick: (items) => items[below(items.length)],
    chance: (probability) => next() < probability,
  }
}
