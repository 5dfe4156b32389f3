import { unreachable } from '../base/index.js'
import { operations, type Store } from '../store/index.js'
import type { Target } from './selector.js'

/**
 * Fixing the set of an action. Selecting reads page by page, so that it holds nobody up; what bounds the set is the
 * newest run, or the time, at the moment the request arrived, so nothing that comes while the pages are read is in it.
 */

/** Items of a chunk as it is stored; how many are decided in one transaction is up to the worker. */
export const CHUNK_ITEMS = 1_000
/** Runs that one page of selecting looks at. */
const PAGE_SCAN = 20_000

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
  selection: Selection,
  filter: operations.bulkSelect.RunFilter,
): Promise<FixedSet> {
  const chunks: operations.bulkSelect.PackedSeqs[] = []
  const sample: string[] = []
  let matched = 0
  let after: number | undefined = 0
  while (after !== undefined) {
    const most = Math.min((selection.most ?? Number.POSITIVE_INFINITY) - matched, PAGE_SCAN)
    if (most <= 0) break
    const page: operations.bulkSelect.SelectedPage = await store.run(operations.bulkSelect.selectPage, {
      accountId: selection.accountId,
      filter,
      after,
      bound: selection.bound,
      scan: PAGE_SCAN,
      most,
      chunkItems: CHUNK_ITEMS,
      sample: selection.sample - sample.length,
    })
    chunks.push(...page.chunks)
    sample.push(...page.sample)
    matched += page.matched
    after = page.next
  }
  return { chunks, absent: [], matched, sample }
}

async function fixNamed(store: Store, selection: Selection, ids: readonly string[]): Promise<FixedSet> {
  const found: operations.bulkSelect.NamedRun[] = []
  for (const part of parts(ids)) {
    const { accountId, bound } = selection
    found.push(...(await store.run(operations.bulkSelect.selectNamed, { accountId, ids: part, bound })))
  }
  found.sort((a, b) => a.seq - b.seq)
  const unfinished = found.filter((run) => run.state === 'RUN_STARTED').slice(0, selection.most)
  const finished = found.filter((run) => run.state !== 'RUN_STARTED')
  const known = new Set(found.map((run) => run.run_id))
  return {
    chunks: chunksOf([...unfinished, ...finished].map((run) => run.seq)),
    absent: parts(ids.filter((id) => !known.has(id))),
    matched: unfinished.length,
    sample: unfinished.slice(0, selection.sample).map((run) => run.run_id),
  }
}

/** Packs the numbers of items, in any order, into chunks. */
export function chunksOf(seqs: readonly number[]): operations.bulkSelect.PackedSeqs[] {
  return operations.bulkSelect.packChunks(
    [...seqs].sort((a, b) => a - b),
    CHUNK_ITEMS,
  )
}

/** Cuts a list into parts of the size of a chunk. */
export function parts<Item>(list: readonly Item[]): Item[][] {
  const all: Item[][] = []
  for (let start = 0; start < list.length; start += CHUNK_ITEMS) all.push(list.slice(start, start + CHUNK_ITEMS))
  return all
}
