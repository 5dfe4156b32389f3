import { newId } from '../../base/index.js'
import { type Caller, type Reply, reply } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import type { FixedSet } from '../selector/fixed-set.js'
import type { Target } from '../selector/selector.js'
import * as bulkAction from '../transactions/bulk-action.js'
import * as bulkDraft from '../transactions/bulk-draft.js'
import type { Fences } from '../worker/fences.js'
import type { BulkWorker, WorkerDeps } from '../worker/worker.js'

/** What the handlers work with. */
export interface RouteDeps extends WorkerDeps {
  readonly worker: BulkWorker
  readonly fences: Fences
  /** No attempt of a delivery may take longer; bounds the settings of what is sent again. */
  readonly deliveryTimeoutMs: number
}

/** What is asked for, before its set is fixed. */
export interface NewAction {
  readonly kind: BulkKindName
  /** The selector, as it is kept for the records. */
  readonly selector: string
  /** JSON of what the kind needs besides the items. */
  readonly settings?: string
  readonly reason?: string | undefined
  readonly ratePerSecond?: number | undefined
  /** Unix milliseconds; with the target that it is for. */
  readonly fence?: { readonly target: Target; readonly until: number } | undefined
}

/**
 * Fixes a set and stores it as an action. A fence stands before the set is fixed, so that nothing gets between the two;
 * it falls again when the action cannot be stored.
 */
export async function createAction(
  deps: RouteDeps,
  caller: Caller,
  wanted: NewAction,
  fix: () => Promise<FixedSet>,
): Promise<bulkAction.BulkActionRow> {
  const { fences, clock } = deps
  const at = clock.now()
  const actionId = newId('bulk_', at)
  const { accountId } = caller
  if (!wanted.fence) return store(deps, caller, wanted, { actionId, at, set: await fix() })
  fences.raise({ actionId, accountId, ...wanted.fence }, at)
  try {
    await fences.settled()
    return await store(deps, caller, wanted, { actionId, at, set: await fix() })
  } catch (error) {
    fences.lift(accountId, actionId)
    throw error
  }
}

interface Fixed {
  readonly actionId: string
  readonly at: number
  readonly set: FixedSet
}

function store(deps: RouteDeps, caller: Caller, wanted: NewAction, { actionId, at, set }: Fixed) {
  const { kind, selector, settings = null, reason = null, ratePerSecond = null, fence } = wanted
  return storeWithSet(deps.store, set, {
    actionId,
    accountId: caller.accountId,
    kind,
    selector,
    settings,
    reason,
    ratePerSecond,
    fence: fence ? { target: JSON.stringify(fence.target), until: fence.until } : null,
    actor: caller.email,
    source: caller.source,
    ip: caller.ip,
    at,
  })
}

/** Answers as soon as the action is stored. */
export function answerLater({ worker }: RouteDeps, action: bulkAction.BulkActionRow): Reply {
  // Nobody waits for this promise; progress is asked for, and an interruption is already in the log.
  worker.finish(action).catch(() => undefined)
  return reply(202, { actionId: action.action_id, matched: action.matched })
}

/** So much is stored at a stretch, in a millisecond or two. */
const BATCH_BYTES = 128 * 1_024

type Chunks = bulkAction.SetChunks

/** Stores an action with its set: a large one batch by batch, so that nobody waits for the whole of it. */
export async function storeWithSet(
  store: Store,
  set: FixedSet,
  args: bulkAction.ActionArgs,
): Promise<bulkAction.BulkActionRow> {
  const batches = [...batchesOf(set)]
  const [only] = batches
  if (only && batches.length === 1) return store.run(bulkAction.createAction, { ...args, ...only })
  const actionSeq = await store.run(bulkDraft.draftAction, args)
  try {
    let from = 0
    for (const batch of batches) {
      await store.run(bulkDraft.addToDraft, { actionSeq, from, ...batch })
      from += batch.chunks.length + batch.absent.length
    }
    return await store.run(bulkDraft.createDrafted, { ...args, actionSeq })
  } catch (error) {
    // Where this fails too, the next start does it.
    await store.run(bulkDraft.dropDraft, { actionSeq }).catch(() => undefined)
    throw error
  }
}

/** Cuts a set where a batch is full; an empty set is one batch. */
function* batchesOf({ chunks, absent }: Chunks): Generator<Chunks> {
  let batch: { chunks: Chunks['chunks'][number][]; absent: Chunks['absent'][number][] } = { chunks: [], absent: [] }
  let bytes = 0
  for (const chunk of [...chunks, ...absent]) {
    if (bytes >= BATCH_BYTES) {
      yield batch
      batch = { chunks: [], absent: [] }
      bytes = 0
    }
    if ('seqs' in chunk) batch.chunks.push(chunk)
    else batch.absent.push(chunk)
    bytes += 'seqs' in chunk ? chunk.seqs.byteLength : chunk.ids.length
  }
  yield batch
}
