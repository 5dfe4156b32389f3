import { type Clock, isObject, pause, type Timer } from '../../base/index.js'
import type { Cluster } from '../../cluster/index.js'
import type { Store } from '../../store/index.js'
import type { BulkActionRow } from '../transactions/bulk-action.js'
import * as bulkControl from '../transactions/bulk-control.js'
import * as bulkPaused from '../transactions/bulk-paused.js'
import * as bulkRead from '../transactions/bulk-read.js'
import type { CancelledChildren } from './cancelled-children.js'
import type { Fence, Fences } from './fences.js'
import type { BulkWorker } from './worker.js'

/** `Cluster.notify`: block new runs, and answer when all triggers that had passed are stored. */
const FENCE = 'bulk.fence'
/** `Cluster.notify`: a fence is lifted, because its action was not stored or has ended. */
const LIFT = 'bulk.lift'
/** `Cluster.notify`: somebody has paused, resumed, aborted or changed an action. */
const CHANGED = 'bulk.changed'
/** `Cluster.notify`: a workflow was paused or resumed; answer when all triggers that began before that are stored. */
const WORKFLOWS = 'bulk.workflows'
/** `Cluster.ask`: answers true when no batch of an action is in flight at its node. */
const SETTLED = 'bulk.settled'
/** `Cluster.ask`: the fences of a node, for a node that starts. */
const FENCES = 'bulk.fences'

const AGAIN_MS = 1_000
/** Interval at which a node is asked again whether its batches are settled. A dead node does not answer. */
const ASK_AGAIN_MS = 100
/**
 * Maximum time to wait for that answer: longer than a batch waits for nodes that have just died. A node of the previous
 * version never answers.
 */
const SETTLED_WITHIN_MS = 15_000
/** How often the leader looks for actions of nodes that are gone. */
const TAKE_OVER_EVERY_MS = 10_000

/** What `BulkNodes` is built from. */
export interface BulkNodesDeps {
  readonly store: Store
  readonly clock: Clock
  readonly cluster: Cluster
  readonly fences: Fences
  readonly worker: BulkWorker
  readonly cancelledChildren: CancelledChildren
}

/** Applies changes of bulk actions on all nodes of a cluster. A server alone applies them locally. */
export class BulkNodes {
  readonly #deps: BulkNodesDeps
  /** Changes are read and applied one after the other: an older row must not undo a newer one. */
  #following: Promise<void> = Promise.resolve()
  #isStopped = false
  #timer: Timer | undefined

  constructor(deps: BulkNodesDeps) {
    this.#deps = deps
    const { cluster, fences, clock } = deps
    cluster.handle(FENCE, async (payload) => {
      fences.accept(readFence(payload), clock.now())
      await fences.settled()
    })
    cluster.handle(LIFT, (payload) => {
      const { accountId, actionId } = readName(payload)
      fences.lift(accountId, actionId)
    })
    cluster.handle(CHANGED, (payload) => this.#follow(readName(payload)))
    cluster.handle(SETTLED, async (payload) => {
      await this.#deps.worker.settled(readSeq(payload))
      return true
    })
    cluster.handle(WORKFLOWS, (payload) => this.#followWorkflows(readAccount(payload)))
    cluster.handle(FENCES, () => fences.all)
  }

  /** Loads the stored fences, and the fences that other nodes are raising right now. */
  async loadFences(): Promise<void> {
    const { store, clock, cluster, fences } = this.#deps
    for (const { answer } of await cluster.ask(FENCES, {})) {
      for (const fence of Array.isArray(answer) ? answer : []) fences.accept(readFence(fence), clock.now())
    }
    // In order with changes: a change that arrives meanwhile is newer than what is read here.
    await this.#inOrder(async () => {
      const known = fences.all
      await fences.load(store, clock.now())
      await this.#liftEnded(known)
    })
  }

  /** Lifts fences that the store has no more. If the commit that lifted one was lost, no node was notified of it. */
  async #liftEnded(known: readonly Fence[]): Promise<void> {
    if (known.length === 0) return
    const actionIds = known.map(({ actionId }) => actionId)
    const lifted = new Set(await this.#deps.store.run(bulkControl.withoutFence, { actionIds }))
    for (const fence of known) if (lifted.has(fence.actionId)) this.lift(fence)
  }

