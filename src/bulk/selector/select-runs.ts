import { charactersIn, unreachable } from '../../base/index.js'
import type { Store, StoreDescription } from '../../store/index.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import {
  type Bounds,
  ChunkPacker,
  type FixedSet,
  idsInBatches,
  inBatches,
  itemsOf,
  type Limits,
  packAbsent,
} from './fixed-set.js'
import { type Refinement, unreadableOf } from './refine.js'
import type { Target } from './selector.js'

/**
 * Selects the runs of an action. Selection reads page by page, so it blocks no other reader for long. The newest run, or
 * the time when the request arrived, bounds the set, so runs that start meanwhile are not in it.
 */

/** Runs that one page reads. SQLite: other readers wait some milliseconds at most. PostgreSQL: nobody waits. */
const PAGE_SCAN: Readonly<Record<StoreDescription['kind'], number>> = { sqlite: 5_000, postgres: 20_000 }
/** Characters of labels and prefixes that one page compares with its runs. */
const PAGE_CHARACTERS = 100_000_000

/** Runs that one page reads: fewer for long filters, because every run is compared with each label and prefix. */
function pageScan(store: Store, { label = [], urlPrefix = [] }: bulkSelect.RunFilter): number {
  const characters = charactersIn([label, urlPrefix])
  return Math.min(PAGE_SCAN[store.describe().kind], Math.ceil(PAGE_CHARACTERS / Math.max(1, characters)))
}

/** The target and bounds of a selection. */
export interface Selection extends Bounds {
  readonly target: Target
  /** The conditions; absent without any. */
  readonly refinement?: Refinement | undefined
}

/** Selects the runs of a cancel. */
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
  { accountId, bound, most = Number.POSITIVE_INFINITY, sample, refinement }: Selection,
  filter: bulkSelect.RunFilter,
): Promise<FixedSet> {
  const packing = new ChunkPacker()
  const first: number[] = []
  const scan = pageScan(store, filter)
  let left = most
  let after: number | undefined = 0
  while (after !== undefined && left > 0) {
    const args = { accountId, filter, after, bound, scan, most: refinement ? scan : Math.min(left, scan) }
    const page: bulkSelect.SelectedPage = await store.run(bulkSelect.selectPage, args)
    const seqs = refinement ? await refinement.keep(page.seqs, left) : page.seqs
    packing.add(seqs)
    first.push(...seqs.slice(0, sample - first.length))
    left -= seqs.length
    after = page.next
  }
  const chunks = packing.end()
  return { chunks, absent: [], matched: itemsOf(chunks), first, ...unreadableOf(refinement) }
}

type NamedRuns = bulkSelect.NamedRuns

/** Ids per lookup: some milliseconds of the store. */
const PAGE_IDS = 5_000
/** Runs per lookup of their states. */
const PAGE_RUNS = 4_000

/** Finds runs by id; duplicate ids count once. */
async function selectNamedRuns(store: Store, bounds: Bounds, ids: readonly string[]): Promise<FixedSet> {
  const { accountId, bound } = bounds
  const found = new FoundRuns(store)
  let before: Promise<NamedRuns> | undefined
  // Requests the next page before the previous answer arrives, so nothing idles in between.
  for (const page of idsInBatches(ids, PAGE_IDS)) {
    const asked = store.run(bulkSelect.selectNamed, { accountId, ids: page, bound })
    // Awaited in the next iteration; if an earlier page fails, nobody awaits it.
    asked.catch(() => undefined)
    if (before) found.add(await before)
    before = asked
  }
  if (before) found.add(await before)
  return found.fix(bounds)
}

/** Runs found so far. */
class FoundRuns {
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

  /** Without a limit, ended runs are in the set; their outcome is decided in their batch. */
  async fix({ most, sample }: Limits): Promise<FixedSet> {
    const runs = sortedUnique(this.#pages)
    const set = most === undefined && sample === 0 ? all(runs) : this.#oldest(runs, most ?? runs.length, sample)
    return { ...(await set), absent: await packAbsent(this.#absent) }
  }

  /** The oldest active runs up to the limit, and all ended ones. */
  async #oldest(runs: readonly number[], most: number, sample: number): Promise<Omit<FixedSet, 'absent'>> {
    const packing = new ChunkPacker()
    const first: number[] = []
    let matched = 0
    for (const seqs of inBatches(runs, PAGE_RUNS)) {
      const unfinished = await this.#store.run(bulkSelect.selectActive, { seqs })
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
  const packing = new ChunkPacker()
  packing.add(runs)
  return { chunks: packing.end(), matched: runs.length, first: [] }
}

/** The numbers of all pages, sorted and without duplicates. */
function sortedUnique(pages: readonly ArrayLike<number>[]): number[] {
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
