import type { Store } from '../../store/index.js'
import * as bulkItems from '../transactions/bulk-items.js'
import type { UndoSettings } from '../transactions/bulk-undo.js'

type Cancel = NonNullable<UndoSettings['cancel']>

const BEFORE_ALL: bulkItems.ChunkPlace = { action_seq: 0, chunk: -1 }

/** Tolerance: batches of a cancel may end in another order than they began, and on nodes whose clocks differ. */
const APART_MS = 15_000

/**
 * The period in which a cancel has cancelled its messages: only the time of its end says which cancel a message belongs to.
 * The period is that of the action, wider by a tolerance unless an undo has brought one of the messages back. Such a message
 * may have been cancelled again by another action.
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
