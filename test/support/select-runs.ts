import { selectionOf } from '../../src/bulk/routes/cancel.js'
import { parseSelector } from '../../src/bulk/selector/selector.js'
import { unpackSeqs } from '../../src/bulk/transactions/bulk-pack.js'
import type { Caller } from '../../src/http/index.js'
import type { Store } from '../../src/store/index.js'

/** The collaborators of a selection. */
export interface Selecting {
  readonly store: Store
  readonly caller: Caller
  /** Unix milliseconds. */
  readonly now: () => number
}

/**
 * Selects active runs as a bulk cancel does. The model of workflows uses it, because the module `workflow` may not import
 * `bulk`. @returns their `runs.seq`; `undefined` for a refused selector.
 */
export async function selectedRuns({ store, caller, now }: Selecting, given: object): Promise<number[] | undefined> {
  const parsed = parseSelector(given, '')
  if ('problem' in parsed) return undefined
  const { select } = selectionOf({ store, clock: { now } }, caller, parsed.selector, new AbortController().signal)
  const { chunks } = await select()
  return chunks.flatMap(({ seqs }) => unpackSeqs(seqs))
}
