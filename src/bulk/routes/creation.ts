import { newId } from '../../base/index.js'
import { type Caller, type Reply, reply } from '../../http/index.js'
import type { Store } from '../../store/index.js'
import type { BulkKindName } from '../../store/schema/bulk.js'
import type { FixedSet } from '../selector/fixed-set.js'
import type { Target } from '../selector/selector.js'
import * as bulkAction from '../transactions/bulk-action.js'
import * as bulkDraft from '../transactions/bulk-draft.js'
import type { BulkNodes } from '../worker/bulk-nodes.js'
import type { BulkWorker, WorkerDeps } from '../worker/worker.js'
import { undoHeader, unreadableIn } from './answers.js'

/** Collaborators and settings of the routes. */
export interface RouteDeps extends WorkerDeps {
  readonly worker: BulkWorker
  readonly nodes: BulkNodes
  /** Upper bound of the timeout of a delivery attempt, milliseconds. */
  readonly deliveryTimeoutMs: number
}

/** A requested action, before its set is fixed. */
export interface NewAction {
  readonly kind: BulkKindName
  /** JSON of the selector for the records. */
  readonly selector: string
  /** JSON of the settings of the kind. */
  readonly settings?: string
  readonly reason?: string | undefined
  readonly ratePerSecond?: number | undefined
  /** New runs that match `target` are blocked `until` this time, Unix milliseconds. */
  readonly fence?: { readonly target: Target; readonly until: number } | undefined
}

/**
 * Fixes a set and stores it as an action. All nodes raise the fence before the set is fixed, so no run slips through. The
 * fence is lifted again if storing fails.
 */
export async function createAction(
  deps: RouteDeps,
  caller: Caller,
  request: NewAction,
  select: () => Promise<FixedSet>,
): Promise<bulkAction.BulkActionRow> {
  const { nodes, clock } = deps
  const at = clock.now()
  const actionId = newId('bulk_', at)
  const { accountId } = caller
  if (!request.fence) return store(deps, caller, request, { actionId, at, set: await select() })
  const fence = { actionId, accountId, ...request.fence }
  try {
    await nodes.raise(fence, at)
    return await store(deps, caller, request, { actionId, at, set: await select() })
  } catch (error) {
    nodes.lift(fence)
    throw error
  }
}

interface NewSet {
  readonly actionId: string
  readonly at: number
  readonly set: FixedSet
}

function store(deps: RouteDeps, caller: Caller, request: NewAction, { actionId, at, set }: NewSet) {
  const { kind, selector, settings = null, reason = null, ratePerSecond = null, fence } = request
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
    unreadable: set.unreadable,
    owner: deps.cluster.incarnation,
  })
}

/** Answers 202 with the id of a stored action. */
export function answerLater({ worker }: RouteDeps, action: bulkAction.BulkActionRow): Reply {
  // Callers poll for progress, and the worker logs an interruption.
  worker.finish(action).catch(() => undefined)
  return reply(
    202,
    { actionId: action.action_id, matched: action.matched, ...unreadableIn(action) },
    undoHeader(action),
  )
}

/** Bytes to insert per transaction: one or two milliseconds. */
const BATCH_BYTES = 128 * 1_024

type Chunks = bulkAction.SetChunks

/** Stores an action with its set. Stores a large set batch by batch, so that no other writer waits for the whole. */
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
    // If this fails too, the next start deletes the draft.
    await store.run(bulkDraft.dropDraft, { actionSeq }).catch(() => undefined)
    throw error
  }
}

/** Cuts a set into batches by size; an empty set is one batch. */
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
