/** Looking for keys: round after round of SCAN, with an honest count of how much was looked at. */
import type { CommandLine, DataPlane } from '../../../api/data-plane.js'
import { escaped, itemsOf, strictText, textOf } from '../../../lib/resp.js'

/** Types of keys that can be looked for. */
export const KEY_TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream'] as const

/** A type of key. */
export type KeyType = (typeof KEY_TYPES)[number]

/** A key that was found. */
export interface FoundKey {
  /** How it is shown; what cannot be shown is escaped. */
  readonly shown: string
  /** Its name, when it is text; keys of other bytes can be seen here but not opened. */
  readonly name: string | undefined
  /** As the engine says it, such as `hash`. */
  readonly type: string
}

/** What is looked for. */
export interface KeySearch {
  /** As SCAN takes it; empty: everything. */
  readonly pattern: string
  readonly type: KeyType | undefined
}

/** What one go of looking came to. */
export interface ScanPage {
  readonly keys: readonly FoundKey[]
  /** Where to go on; `undefined`: everything was looked at. */
  readonly cursor: string | undefined
  /** How many keys this go looked at, about: SCAN promises no more than an order of magnitude. */
  readonly looked: number
}

/** Keys looked at by one SCAN. */
const AT_A_TIME = 1_000
/** A go ends once it has found this many, */
const ENOUGH_FOUND = 200
/** or has looked at this many: nothing should run for minutes because somebody mistyped a pattern. */
const ENOUGH_LOOKED = 50_000

/** Looks for keys from a cursor on until enough is found or looked at, or nobody wants to know any more. */
export async function scanKeys(
  plane: DataPlane,
  search: KeySearch,
  from: string,
  signal: AbortSignal,
): Promise<ScanPage> {
  const found: { shown: string; name: string | undefined }[] = []
  let cursor = from
  let looked = 0
  do {
    const reply = await plane.send(...scanLine(cursor, search))
    signal.throwIfAborted()
    const [next, keys] = itemsOf(reply)
    cursor = textOf(next)
    looked += AT_A_TIME
    found.push(...itemsOf(keys).flatMap((key) => (key.kind === 'bulk' ? [keyOf(key.bytes)] : [])))
  } while (cursor !== '0' && found.length < ENOUGH_FOUND && looked < ENOUGH_LOOKED)
  const types = await typesOf(plane, found)
  const keys = found.map((key, index) => ({ ...key, type: types[index] ?? 'unknown' }))
  return { keys, looked, cursor: cursor === '0' ? undefined : cursor }
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

/** How much was looked at, in words. `total` is DBSIZE at that moment. */
export function scannedText(pages: readonly ScanPage[], total: number): string {
  const found = pages.reduce((sum, page) => sum + page.keys.length, 0)
  const looked = pages.reduce((sum, page) => sum + page.looked, 0)
  const shown = (count: number): string => count.toLocaleString('en-US')
  const isDone = pages.at(-1)?.cursor === undefined
  if (isDone) return `All ${shown(total)} keys looked at, ${shown(found)} found`
  return `About ${shown(Math.min(looked, total))} of ${shown(total)} keys looked at, ${shown(found)} found so far`
}

/** A pattern that means exactly the keys that begin with a text. */
export const patternOfPrefix = (prefix: string): string => `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`
