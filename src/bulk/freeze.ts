import { unreachable } from '../base/index.js'
import { operations, type Store } from '../store/index.js'
import type { Target } from './selector.js'

/**
 * Fixing the set of an action. Selecting reads page by page, so that it holds nobody up; what bounds the set is the
 * newest run, or the time, at the moment the request arrived, so nothing that comes while the pages are read is in it.
 */

/** Items of a chunk as it is stored; how many are decided in one transaction is up to the worker. */
export const CHUNK_ITEMS = 2_000
/** Runs that one page of selecting looks at: some milliseconds, for which others who read wait at most. */
const PAGE_SCAN = 5_000

/** What to select. */
export interface Selection {
  readonly accountId: string
  readonly target: Target
  /** At most this many unfinished runs, oldest first. */
  readonly most: number | undefined
  /** The newest run that may be selected (`operations.bulkSelect.newest`). */
  readonly bound: number
  /** How many ids to show. */
  readonly sample: number
}

/** A fixed set. */
export interface FixedSet {
  readonly chunks: readonly operations.bulkSelect.PackedSeqs[]
  /** Ids that name nothing. */
  readonly absent: readonly (readonly string[])[]
  /** How many of the set the action can still be done to. */
  readonly matched: number
  /** The first ids of those. */
  readonly sample: readonly string[]
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
  filter: operations.bulkSelect.RunFilter,
): Promise<FixedSet> {
  const packing = new Packing()
  const first: number[] = []
  let left = most
  let after: number | undefined = 0
  while (after !== undefined && left > 0) {
    const args = { accountId, filter, after, bound, scan: PAGE_SCAN, most: Math.min(left, PAGE_SCAN) }
    const page: operations.bulkSelect.SelectedPage = await store.run(operations.bulkSelect.selectPage, args)
    packing.add(page.seqs)
    first.push(...page.seqs.slice(0, sample - first.length))
    left -= page.seqs.length
    after = page.next
  }
  const chunks = packing.end()
  return { chunks, absent: [], matched: itemsOf(chunks), sample: await idsOf(store, first) }
}

/** Packs ascending numbers as they come, so that a large set is never held as a whole. */
class Packing {
  readonly #chunks: operations.bulkSelect.PackedSeqs[] = []
  #rest: readonly number[] = []

  add(seqs: readonly number[]): void {
    const all = [...this.#rest, ...seqs]
    const full = all.length - (all.length % CHUNK_ITEMS)
    this.#chunks.push(...operations.bulkSelect.packChunks(all.slice(0, full), CHUNK_ITEMS))
    this.#rest = all.slice(full)
  }

  end(): operations.bulkSelect.PackedSeqs[] {
    return [...this.#chunks, ...operations.bulkSelect.packChunks(this.#rest, CHUNK_ITEMS)]
  }
}

/** How many items chunks hold. */
export function itemsOf(chunks: FixedSet['chunks']): number {
  return chunks.reduce((sum, { items }) => sum + items, 0)
}

const idsOf = (store: Store, seqs: readonly number[]): Promise<string[]> =>
  store.run(operations.bulkSelect.idsOf, { seqs })

async function fixNamed(
  store: Store,
  { accountId, bound, most, sample }: Selection,
  all: readonly string[],
): Promise<FixedSet> {
  const unfinished: number[] = []
  const finished: number[] = []
  const absent: string[] = []
  const seen = new Set<string>()
  for (const page of parts(all, PAGE_SCAN)) {
    // Page by page, so that a long list holds nobody up.
    const ids = page.filter((id) => !seen.has(id) && seen.add(id))
    const found = await store.run(operations.bulkSelect.selectNamed, { accountId, ids, bound })
    unfinished.push(...found.unfinished)
    finished.push(...found.finished)
    absent.push(...found.absent)
  }
  const oldest = ascending(unfinished).slice(0, most)
  return {
    chunks: chunksOf([...oldest, ...finished]),
    absent: parts(absent),
    matched: oldest.length,
    sample: await idsOf(store, oldest.slice(0, sample)),
  }
}

/** Packs the numbers of items, in any order, into chunks. */
export function chunksOf(seqs: readonly number[]): operations.bulkSelect.PackedSeqs[] {
  return operations.bulkSelect.packChunks(ascending(seqs), CHUNK_ITEMS)
}

/** Sorts numbers; for hundreds of thousands a comparison in JavaScript would hold everybody up. */
function ascending(seqs: readonly number[]): number[] {
  return Array.from(Float64Array.from(seqs).sort())
}

/** Cuts a list into parts, of the size of a chunk unless told otherwise. */
export function parts<Item>(list: readonly Item[], size = CHUNK_ITEMS): Item[][] {
  const all: Item[][] = []
  for (let start = 0; start < list.length; start += size) all.push(list.slice(start, start + size))
  return all
}
