/** All keys that begin alike: found first, so that exactly what was counted is deleted. */
import type { DataPlane } from '../../../api/data-plane.js'
import { itemsOf, type Reply, strictText, textOf } from '../../../lib/resp.js'
import { patternOfPrefix } from './keys.js'

/** More names than this are not held in memory; the same can be done again for the rest. */
export const MOST_COLLECTED = 200_000

const LOOK_AT = 2_000
const DELETE_AT_A_TIME = 500

/** Keys that begin alike. */
export interface Collected {
  readonly keys: readonly string[]
  /** How many have names that are no text: those cannot be sent back, so they stay. */
  readonly unnamed: number
}

/** Finds the keys that begin with `prefix` until it is told to stop; `onLooked` hears about how many were looked at. */
export async function collectKeys(
  plane: DataPlane,
  prefix: string,
  onLooked: (count: number) => void,
  signal: AbortSignal,
): Promise<Collected> {
  const found = new Set<string>()
  const unnamed = new Set<string>()
  let cursor = '0'
  let looked = 0
  do {
    const reply = await plane.send('SCAN', cursor, 'MATCH', patternOfPrefix(prefix), 'COUNT', LOOK_AT)
    const [next, keys] = itemsOf(reply)
    for (const key of itemsOf(keys)) note(key, found, unnamed)
    cursor = textOf(next)
    looked += LOOK_AT
    onLooked(looked)
  } while (cursor !== '0' && found.size < MOST_COLLECTED && !signal.aborted)
  return { keys: [...found].slice(0, MOST_COLLECTED), unnamed: unnamed.size }
}

/** SCAN may find a key twice. */
function note(key: Reply, found: Set<string>, unnamed: Set<string>): void {
  const name = key.kind === 'bulk' ? strictText(key.bytes) : undefined
  if (name !== undefined) found.add(name)
  else if (key.kind === 'bulk') unnamed.add(key.bytes.join())
}

/** Deletes these keys until it is told to stop; answers how many were still there. */
export async function deleteKeys(
  plane: DataPlane,
  keys: readonly string[],
  onDeleted: (count: number) => void,
  signal: AbortSignal,
): Promise<number> {
  let deleted = 0
  for (let at = 0; at < keys.length && !signal.aborted; at += DELETE_AT_A_TIME) {
    const some = keys.slice(at, at + DELETE_AT_A_TIME)
    deleted += Number(textOf(await plane.send('UNLINK', ...some)))
    onDeleted(at + some.length)
  }
  return deleted
}
