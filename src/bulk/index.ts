/**
 * Bulk actions: one request acts on any number of runs, messages or dead letters.
 *
 * ```
 *  selector ─▶ parse strictly ─▶ fix the set ─▶ store action + set ─▶ batches, one transaction each ─▶ finished
 *                   │                 │                 │                       │
 *              invalid: 400,      read only,        durable; async     effects, outcomes and counters;
 *             nothing is done      in pages         calls get 202      the last batch ends the action and
 *                                                                      writes the audit entry
 * ```
 *
 * - `selector/`: which items the caller means. The parser ignores and guesses nothing: a misspelled filter must not
 *   turn into "cancel everything". The set is fixed when the action starts; items created later are never touched.
 *   Conditions are tested afterwards, page by page, on the items that pass the filters (`refine.ts`).
 * - `expression/`: the small language over payloads: parsed strictly, bounded in size and cost, compiled to functions.
 * - `routes/`: the HTTP operations. `creation.ts` stores an action with its set, a large set in several transactions.
 *   `progress.ts` streams progress as server-sent events.
 * - `worker/`: `worker.ts` processes running actions batch by batch, in turn and within their rate limits. It requests
 *   the next batches while one is being decided, and the store lets other writers go first (`turn: 'background'`).
 *   `batch-size.ts` keeps a batch to a few milliseconds. `kinds.ts` says what an action does to its items. `fences.ts`
 *   blocks new runs that match a cancel, for a while. `take-over.ts` continues actions of nodes that are gone, and
 *   `cancelled-children.ts` reports runs that an undo has left cancelled to the runs that invoked them.
 *   `bulk-nodes.ts` applies each change on all nodes of a cluster.
 * - `transactions/`: `bulk-action.ts` has the transactions of the state machine; `store/schema/bulk.ts` lists the
 *   states.
 *
 * Guarantees
 * - A stored action is finished unless somebody aborts it, even if the server is killed or the client disconnects. If its
 *   node dies, another node continues it. The old node decides nothing more, because each batch checks the owner in the row.
 * - Every item of the set gets exactly one outcome. If several cancels hold the same run, at most one counts it.
 * - After the answer, no node delivers anything of a cancelled run.
 * - After the answer to a pause or an abort, the action does nothing more.
 *
 * The module does not define what cancelling or resuming a run means; the workflow module does.
 */
// Registers the lookup of pending cancels with the logs of runs.
import './transactions/bulk-upcoming.js'
import type { Service } from '../base/index.js'
import { type Cluster, singleNode } from '../cluster/index.js'
import type { Route } from '../http/index.js'
import { type LargeCancel, Retention } from '../queue/index.js'
import { AfterLostCommits } from '../store/index.js'
import type { TriggerGate } from '../workflow/index.js'
import { cancelManyMessages } from './routes/cancel.js'
import { bulkRoutes } from './routes/routes.js'
import * as bulkDraft from './transactions/bulk-draft.js'
import * as bulkRetention from './transactions/bulk-retention.js'
import { BulkNodes } from './worker/bulk-nodes.js'
import { CancelledChildren } from './worker/cancelled-children.js'
import { Fences } from './worker/fences.js'
import { BulkWorker, type WorkerDeps } from './worker/worker.js'

/** The collaborators and settings of the module. */
export interface BulkDeps extends Omit<WorkerDeps, 'fences' | 'cluster'> {
  /** The nodes that use the store. Default: this one is alone. */
  readonly cluster?: Cluster
  /** Upper bound of the timeout of a delivery attempt, milliseconds; limits the settings of resent messages. */
  readonly deliveryTimeoutMs: number
  /** How long ended actions are kept, milliseconds. */
  readonly retentionMs: number
}

/**
 * The service and its HTTP operations. It starts after the queue and stops before the listener: callers that wait for
 * an action get `bulk_action_interrupted` then, so that they do not delay the stop.
 */
export interface Bulk extends Service {
  routes(): readonly Route[]
  /** For the workflow module: decides which runs may start. Triggers that arrive before `start` wait for it. */
  readonly gate: TriggerGate
  /** For the queue, which hands over cancels of very many messages. */
  readonly cancelMessages: LargeCancel
}

/** Builds the module; nothing runs before `start`. */
export function createBulk(deps: BulkDeps): Bulk {
  const { store, clock, logger, cluster = singleNode() } = deps
  const fences = new Fences()
  const worker = new BulkWorker({ ...deps, cluster, fences })
  const nodes = new BulkNodes({
    store,
    clock,
    cluster,
    fences,
    worker,
    cancelledChildren: new CancelledChildren(deps),
  })
  const retention = retentionOf(deps, cluster)
  const afterLostCommits = new AfterLostCommits({
    store,
    clock,
    logger,
    what: 'bulk actions',
    recover: async () => {
      await nodes.loadFences()
      await worker.adoptRunning()
    },
  })
  const routeDeps = { ...deps, cluster, fences, worker, nodes }
  const routes = bulkRoutes(routeDeps)
  return {
    name: 'bulk',
    gate: fences,
    cancelMessages: (caller, request) => cancelManyMessages(routeDeps, caller, request),
    start: async () => {
      await nodes.loadFences()
      await worker.start()
      nodes.start()
      afterLostCommits.start()
      await retention.start()
    },
    stop: async () => {
      await retention.stop()
      await afterLostCommits.stop()
      nodes.stop()
      await worker.stop()
    },
    routes: () => routes,
  }
}

function retentionOf({ store, clock, logger, retentionMs }: BulkDeps, cluster: Cluster): Retention {
  return new Retention({
    name: 'bulk actions',
    clock,
    logger,
    keepMs: retentionMs,
    sweep: async (step) => {
      if (!cluster.isLeader) return undefined
      // Deletes drafts that a lost commit has left behind.
      if (step.after === 0) await store.run(bulkDraft.dropDrafts, { before: step.finishedBefore })
      return store.run(bulkRetention.sweepActions, step)
    },
  })
}
