/** All keys that begin alike: found first, so that exactly what was counted is deleted. */
import type { DataPlane } from '../../../api/data-plane.js'
import { itemsOf, textOf } from '../../../lib/resp.js'
import { patternOfPrefix } from './keys.js'

/** More names than this are not held in memory; the same can be done again for the rest. */
export const MOST_COLLECTED = 200_000

const LOOK_AT = 2_000
const DELETE_AT_A_TIME = 500

/** Finds the keys that begin with `prefix`; `onLooked` is told about how many keys were looked at. */
export async function collectKeys(
  plane: DataPlane,
  prefix: string,
  onLooked: (count: number) => void,
): Promise<readonly string[]> {
  const found = new Set<string>()
  let cursor = '0'
  let looked = 0
  do {
    const reply = await plane.send('SCAN', cursor, 'MATCH', patternOfPrefix(prefix), 'COUNT', LOOK_AT)
    const [next, keys] = itemsOf(reply)
    for (const key of itemsOf(keys)) found.add(textOf(key))
    cursor = textOf(next)
    looked += LOOK_AT
    onLooked(looked)
  } while (cursor !== '0' && found.size < MOST_COLLECTED)
  return [...found].slice(0, MOST_COLLECTED)
}

/** Deletes these keys; answers how many were still there. */
export async function deleteKeys(
  plane: DataPlane,
  keys: readonly string[],
  onDeleted: (count: number) => void,
): Promise<number> {
  let deleted = 0
  for (let at = 0; at < keys.length; at += DELETE_AT_A_TIME) {
    deleted += Number(textOf(await plane.send('UNLINK', ...keys.slice(at, at + DELETE_AT_A_TIME))))
    onDeleted(at + DELETE_AT_A_TIME)
  }
  return deleted
}
