import { unreachable } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import { type Bounds, type FixedSet, inBatches, itemsOf, type Limits, Packing, packAbsent } from './fixed-set.js'
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
export function selectRuns(store: Store, selection: Selection): Promise<FixedSet> {
  const { target } = selection
  switch (target.kind) {
    case 'named':
      return selectNamedRuns(store, selection, target.ids)
    case 'matching':
      return selectMatchingRuns(store, selection, target.filter)
    default:
      return unreachable(target)
  }
}

async function selectMatchingRuns(
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

/** Fixing a set that is given by ids. */

type NamedRuns = bulkSelect.NamedRuns

/** Ids that are looked up at once, in some milliseconds of the store. */
const PAGE_IDS = 5_000
/** Of so many runs it is looked up at once whether they have ended. */
const PAGE_RUNS = 4_000

/** Selects the runs that ids name. An id may come more than once. */
async function selectNamedRuns(store: Store, bounds: Bounds, ids: readonly string[]): Promise<FixedSet> {
  const { accountId, bound } = bounds
  const found = new Found(store)
  let before: Promise<NamedRuns> | undefined
  // The next page is asked for before the last is answered: nothing idles between them.
  for (const page of inBatches(ids, PAGE_IDS)) {
    const asked = store.run(bulkSelect.selectNamed, { accountId, ids: page, bound })
    // The next step awaits it; when the one before fails, nothing does.
    asked.catch(() => undefined)
    if (before) found.add(await before)
    before = asked
  }
  if (before) found.add(await before)
  return found.fix(bounds)
}

/** What has been found so far. */
class Found {
  readonly #store: Store
  readonly #pages: ArrayLike<number>[] = []
  readonly #absent = new Set<string>()

  constructor(store: Store) {
    this.#store = store
  }

  add({ found, absent }: NamedRuns): void {
    this.#pages.push(found)
    for (const id of absent) this.#absent.add(id)
  }

  /** The outcome of a run is decided when its turn comes, unless a limit asks for unfinished runs only. */
  async fix({ most, sample }: Limits): Promise<FixedSet> {
    const runs = inOrder(this.#pages)
    const set = most === undefined && sample === 0 ? all(runs) : this.#oldest(runs, most ?? runs.length, sample)
    return { ...(await set), absent: await packAbsent(this.#absent) }
  }

  /** The oldest unfinished ones, with all that have ended. */
  async #oldest(runs: readonly number[], most: number, sample: number): Promise<Omit<FixedSet, 'absent'>> {
    const packing = new Packing()
    const first: number[] = []
    let matched = 0
    for (const seqs of inBatches(runs, PAGE_RUNS)) {
      const unfinished = await this.#store.run(bulkSelect.selectUnfinished, { seqs })
      const left = new Set(unfinished.slice(most - matched))
      const taken = unfinished.slice(0, most - matched)
      packing.add(seqs.filter((seq) => !left.has(seq)))
      first.push(...taken.slice(0, sample - first.length))
      matched += taken.length
    }
    return { chunks: packing.end(), matched, first }
  }
}

function all(runs: readonly number[]): Omit<FixedSet, 'absent'> {
  const packing = new Packing()
  packing.add(runs)
  return { chunks: packing.end(), matched: runs.length, first: [] }
}

/** The numbers of all pages in their order, each once. */
function inOrder(pages: readonly ArrayLike<number>[]): number[] {
  const numbers = new Float64Array(pages.reduce((sum, page) => sum + page.length, 0))
  let at = 0
  for (const page of pages) {
    numbers.set(page, at)
    at += page.length
  }
  const ordered: number[] = []
  for (const number of numbers.sort()) if (number !== ordered.at(-1)) ordered.push(number)
  return ordered
}
