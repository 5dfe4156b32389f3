import { type Clock, isObject } from '../base/index.js'
import type { Cluster } from '../cluster/index.js'
import { partitionOfKey } from '../cluster/key-partition.js'
import type { Store } from '../store/index.js'
import type { Dispatcher } from './dispatcher/dispatcher.js'
import type { FlowUse } from './dispatcher/flow-key.js'
import {
  DROP,
  DUE,
  FLOW,
  FLOW_USE,
  type FlowChange,
  LOAD,
  type NodeLoad,
  readDrop,
  readDue,
  readFlowChange,
  readFlowUses,
  readLoad,
  SCHEDULES,
} from './peer-messages.js'
import * as flowPartitions from './transactions/flow-partitions.js'
import type { DropSelector } from './types.js'

/** What the nodes of a queue are built from. */
export interface QueueNodesDeps {
  readonly cluster: Cluster
  readonly store: Store
  readonly clock: Clock
  readonly dispatcher: Dispatcher
  /** Called on the leader when schedules have changed. */
  readonly onSchedules: () => void
  /** Called when this node has become the leader. */
  readonly onLeader: () => void
}

/** Most flow-control keys whose use one answer lists. */
const MAX_USES = 10_000

/** Sends requests to the queues of the other nodes and handles theirs. On a server that is alone it sends nothing. */
export class QueueNodes {
  readonly #deps: QueueNodesDeps
  readonly #cluster: Cluster

  constructor(deps: QueueNodesDeps) {
    this.#deps = deps
    this.#cluster = deps.cluster
  }

  /** Registers the handlers for messages of other nodes. Before the cluster starts. */
  join(): void {
    const { dispatcher, onSchedules, onLeader } = this.#deps
    const cluster = this.#cluster
    cluster.hold(dispatcher.partitions)
    cluster.handle(DROP, (payload) => dispatcher.drop(readDrop(payload)))
    cluster.handle(DUE, (payload) => dispatcher.partitions.hinted(readDue(payload)))
    cluster.handle(FLOW, (payload) => this.#readChanged(readFlowChange(payload)))
    cluster.handle(FLOW_USE, (payload) => this.#answerUses(payload))
    cluster.handle(LOAD, () => dispatcher.parallelism)
    cluster.handle(SCHEDULES, onSchedules)
    cluster.onLeader((isLeader) => {
      if (isLeader) onLeader()
    })
  }

  /**
   * Runs before this node takes partitions. Versions without partitions stored messages of flow-control keys; this assigns
   * them the partitions of their keys. Every node does that, so that none sends such a message before it has its partition.
   */
  async start(): Promise<void> {
    if (this.#cluster.isSingleNode) return
    let after: flowPartitions.KeyedPlace | undefined = flowPartitions.FIRST
    while (after) after = await this.#deps.store.run(flowPartitions.moveToKeys, { after })
  }

  /** Forgets messages on all other nodes. */
  async drop(which: DropSelector): Promise<void> {
    if (!this.#cluster.isSingleNode) await this.#cluster.notify(DROP, which)
  }

  /**
   * The stored limits of keys have changed: all nodes read them. This node reads them too instead of using its own values,
   * because the reply to an earlier change may arrive after the reply to a later one.
   */
  async flowChanged(change: FlowChange): Promise<void> {
    await Promise.all([this.#readChanged(change), this.#cluster.notify(FLOW, change)])
  }

  /** Schedules have changed. Only the leader fires them. */
  schedulesChanged(): void {
    if (this.#cluster.isLeader) this.#deps.onSchedules()
    else this.#cluster.hintLeader(SCHEDULES, null)
  }

  /**
   * The use of all flow-control keys of an account, or of one key, as their owners count it. A key that is not in use,
   * or whose owner does not answer, is absent.
   */
  async flowUses(accountId: string, key?: string): Promise<ReadonlyMap<string, FlowUse>> {
    const isHere = this.#cluster.isSingleNode || (key !== undefined && this.#isOwn(accountId, key))
    if (isHere) return new Map(this.#usesHere(accountId, key))
    const answers = await this.#cluster.ask(FLOW_USE, key === undefined ? { accountId } : { accountId, key })
    return new Map([...this.#usesHere(accountId, key), ...answers.flatMap(({ answer }) => readFlowUses(answer))])
  }

  /** Requests in flight, and their limit, on all nodes together. */
  async parallelism(): Promise<NodeLoad> {
    const here = this.#deps.dispatcher.parallelism
    if (this.#cluster.isSingleNode) return here
    const all = [here, ...(await this.#cluster.ask(LOAD, null)).map(({ answer }) => readLoad(answer))]
    return all.reduce((sum, { sending, most }) => ({ sending: sum.sending + sending, most: sum.most + most }))
  }

  /** Like `flowUses`, for one page of keys at a time. A server that is alone looks up only these keys, not all in memory. */
  async flowUsesOf(accountId: string): Promise<(keys: readonly string[]) => ReadonlyMap<string, FlowUse>> {
    const { dispatcher, clock } = this.#deps
    const useOf = (key: string) => [key, dispatcher.flow.use(accountId, key, clock.now())] as const
    if (this.#cluster.isSingleNode) return (keys) => new Map(keys.map(useOf))
    const everywhere = await this.flowUses(accountId)
    return () => everywhere
  }

  #isOwn(accountId: string, key: string): boolean {
    return this.#deps.dispatcher.partitions.sends(partitionOfKey(accountId, key))
  }

  #answerUses(payload: unknown): (readonly [string, FlowUse])[] {
    const { accountId, key } = isObject(payload) ? payload : {}
    if (typeof accountId !== 'string') return []
    return this.#usesHere(accountId, typeof key === 'string' ? key : undefined).slice(0, MAX_USES)
  }

  #usesHere(accountId: string, key: string | undefined): (readonly [string, FlowUse])[] {
    const { flow } = this.#deps.dispatcher
    const now = this.#deps.clock.now()
    const uses = key === undefined ? flow.uses(accountId, now) : [[key, flow.use(accountId, key, now)] as const]
    return uses.filter(([name]) => this.#isOwn(accountId, name))
  }

  async #readChanged({ keys, isReset }: FlowChange): Promise<void> {
    const { flow, limits } = this.#deps.dispatcher
    await limits.read(keys)
    if (isReset) for (const [accountId, key] of keys) flow.resetRate(accountId, key)
    this.#deps.dispatcher.limitsChanged()
  }
}
