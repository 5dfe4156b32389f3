/** Changes of many keys: all are found first, so that exactly the counted ones change. */
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import { foundNames } from '../../../../../src/contract/databases/keys/key-transfer.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { patternOfPrefix } from './keys.js'

/** The most names in memory; the user can repeat the action for the rest. */
export const MOST_COLLECTED = 200_000

const SCAN_COUNT = 2_000
const CHANGED_AT_A_TIME = 500

/** Finds the keys with a prefix until aborted; `onSearched` gets about how many keys were searched. */
export async function collectKeys(
  plane: DataPlane,
  prefix: string,
  onSearched: (count: number) => void,
  signal: AbortSignal,
): Promise<readonly KeyName[]> {
  const found = new Set<KeyName>()
  const pattern = { pattern: patternOfPrefix(prefix), count: SCAN_COUNT }
  for await (const names of foundNames(plane.keys, pattern, onSearched)) {
    for (const name of names) found.add(name)
    if (found.size >= MOST_COLLECTED || signal.aborted) break
  }
  return [...found].slice(0, MOST_COLLECTED)
}

/** What a change of many keys came to. */
export interface ManyChanged {
  /** How many keys were changed: one that has gone is not. */
  readonly changed: number
  /** The keys that it got to before it was aborted. */
  readonly names: readonly KeyName[]
}

/** Changes keys some at a time until aborted. */
export async function changeKeys(
  names: readonly KeyName[],
  change: (some: readonly KeyName[]) => Promise<number>,
  onChanged: (count: number) => void,
  signal: AbortSignal,
): Promise<ManyChanged> {
  let changed = 0
  let at = 0
  for (; at < names.length && !signal.aborted; at += CHANGED_AT_A_TIME) {
    const some = names.slice(at, at + CHANGED_AT_A_TIME)
    changed += await change(some)
    onChanged(at + some.length)
  }
  return { changed, names: names.slice(0, at) }
}