  start(): void {
    void this.#deps.cancelledChildren.look()
    if (!this.#deps.cluster.isSingleNode) this.#takeOverLater()
  }

  stop(): void {
    this.#isStopped = true
    this.#deps.cancelledChildren.stop()
    this.#timer?.cancel()
  }

  /** A node that was declared dead may have stored or resumed an action since, before it noticed. */
  #takeOverLater(): void {
    const { clock, cluster, worker, cancelledChildren } = this.#deps
    this.#timer = clock.after(TAKE_OVER_EVERY_MS, () => {
      if (cluster.isLeader) {
        worker.takeOver()
        void cancelledChildren.look()
      }
      this.#takeOverLater()
    })
  }

  /**
   * Raises a fence on all nodes. Resolves when every trigger that had passed, on any of them, is stored or has failed.
   * @param at now, Unix milliseconds.
   */
  async raise(fence: Fence, at: number): Promise<void> {
    const { fences, cluster } = this.#deps
    // Here first: a node that joins after the notification asks for it.
    fences.raise(fence, at)
    await Promise.all([fences.settled(), cluster.notify(FENCE, fence)])
  }

  /** Lifts a fence whose action was not stored, or has ended; on other nodes as soon as they can be reached. */
  lift({ accountId, actionId }: Pick<Fence, 'accountId' | 'actionId'>): void {
    const { fences, cluster } = this.#deps
    fences.lift(accountId, actionId)
    if (!cluster.isSingleNode) void this.#untilDone(() => cluster.notify(LIFT, { accountId, actionId }))
  }

  /** Repeats `work` until it succeeds, or the server stops. Never rejects. */
  async #untilDone(work: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) {
      try {
        return await work()
      } catch {
        await pause(this.#deps.clock, AGAIN_MS)
      }
    }
  }

  /** Rejects if the first attempt fails, but then repeats `work` until it succeeds: all nodes must apply a commit. */
  #tryThenRepeat(work: () => Promise<void>): Promise<void> {
    const done = work()
    done.catch(() => pause(this.#deps.clock, AGAIN_MS).then(() => this.#untilDone(work)))
    return done
  }

  /** Applies a stored pause or resume of a workflow on all nodes. Resolves when triggers that began before have ended. */
  async workflowsChanged(accountId: string): Promise<void> {
    const elsewhere = () => this.#deps.cluster.notify(WORKFLOWS, { accountId })
    await Promise.all([() => this.#followWorkflows(accountId), elsewhere].map((apply) => this.#tryThenRepeat(apply)))
  }

  async #followWorkflows(accountId: string): Promise<void> {
    const { store, fences } = this.#deps
    await this.#inOrder(async () => fences.paused.replace(accountId, await store.run(bulkPaused.paused, { accountId })))
    await fences.settled()
  }

  /**
   * Applies a stored change of an action on all nodes; resolves when its owner acts on it. If the action is no longer
   * running, its batches in flight are settled by then, so no node delivers anything that they cancelled.
   */
  async changed(action: BulkActionRow): Promise<void> {
    const { cluster, cancelledChildren } = this.#deps
    const name = { accountId: action.account_id, actionId: action.action_id }
    const elsewhere = () => cluster.notify(CHANGED, name)
    await Promise.all([() => this.#follow(name), elsewhere].map((apply) => this.#tryThenRepeat(apply)))
    if (action.state !== 'running') await this.#settled(action)
    if (action.state === 'aborted' && action.kind === 'undoCancelRuns') await cancelledChildren.look()
  }

  async #settled(action: BulkActionRow): Promise<void> {
    const { cluster, worker, clock } = this.#deps
    const { seq, owner } = action
    if (cluster.isSingleNode || owner === cluster.incarnation) return void (await worker.settled(seq))
    for (const endAt = clock.now() + SETTLED_WITHIN_MS; !this.#isStopped && clock.now() < endAt; ) {
      const answers = await cluster.ask(SETTLED, { seq }, owner)
      if (answers.some(({ answer }) => answer === true)) return
      if (!(await cluster.isLive(owner))) return worker.dropAgain(action)
      await pause(clock, ASK_AGAIN_MS)
    }
  }

  #follow(name: ActionName): Promise<void> {
    return this.#inOrder(async () => {
      const action = await this.#deps.store.run(bulkRead.action, name)
      if (action) this.#apply(action)
    })
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const follow = this.#following.then(work)
    this.#following = follow.catch(() => undefined)
    return follow
  }

  #apply(action: BulkActionRow): void {
    const { fences, worker } = this.#deps
    if (action.fence_until === null) fences.lift(action.account_id, action.action_id)
    worker.changed(action)
  }
}

interface ActionName {
  readonly accountId: string
  readonly actionId: string
}

function readName(payload: unknown): ActionName {
  const { accountId, actionId } = isObject(payload) ? payload : {}
  if (typeof accountId === 'string' && typeof actionId === 'string') return { accountId, actionId }
  throw new Error('another node named no bulk action')
}

function readSeq(payload: unknown): number {
  const { seq } = isObject(payload) ? payload : {}
  if (typeof seq === 'number') return seq
  throw new Error('another node named no bulk action')
}

function readAccount(payload: unknown): string {
  const { accountId } = isObject(payload) ? payload : {}
  if (typeof accountId === 'string') return accountId
  throw new Error('another node named no account')
}

/** Refuses a fence that it does not understand. If it ignored the fence, runs would start that the caller blocked. */
function readFence(payload: unknown): Fence {
  const { target, until } = isObject(payload) ? payload : {}
  const isTarget = isObject(target) && (target.kind === 'named' || target.kind === 'matching')
  if (!isTarget || typeof until !== 'number') throw new Error('another node sent a fence that is not understood')
  // Parsed strictly by the node that raised it, which may be one version apart.
  return { ...readName(payload), target: target as Fence['target'], until }
}
