/** Searches for keys: patterns, types, and the text about the progress. */
import type { DataPlane } from '../../../api/data-plane.js'
import { counted, whole } from '../../../lib/format.js'
import type { SearchState } from './key-list.js'

/** Types of keys to filter by. */
export const KEY_TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream'] as const

/** A type of key. */
export type KeyType = (typeof KEY_TYPES)[number]

/** The search. */
export interface KeySearch {
  /** A pattern of SCAN; empty: all keys. */
  readonly pattern: string
  readonly type: KeyType | undefined
}

/** One step of the search from a cursor. */
export const scanKeys = (plane: DataPlane, { pattern, type }: KeySearch, cursor: string, count: number) =>
  plane.keys.scan(cursor, { pattern: pattern === '' ? undefined : pattern, type, count })

/** The progress of a search. `total` is the number of keys in the database at that moment. */
export function scannedText(state: SearchState, found: number, searched: number, total: number): string {
  const all = counted(total, 'key')
  switch (state) {
    case 'done':
      return `Found ${whole(found)} in all ${all}`
    case 'full':
      return `Stopped at ${counted(found, 'key')}: a narrower pattern finds the others`
    case 'searching':
    case 'paused':
    case 'failed':
      return `Found ${whole(found)} in about ${whole(Math.min(searched, total))} of ${all}`
    default:
      return unreachable(state)
  }
}

const unreachable = (state: never): never => {
  throw new TypeError(`unknown state of a search: ${String(state)}`)
}

/** The pattern of exactly the keys with a prefix. */
export const patternOfPrefix = (prefix: string): string => `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`
