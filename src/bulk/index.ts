/**
 * Bulk actions over workflow runs: one request cancels any number of them.
 *
 *   selector ── parse, strictly ── fix the set ── store action + set ── parts, one transaction each ── finished
 *                   │                  │                  │                        │
 *                  400            read only,          202 for async,     runs cancelled, deliveries gone,
 *               (nothing is       in pages            and durable        outcomes, counters; the last one
 *                cancelled)                           from here on       also ends the action and writes
 *                                                                        the audit entry
 *
 * - `selector.ts`: what is asked for. Nothing is ignored and nothing guessed: a misspelt filter must not turn into
 *   "cancel everything".
 * - `freeze.ts`: which runs that is. The set is fixed once; runs that are triggered later are never touched.
 * - `worker.ts`: works on it, a part of one action at a time, every action in its turn, other writers in between.
 *   It takes up again what an earlier life of the server left, and isolates a run that cannot be cancelled.
 * - `routes.ts`, `answers.ts`: the wire.
 *
 * An action is `running` or `finished`; the transactions of both arrows are in `store/operations/bulk.ts`.
 *
 * Promises: an action that was stored is finished, whatever is killed and whoever disconnects; every item of its set
 * gets exactly one outcome; of all actions that hold a run, at most one counts its cancellation; nothing of a cancelled
 * run is delivered after the answer. This room never decides what cancelling a run means: that is the workflow room's.
 */
import type { Service } from '../base/index.js'
import type { Route } from '../http/index.js'
import { bulkRoutes } from './routes.js'
import { BulkWorker, type WorkerDeps } from './worker.js'

/** What the room needs. */
export type BulkDeps = WorkerDeps

/**
 * The room: a service and its HTTP operations. It starts after the queue and stops before the listener, whose callers
 * would otherwise be waited for: they are told that their action goes on at the next start.
 */
export interface Bulk extends Service {
  routes(): readonly Route[]
}

/** Builds the room. */
export function createBulk(deps: BulkDeps): Bulk {
  const worker = new BulkWorker(deps)
  const routes = bulkRoutes({ ...deps, worker })
  return { name: 'bulk', start: () => worker.start(), stop: () => worker.stop(), routes: () => routes }
}
