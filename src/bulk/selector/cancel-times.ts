import type { Store } from '../../store/index.js'
import * as bulkItems from '../transactions/bulk-items.js'
import type { UndoSettings } from '../transactions/bulk-undo.js'

type Cancel = NonNullable<UndoSettings['cancel']>

const BEFORE_ALL: bulkItems.ChunkPlace = { action_seq: 0, chunk: -1 }

/** Batches of a cancel may end in another order than they began, and on nodes whose clocks differ. */
const APART_MS = 15_000

/**
 * From when to when a cancel has cancelled its messages. Nothing says which cancel a message is of but its time. Until one of
 * them is brought back, none can have been cancelled again, so the times may be wider than those of the action.
 */
export async function timesOfCancel(store: Store, accountId: string, cancel: Cancel): Promise<Cancel> {
  const { seq, from, to } = cancel
  const wider = { seq, from: from - APART_MS, to: to + APART_MS }
  const undone = new Set<number>()
  const undos = { accountId, seq, before: wider.to }
  for await (const seqs of pages((after) => store.run(bulkItems.itemsOfUndos, { ...undos, after }), BEFORE_ALL)) {
    for (const item of seqs) undone.add(item)
  }
  if (undone.size === 0) return wider
  const first = { action_seq: seq, chunk: -1 }
  for await (const seqs of pages((after) => store.run(bulkItems.itemsOfAction, { after }), first)) {
    if (seqs.some((item) => undone.has(item))) return cancel
  }
  return wider
}

type Page = bulkItems.ItemsPage

async function* pages(
  read: (after: bulkItems.ChunkPlace) => Promise<Page>,
  first: bulkItems.ChunkPlace,
): AsyncGenerator<Page['seqs']> {
  let after: bulkItems.ChunkPlace | undefined = first
  while (after) {
    const page: Page = await read(after)
    yield page.seqs
    after = page.last
  }
}
