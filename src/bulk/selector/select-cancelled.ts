import type { Store } from '../../store/index.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import * as bulkUndo from '../transactions/bulk-undo.js'
import { ChunkPacker, type FixedSet, idsInBatches, inBatches, packAbsent, SAMPLE_ITEMS } from './fixed-set.js'

/** Selects what an undo brings back: what a cancel has cancelled, or items by id. */

/** Ids per lookup. */
const PAGE_IDS = 2_000
/** The message kind of plain messages. */
const PLAIN_KIND = 'http'

/** The account of the items, and their type. */
export interface CancelledBounds {
  readonly accountId: string
  readonly itemType: 'runs' | 'messages'
}

/** The items that a cancel has cancelled, and that are still cancelled by it. */
export async function selectCancelledBy(
  store: Store,
  bounds: CancelledBounds,
  cancel: NonNullable<bulkUndo.UndoSettings['cancel']>,
): Promise<FixedSet> {
  const found: number[] = []
  let chunk: number | undefined = 0
  while (chunk !== undefined) {
    const page: bulkUndo.CancelledPage = await store.run(bulkUndo.cancelledByAction, { ...bounds, cancel, chunk })
    for (const seq of page.seqs) found.push(seq)
    chunk = page.next
  }
  // The set of a cancel of messages is not sorted: messages that wait in queues come first.
  const seqs = bulkSelect.ascending(found)
  const packing = new ChunkPacker()
  packing.add(seqs)
  return { chunks: packing.end(), absent: [], matched: seqs.length, first: seqs.slice(0, SAMPLE_ITEMS) }
}

/** Items by id; duplicates count once. Items that are not cancelled are in the set: their batch decides their outcome. */
export async function selectCancelledNamed(
  store: Store,
  bounds: CancelledBounds,
  ids: readonly string[],
): Promise<FixedSet> {
  const found = new Set<number>()
  const absent = new Set<string>()
  for (const page of idsInBatches([...new Set(ids)], PAGE_IDS)) {
    const named = await find(store, bounds, page)
    for (const seq of named.found) found.add(seq)
    for (const id of named.absent) absent.add(id)
  }
  const seqs = bulkSelect.ascending([...found])
  const cancelled: number[] = []
  for (const page of inBatches(seqs, PAGE_IDS)) {
    cancelled.push(...(await store.run(bulkUndo.cancelledAmong, { ...bounds, seqs: page })))
  }
  const packing = new ChunkPacker()
  packing.add(seqs)
  return {
    chunks: packing.end(),
    absent: await packAbsent(absent),
    matched: cancelled.length,
    first: cancelled.slice(0, SAMPLE_ITEMS),
  }
}

interface Found {
  readonly found: readonly number[]
  readonly absent: readonly string[]
}

async function find(store: Store, { accountId, itemType }: CancelledBounds, ids: readonly string[]): Promise<Found> {
  if (itemType === 'runs') {
    const args = { accountId, ids, bound: Number.MAX_SAFE_INTEGER }
    const { found, absent } = await store.run(bulkSelect.selectNamed, args)
    return { found: Array.from(found), absent }
  }
  const rows = await store.run(bulkSelect.selectNamedMessages, { accountId, kind: PLAIN_KIND, ids })
  const known = new Set(rows.map((row) => row.message_id))
  return { found: rows.map(({ seq }) => seq), absent: ids.filter((id) => !known.has(id)) }
}
