import { selectionOf } from '../../src/bulk/routes/cancel.js'
import { parseSelector } from '../../src/bulk/selector/selector.js'
import { unpackSeqs } from '../../src/bulk/transactions/bulk-pack.js'
import type { Caller } from '../../src/http/index.js'
import type { Store } from '../../src/store/index.js'

/** What runs are selected with. */
export interface Selecting {
  readonly store: Store
  readonly caller: Caller
  /** Unix milliseconds. */
  readonly now: () => number
}

/**
 * Selects active runs as a bulk cancel does. @returns their `runs.seq`; `undefined` for a selector that is refused. For the model of
 * workflows, whose module knows nothing of bulk actions.
 */
export async function selectedRuns({ store, caller, now }: Selecting, given: object): Promise<number[] | undefined> {
  const parsed = parseSelector(given, '')
  if ('problem' in parsed) return undefined
  const { select } = selectionOf({ store, clock: { now } }, caller, parsed.selector, new AbortController().signal)
  const { chunks } = await select()
  return chunks.flatMap(({ seqs }) => unpackSeqs(seqs))
}
