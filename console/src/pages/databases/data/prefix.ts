/** Changes of many keys. All keys are found first, so that exactly the counted ones change. */
import type { KeyName } from '../../../../../src/contract/databases/keys/key-name.js'
import { foundNames } from '../../../../../src/contract/databases/keys/key-transfer.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { patternOfPrefix } from './keys.js'

/** Most names in memory. For further keys, the user repeats the action. */
export const MAX_COLLECTED = 200_000

const SCAN_COUNT = 2_000
const CHANGED_AT_A_TIME = 500

/** Finds the keys with a prefix until aborted. `onSearched` gets the approximate number of searched keys. */
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
    if (found.size >= MAX_COLLECTED || signal.aborted) break
  }
  return [...found].slice(0, MAX_COLLECTED)
}

/** The result of a change of many keys. */
export interface KeysChanged {
  /** Number of changed keys, without keys that no longer exist. */
  readonly changed: number
  /** The keys that were processed before the change ended or was aborted. */
  readonly names: readonly KeyName[]
}

/** Changes keys in batches until aborted. */
export async function changeKeys(
  names: readonly KeyName[],
  change: (some: readonly KeyName[]) => Promise<number>,
  onChanged: (count: number) => void,
  signal: AbortSignal,
): Promise<KeysChanged> {
  let changed = 0
  let at = 0
  for (; at < names.length && !signal.aborted; at += CHANGED_AT_A_TIME) {
    const some = names.slice(at, at + CHANGED_AT_A_TIME)
    changed += await change(some)
    onChanged(at + some.length)
  }
  return { changed, names: names.slice(0, at) }
}
