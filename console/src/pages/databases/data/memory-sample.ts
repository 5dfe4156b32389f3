/**
 * Estimates the memory of the keys of each prefix from a sample. SCAN returns keys in the order of their hashes, so the
 * first keys that it finds are like a random sample. MEMORY USAGE returns the size of each key.
 */
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import type { KeyStore } from '../../../../../src/contract/databases/keys/key-store.js'
import { shownName } from './shown-name.js'

/** Number of keys that one call of `grow` adds. */
export const SAMPLE_STEP = 10_000
/** The most keys in a sample. */
export const MAX_SAMPLED = 200_000
/** Most prefixes that are listed. The others share one line. */
export const MAX_PREFIXES = 500

const SCAN_COUNT = 250

/** The keys with one prefix, in the sample. */
export interface PrefixUse {
  /** With the separator at its end; the whole name of a key without separator. `undefined`: all unlisted prefixes. */
  readonly prefix: string | undefined
  readonly keys: number
  readonly bytes: number
  readonly largest: { readonly name: KeyName; readonly bytes: number }
}

/** Sizes of keys, found so far. */
export class MemorySample {
  readonly #bytesOf = new Map<KeyName, number>()
  #bytes = 0
  #cursor: string | undefined = '0'

  /** Number of keys in the sample. */
  get keys(): number {
    return this.#bytesOf.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether it has all keys, so that it is no estimate. */
  get isWhole(): boolean {
    return this.#cursor === undefined
  }

  get isFull(): boolean {
    return this.keys >= MAX_SAMPLED
  }

  /** Adds about `SAMPLE_STEP` more keys, until aborted. Calls `onStep` from time to time. */
  async grow(store: Pick<KeyStore, 'scan' | 'sizes'>, signal: AbortSignal, onStep: () => void): Promise<void> {
    const enough = Math.min(this.keys + SAMPLE_STEP, MAX_SAMPLED)
    while (this.#cursor !== undefined && this.keys < enough && !signal.aborted) {
      const { cursor, names } = await store.scan(this.#cursor, { count: SCAN_COUNT })
      const fresh = [...new Set(names)].filter((name) => !this.#bytesOf.has(name))
      const sizes = await store.sizes(fresh)
      for (const [index, name] of fresh.entries()) this.#note(name, sizes[index])
      this.#cursor = cursor
      onStep()
    }
  }

  /** Notes the size of a key. A key that was deleted meanwhile has none. */
  #note(name: KeyName, bytes: number | undefined): void {
    if (bytes === undefined) return
    this.#bytesOf.set(name, bytes)
    this.#bytes += bytes
  }

  /** The prefixes up to the `levels`th separator, the one with the most memory first. */
  prefixes(separator: string, levels: number): PrefixUse[] {
    const uses = new Map<string, Writable<PrefixUse>>()
    for (const [name, bytes] of this.#bytesOf) {
      const prefix = prefixOf(shownName(name), separator, levels)
      const use = uses.get(prefix)
      if (use === undefined) uses.set(prefix, { prefix, keys: 1, bytes, largest: { name, bytes } })
      else merge(use, { keys: 1, bytes, largest: { name, bytes } })
    }
    const sorted = [...uses.values()].sort((one, other) => other.bytes - one.bytes)
    const [first, ...others] = sorted.slice(MAX_PREFIXES)
    if (first === undefined) return sorted
    const rest = { ...first, prefix: undefined }
    for (const use of others) merge(rest, use)
    return [...sorted.slice(0, MAX_PREFIXES), rest]
  }
}

type Writable<Type> = { -readonly [Name in keyof Type]: Type[Name] }

function merge(into: Writable<PrefixUse>, use: Omit<PrefixUse, 'prefix'>): void {
  into.keys += use.keys
  into.bytes += use.bytes
  if (use.largest.bytes > into.largest.bytes) into.largest = use.largest
}

/** The beginning of a name up to its `levels`th separator; the whole name if it has none. */
export function prefixOf(name: string, separator: string, levels: number): string {
  if (separator === '') return name
  let end = 0
  for (let level = 0; level < levels; level++) {
    const at = name.indexOf(separator, end)
    if (at < 0) break
    end = at + separator.length
  }
  return end === 0 ? name : name.slice(0, end)
}
