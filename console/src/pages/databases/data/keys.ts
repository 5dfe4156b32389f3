/** Searches keys with repeated SCANs, and counts how many keys were searched. */
import type { CommandLine, DataPlane } from '../../../api/data-plane.js'
import { escaped, itemsOf, strictText, textOf } from '../../../lib/resp.js'

/** Types of keys to filter by. */
export const KEY_TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream'] as const

/** A type of key. */
export type KeyType = (typeof KEY_TYPES)[number]

/** A found key. */
export interface FoundKey {
  /** The printable name; other bytes are escaped. */
  readonly shown: string
  /** The name, if it is text; keys with binary names are listed but cannot be opened. */
  readonly name: string | undefined
  /** The type of the engine, such as `hash`. */
  readonly type: string
}

/** The search. */
export interface KeySearch {
  /** A pattern of SCAN; empty: all keys. */
  readonly pattern: string
  readonly type: KeyType | undefined
}

/** The result of one search step. */
export interface ScanPage {
  readonly keys: readonly FoundKey[]
  /** The cursor of the next step; `undefined`: all keys were searched. */
  readonly cursor: string | undefined
  /** About how many keys this step searched: SCAN promises no more than an order of magnitude. */
  readonly searched: number
}

/** Keys that one SCAN searches. */
const AT_A_TIME = 1_000
/** A step ends once it has found this many keys, */
const ENOUGH_FOUND = 200
/** or has searched this many: a mistyped pattern must not search for minutes. */
const ENOUGH_SEARCHED = 50_000

/** Searches keys from a cursor on, until enough were found or searched, or until aborted. */
export async function scanKeys(
  plane: DataPlane,
  search: KeySearch,
  from: string,
  signal: AbortSignal,
): Promise<ScanPage> {
  const found: { shown: string; name: string | undefined }[] = []
  let cursor = from
  let searched = 0
  do {
    const reply = await plane.send(...scanLine(cursor, search))
    signal.throwIfAborted()
    const [next, keys] = itemsOf(reply)
    cursor = textOf(next)
    searched += AT_A_TIME
    found.push(...itemsOf(keys).flatMap((key) => (key.kind === 'bulk' ? [keyOf(key.bytes)] : [])))
  } while (cursor !== '0' && found.length < ENOUGH_FOUND && searched < ENOUGH_SEARCHED)
  const types = await typesOf(plane, found)
  const keys = found.map((key, index) => ({ ...key, type: types[index] ?? 'unknown' }))
  return { keys, searched, cursor: cursor === '0' ? undefined : cursor }
}

function scanLine(cursor: string, { pattern, type }: KeySearch): CommandLine {
  const match = pattern === '' ? [] : ['MATCH', pattern]
  return ['SCAN', cursor, ...match, 'COUNT', AT_A_TIME, ...(type === undefined ? [] : ['TYPE', type])]
}

const keyOf = (bytes: Uint8Array) => ({ name: strictText(bytes), shown: escaped(bytes) })

async function typesOf(plane: DataPlane, keys: readonly { name: string | undefined }[]): Promise<string[]> {
  const lines = keys.map(({ name }): CommandLine => (name === undefined ? ['PING'] : ['TYPE', name]))
  const replies = await plane.sendAll(lines)
  return replies.map((reply, index) => (keys[index]?.name === undefined ? 'not text' : textOf(reply)))
}

/** The progress of the search. `total` is the DBSIZE at that moment. */
export function scannedText(pages: readonly ScanPage[], total: number): string {
  const found = pages.reduce((sum, page) => sum + page.keys.length, 0)
  const searched = pages.reduce((sum, page) => sum + page.searched, 0)
  const shown = (count: number): string => count.toLocaleString('en-US')
  const isDone = pages.at(-1)?.cursor === undefined
  if (isDone) return `Searched all ${total === 1 ? '1 key' : `${shown(total)} keys`}, found ${shown(found)}`
  return `Searched about ${shown(Math.min(searched, total))} of ${shown(total)} keys, found ${shown(found)} so far`
}

/** The pattern of exactly the keys with a prefix. */
export const patternOfPrefix = (prefix: string): string => `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`
