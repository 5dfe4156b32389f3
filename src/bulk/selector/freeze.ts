import { unreachable } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import { type Bounds, type FixedSet, itemsOf, Packing } from './fixed-set.js'
import { fixNamed } from './freeze-named.js'
import type { Target } from './selector.js'

/**
 * Fixing the set of an action. Selecting reads page by page, so that it holds nobody up; what bounds the set is the
 * newest run, or the time, at the moment the request arrived, so nothing that comes while the pages are read is in it.
 */

/** Runs that one page of selecting looks at: some milliseconds, for which others who read wait at most. */
const PAGE_SCAN = 5_000

/** What to select. */
export interface Selection extends Bounds {
  readonly target: Target
}

/** Selects the runs that a cancel is about. */
export function fixSet(store: Store, selection: Selection): Promise<FixedSet> {
  const { target } = selection
  switch (target.kind) {
    case 'named':
      return fixNamed(store, selection, target.ids)
    case 'matching':
      return fixMatching(store, selection, target.filter)
    default:
      return unreachable(target)
  }
}

async function fixMatching(
  store: Store,
  { accountId, bound, most = Number.POSITIVE_INFINITY, sample }: Selection,
  filter: bulkSelect.RunFilter,
): Promise<FixedSet> {
  const packing = new Packing()
  const first: number[] = []
  let left = most
  let after: number | undefined = 0
  while (after !== undefined && left > 0) {
    const args = { accountId, filter, after, bound, scan: PAGE_SCAN, most: Math.min(left, PAGE_SCAN) }
    const page: bulkSelect.SelectedPage = await store.run(bulkSelect.selectPage, args)
    packing.add(page.seqs)
    first.push(...page.seqs.slice(0, sample - first.length))
    left -= page.seqs.length
    after = page.next
  }
  const chunks = packing.end()
  return { chunks, absent: [], matched: itemsOf(chunks), first }
}
