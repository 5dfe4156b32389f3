import type { Store } from '../../store/index.js'
import * as bulkAction from '../transactions/bulk-action.js'
import * as bulkDraft from '../transactions/bulk-draft.js'
import type { FixedSet } from './fixed-set.js'

/** So much is stored at a stretch, in a millisecond or two. */
const PART_BYTES = 128 * 1_024

type Chunks = bulkAction.SetChunks

/** Stores an action with its set: a large one part by part, so that nobody waits for the whole of it. */
export async function storeWithSet(
  store: Store,
  set: FixedSet,
  args: bulkAction.ActionArgs,
): Promise<bulkAction.BulkActionRow> {
  const parts = [...partsOf(set)]
  const [only] = parts
  if (only && parts.length === 1) return store.run(bulkAction.createAction, { ...args, ...only })
  const actionSeq = await store.run(bulkDraft.draftAction, args)
  try {
    let from = 0
    for (const part of parts) {
      await store.run(bulkDraft.addToDraft, { actionSeq, from, ...part })
      from += part.chunks.length + part.absent.length
    }
    return await store.run(bulkDraft.createDrafted, { ...args, actionSeq })
  } catch (error) {
    // Where this fails too, the next start does it.
    await store.run(bulkDraft.dropDraft, { actionSeq }).catch(() => undefined)
    throw error
  }
}

/** Cuts a set where a part is full; an empty set is one part. */
function* partsOf({ chunks, absent }: Chunks): Generator<Chunks> {
  let part: { chunks: Chunks['chunks'][number][]; absent: Chunks['absent'][number][] } = { chunks: [], absent: [] }
  let bytes = 0
  for (const chunk of [...chunks, ...absent]) {
    if (bytes >= PART_BYTES) {
      yield part
      part = { chunks: [], absent: [] }
      bytes = 0
    }
    if ('seqs' in chunk) part.chunks.push(chunk)
    else part.absent.push(chunk)
    bytes += 'seqs' in chunk ? chunk.seqs.byteLength : chunk.ids.length
  }
  yield part
}
