import { type Clock, CoalescedTask, pause } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Queue } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import type { BulkActionRow } from '../transactions/bulk-action.js'
import * as bulkOwner from '../transactions/bulk-owner.js'
import * as bulkRead from '../transactions/bulk-read.js'

/** If an action ended less than this before its node died, some dispatchers may not know of its last cancels. */
const JUST_ENDED_MS = 60_000
const AGAIN_MS = 500

/** A start fails if the store stays unavailable for longer. */
const START_TIMEOUT_MS = 30_000

/** Collaborators of `TakeOver`. */
export interface TakeOverDeps {
  readonly store: Store
  readonly clock: Clock
  readonly cluster: Pick<Cluster, 'incarnation' | 'isSingleNode' | 'isLive'>
  readonly queue: Pick<Queue, 'dropEverywhere'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
}

/** Callbacks of the worker. */
export interface TakeOverWorker {
  readonly isStopped: () => boolean
  /** Called with each running action when this node may continue it. */
  readonly onRunning: (action: BulkActionRow) => void
}

/**
 * How to treat running actions whose owner has the incarnation number of this node. `left`: take them over. This node has
 * just started, so they come from a copied store, where a node of another cluster had the number. `active`: its own.
 */
type Own = 'left' | 'active'

/**
 * Takes over the actions of nodes that can no longer act. A server alone takes over those from before its restart. It
 * retries while PostgreSQL is unavailable: listeners already serve and answer 503, and an outage must not end the server.
 *
 * Before it continues an action of another node, it drops what the action has cancelled on all nodes. That node may have
 * died between a commit and the drop, so other dispatchers may still hold the messages.
 */
export class TakeOver {
  readonly #deps: TakeOverDeps
  readonly #worker: TakeOverWorker
  /** Older drafts come from an earlier incarnation of the server. */
  readonly #createdAt: number
  readonly #takingOver = new CoalescedTask(async () =>
    this.continueActions(await this.#takeWithRetries(Number.POSITIVE_INFINITY, 'active')),
  )
  readonly #dropping = new Set<Promise<void>>()

  constructor(deps: TakeOverDeps, worker: TakeOverWorker) {
    this.#deps = deps
    this.#worker = worker
    this.#createdAt = deps.clock.now()
  }

  /**
   * Takes over the actions of an earlier incarnation and of nodes that are gone, and deletes their drafts. The caller passes
   * the result to `continueActions`.
   */
  atStart(): Promise<readonly BulkActionRow[]> {
    return this.#takeWithRetries(this.#deps.clock.now() + START_TIMEOUT_MS, 'left')
  }

  /** Takes over the actions of nodes that are gone, and continues them. Never rejects. */
  async takeOverGone(): Promise<void> {
    await this.#takingOver.run().catch(() => undefined)
  }

  /** Continues these actions. */
  continueActions(actions: readonly BulkActionRow[]): void {
    const running = actions.filter(({ state }) => state === 'running')
    if (running.length > 0) this.#deps.logger.info('bulk_resumed', { actions: running.length })
    if (this.#deps.cluster.isSingleNode) for (const action of running) this.#worker.onRunning(action)
    else for (const action of actions) this.#continueAfterDrop(action)
  }

  #continueAfterDrop(action: BulkActionRow): void {
    const dropping = this.dropAgain(action).then(() => {
      this.#dropping.delete(dropping)
      if (action.state === 'running') this.#worker.onRunning(action)
    })
    this.#dropping.add(dropping)
  }

  /** Resolves when nothing is being dropped. */
  async idle(): Promise<void> {
    await Promise.all(this.#dropping)
  }

  /** Drops on all nodes what an action has cancelled. Retries until it succeeds or the worker stops. Never rejects. */
  async dropAgain(action: BulkActionRow): Promise<void> {
    const { clock, logger } = this.#deps
    while (!this.#worker.isStopped()) {
      try {
        return await this.#drop(action)
      } catch (error) {
        logger.warn('bulk_paused', { error, pauseMs: AGAIN_MS })
        await pause(clock, AGAIN_MS)
      }
    }
  }

  async #drop({ kind, seq: actionSeq }: BulkActionRow): Promise<void> {
    const { store, cluster, queue } = this.#deps
    if (cluster.isSingleNode || (kind !== 'cancelRuns' && kind !== 'cancelMessages')) return
    for (let chunk = 0; ; chunk++) {
      const found = await store.run(bulkOwner.succeededOf, { actionSeq, chunk })
      if (!found) return
      chunk = found.chunk
      if (found.seqs.length === 0) continue
      await queue.dropEverywhere(kind === 'cancelRuns' ? { groupKeys: found.seqs } : { seqs: found.seqs })
    }
  }

  /** @param deadline Unix milliseconds; later failures are thrown. */
  async #takeWithRetries(deadline: number, own: Own): Promise<readonly BulkActionRow[]> {
    while (!this.#worker.isStopped()) {
      try {
        return await this.#take(own)
      } catch (error) {
        const isUnavailable = isError(error, 'store_unavailable') || isError(error, 'store_outcome_unknown')
        if (!isUnavailable || this.#deps.clock.now() >= deadline) throw error
        await pause(this.#deps.clock, AGAIN_MS)
      }
    }
    return []
  }

  async #take(own: Own): Promise<readonly BulkActionRow[]> {
    const { store, clock, cluster } = this.#deps
    const endedAfter = clock.now() - JUST_ENDED_MS
    const from: number[] = []
    for (const owner of await store.run(bulkOwner.owners, { endedAfter })) {
      const isOver = owner === cluster.incarnation ? cluster.isSingleNode : !(await cluster.isLive(owner))
      if (isOver) from.push(owner)
    }
    const args = { from, owner: cluster.incarnation, draftsBefore: this.#createdAt, endedAfter }
    const taken = from.length === 0 ? [] : await store.run(bulkOwner.takeOver, args)
    if (cluster.isSingleNode || own === 'active') return taken
    const known = new Set(taken.map(({ seq }) => seq))
    const running = await store.run(bulkRead.running, {})
    return [...taken, ...running.filter(({ owner, seq }) => owner === cluster.incarnation && !known.has(seq))]
  }
}
