/** All keys with a prefix: found first, so that exactly the counted keys are deleted. */
import type { DataPlane } from '../../../api/data-plane.js'
import { itemsOf, type Reply, strictText, textOf } from '../../../lib/resp.js'
import { patternOfPrefix } from './keys.js'

/** The most names in memory; the user can repeat the action for the rest. */
export const MOST_COLLECTED = 200_000

const SCAN_COUNT = 2_000
const DELETE_AT_A_TIME = 500

/** The keys with a prefix. */
export interface Collected {
  readonly keys: readonly string[]
  /** How many have binary names: those cannot be sent as text, so they stay. */
  readonly unnamed: number
}

/** Finds the keys with a prefix until aborted; `onSearched` gets about how many keys were searched. */
export async function collectKeys(
  plane: DataPlane,
  prefix: string,
  onSearched: (count: number) => void,
  signal: AbortSignal,
): Promise<Collected> {
  const found = new Set<string>()
  const unnamed = new Set<string>()
  let cursor = '0'
  let searched = 0
  do {
    const reply = await plane.send('SCAN', cursor, 'MATCH', patternOfPrefix(prefix), 'COUNT', SCAN_COUNT)
    const [next, keys] = itemsOf(reply)
    for (const key of itemsOf(keys)) note(key, found, unnamed)
    cursor = textOf(next)
    searched += SCAN_COUNT
    onSearched(searched)
  } while (cursor !== '0' && found.size < MOST_COLLECTED && !signal.aborted)
  return { keys: [...found].slice(0, MOST_COLLECTED), unnamed: unnamed.size }
}

/** SCAN may find a key twice. */
function note(key: Reply, found: Set<string>, unnamed: Set<string>): void {
  const name = key.kind === 'bulk' ? strictText(key.bytes) : undefined
  if (name !== undefined) found.add(name)
  else if (key.kind === 'bulk') unnamed.add(key.bytes.join())
}

/** Deletes keys until aborted; returns how many still existed. */
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
