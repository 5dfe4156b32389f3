/**
 * Bulk actions: one request does something to any number of runs, messages or dead letters.
 *
 *   selector ── parse, strictly ── fix the set ── store action + set ── batches, one transaction each ── finished
 *                   │                  │                  │                        │
 *                  400            read only,          202 for async,     effects, outcomes, counters;
 *              (nothing is         in pages            and durable       the last one also ends the action
 *                 done)                                from here on      and writes the audit entry
 *
 * - `selector.ts`, `start-routes.ts`: what is asked for. Nothing is ignored and nothing guessed: a misspelt filter must
 *   not turn into "cancel everything".
 * - `freeze.ts`, `freeze-named.ts`, `freeze-messages.ts`: which items that is. The set is fixed once; what comes later
 *   is never touched. `store-set.ts` stores a large one batch by batch.
 * - `worker.ts`: works on it batch by batch, every action in its turn and no faster than its rate, the next batches asked
 *   for while one is decided; the store lets other writers go before each (`turn: 'background'`). `batch-size.ts` keeps
 *   a batch to a few milliseconds. It takes up again what an earlier life of the server left, and isolates an item that
 *   cannot be worked on.
 * - `kinds.ts`: what is done to the items; the rooms whose items these are say how.
 * - `fences.ts`: keeps runs like those that a cancel is about from starting, also again, for a while.
 * - `routes.ts`, `cancel.ts`, `control-routes.ts`, `progress.ts`, `answers.ts`: the wire.
 *
 * The states of an action stand in `store/schema/bulk.ts`; the transactions of their arrows in
 * `transactions/bulk-action.ts`.
 *
 * Promises: an action that was stored is finished unless somebody aborts it, even if the server is killed or the client
 * disconnects; every item of its set gets exactly one outcome; of all actions that hold a run, at most one counts its
 * cancellation; nothing of a cancelled run is delivered after the answer; nothing is done for an action after the answer
 * to its pause or abort. This room never decides what canceling or resuming a run means: that is the workflow room's.
 */
// Tells the logs of runs which cancels are still to come.
import './transactions/bulk-upcoming.js'
import type { Service } from '../base/index.js'
import type { Route } from '../http/index.js'
import { type LargeCancel, Retention } from '../queue/index.js'
import type { TriggerGate } from '../workflow/index.js'
import { cancelManyMessages } from './routes/cancel.js'
import { bulkRoutes } from './routes/routes.js'
import * as bulkRetention from './transactions/bulk-retention.js'
import { Fences } from './worker/fences.js'
import { BulkWorker, type WorkerDeps } from './worker/worker.js'

/** What the room needs. */
export interface BulkDeps extends Omit<WorkerDeps, 'fences'> {
  /** No attempt of a delivery may take longer; bounds the settings of what is sent again. */
  readonly deliveryTimeoutMs: number
  /** How long ended actions are kept. */
  readonly retentionMs: number
}

/**
 * The room: a service and its HTTP operations. It starts after the queue and stops before the listener, whose callers
 * would otherwise be waited for: they are told that their action goes on at the next start.
 */
export interface Bulk extends Service {
  routes(): readonly Route[]
  /** For the workflow room: which runs may start. Triggers that come before `start` wait for it. */
  readonly gate: TriggerGate
  /** For the queue: canceling very many messages is an action too. */
  readonly cancelMessages: LargeCancel
}

/** Builds the room. */
export function createBulk(deps: BulkDeps): Bulk {
  const { store, clock, logger } = deps
  const fences = new Fences()
  const worker = new BulkWorker({ ...deps, fences })
  const retention = new Retention({
    name: 'bulk actions',
    clock,
    logger,
    keepMs: deps.retentionMs,
    sweep: (step) => store.run(bulkRetention.sweepActions, step),
  })
  const rooms = { ...deps, worker, fences }
  const routes = bulkRoutes(rooms)
  return {
    name: 'bulk',
    gate: fences,
    cancelMessages: (caller, request) => cancelManyMessages(rooms, caller, request),
    start: async () => {
      await fences.load(store, clock.now())
      await worker.start()
      await retention.start()
    },
    stop: async () => {
      await retention.stop()
      await worker.stop()
    },
    routes: () => routes,
  }
}
