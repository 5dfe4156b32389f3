import { type Clock, pause } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import type { BulkActionRow } from '../transactions/bulk-action.js'
import * as bulkOwner from '../transactions/bulk-owner.js'
import * as bulkRead from '../transactions/bulk-read.js'

/** An action that ended this long before its node did may not have been made known to all dispatchers. */
const JUST_ENDED_MS = 60_000
const AGAIN_MS = 500

/** What taking over needs. */
export interface TakeOverDeps {
  readonly store: Store
  readonly clock: Clock
  readonly cluster: Pick<Cluster, 'incarnation' | 'isAlone' | 'isLive'>
  readonly queue: Pick<Queue, 'dropEverywhere'>
  readonly logger: Pick<Logger, 'warn'>
}

/** What is taken over besides the actions of nodes that can no longer act. */
export interface TakeOverOptions {
  /** Drafts that are younger stay, Unix milliseconds. */
  readonly draftsBefore: number
  /**
   * Running actions whose owner has the number of this node. `left`: it has just started, so they come from a copied store, and
   * are of a node of another cluster.
   */
  readonly own: 'left' | 'active'
}

/** Takes over the actions of nodes that can no longer act; a server alone those of its earlier life. */
async function takeOver(
  { store, clock, cluster }: TakeOverDeps,
  { draftsBefore, own }: TakeOverOptions,
): Promise<readonly BulkActionRow[]> {
  const endedAfter = clock.now() - JUST_ENDED_MS
  const from: number[] = []
  for (const owner of await store.run(bulkOwner.owners, { endedAfter })) {
    const isOver = owner === cluster.incarnation ? cluster.isAlone : !(await cluster.isLive(owner))
    if (isOver) from.push(owner)
  }
  const args = { from, owner: cluster.incarnation, draftsBefore, endedAfter }
  const taken = from.length === 0 ? [] : await store.run(bulkOwner.takeOver, args)
  if (cluster.isAlone || own === 'active') return taken
  const known = new Set(taken.map(({ seq }) => seq))
  const running = await store.run(bulkRead.running, {})
  return [...taken, ...running.filter(({ owner, seq }) => owner === cluster.incarnation && !known.has(seq))]
}

/**
 * Drops what an action has cancelled on all nodes. Its node may have ended between a commit and this, so the dispatchers of
 * others may still hold the messages.
 */
async function dropAgain({ store, cluster, queue }: TakeOverDeps, action: BulkActionRow): Promise<void> {
  const { kind, seq: actionSeq } = action
  if (cluster.isAlone || (kind !== 'cancelRuns' && kind !== 'cancelMessages')) return
  for (let chunk = 0; ; chunk++) {
    const found = await store.run(bulkOwner.succeededOf, { actionSeq, chunk })
    if (!found) return
    chunk = found.chunk
    if (found.seqs.length === 0) continue
    await queue.dropEverywhere(kind === 'cancelRuns' ? { groupKeys: found.seqs } : { seqs: found.seqs })
  }
}

/**
 * Takes over, and retries while PostgreSQL is unavailable: listeners already serve and answer 503, and an outage at this
 * moment must not end the server.
 * @param until `deadline`: Unix milliseconds; later failures are thrown.
 */
export async function takeOverPatiently(
  deps: TakeOverDeps,
  options: TakeOverOptions,
  until: { readonly deadline: number; readonly isStopped: () => boolean },
): Promise<readonly BulkActionRow[]> {
  while (!until.isStopped()) {
    try {
      return await takeOver(deps, options)
    } catch (error) {
      const isUnavailable = isError(error, 'store_unavailable') || isError(error, 'store_outcome_unknown')
      if (!isUnavailable || deps.clock.now() >= until.deadline) throw error
      await pause(deps.clock, AGAIN_MS)
    }
  }
  return []
}

/** Drops again until that has succeeded, or the worker stops. Never rejects. */
export async function dropAgainPatiently(
  deps: TakeOverDeps,
  action: BulkActionRow,
  isStopped: () => boolean,
): Promise<void> {
  while (!isStopped()) {
    try {
      return await dropAgain(deps, action)
    } catch (error) {
      deps.logger.warn('bulk_paused', { error, pauseMs: AGAIN_MS })
      await pause(deps.clock, AGAIN_MS)
    }
  }
}
