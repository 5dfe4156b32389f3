import { partitionOfKey } from '../key-partition.js'
import { type Cluster, PARTITIONS, type PartitionHolder, type Peer, type PeerHandler } from '../types.js'

/**
 * Nodes in one process that call each other directly, for tests of modules that use a cluster. The test decides who owns
 * what. There are no rows, beats or sockets.
 */
export class LocalCluster {
  readonly #nodes: LocalNode[] = []
  /** Whether hints get lost. */
  losesHints = false

  /** Adds a node. The first one is the leader. */
  add(name = `n${this.#nodes.length + 1}`): LocalNode {
    const node = new LocalNode(this, this.#nodes.length + 1, name)
    this.#nodes.push(node)
    return node
  }

  get nodes(): readonly LocalNode[] {
    return this.#nodes
  }

  ownerOf(partition: number): LocalNode | undefined {
    return this.#nodes.find((node) => node.owns(partition))
  }

  /** Gives partitions to a node: their owners let go first, if they are alive. */
  async give(partitions: readonly number[], to: LocalNode, graceMs = 1_000): Promise<void> {
    const notes = new Map<number, unknown>()
    for (const node of this.#nodes) {
      const theirs = partitions.filter((partition) => node !== to && node.owns(partition))
      if (theirs.length === 0) continue
      if (!node.isDead) for (const [partition, note] of await node.release(theirs, graceMs)) notes.set(partition, note)
      node.lose(theirs)
    }
    to.gain(partitions.map((partition) => ({ partition, notes: notes.get(partition) })))
  }

  /** A node can no longer act. Its partitions go to the heir. */
  async declareDead(dead: LocalNode, heir: LocalNode): Promise<void> {
    const wasLeader = dead.isLeader
    dead.die()
    if (wasLeader) this.#nodes.find((node) => node.isLeader)?.becomeLeader()
    await this.give(dead.owned, heir)
    for (const node of this.#nodes) if (node !== dead) node.reportGone(dead.incarnation)
  }
}

/** One node of a `LocalCluster`. */
export class LocalNode implements Cluster {
  readonly name = 'cluster'
  readonly isSingleNode = false
  readonly takesPart = true
  readonly isDraining = false
  readonly isBeingDrained = false
  readonly #handlers = new Map<string, PeerHandler>()
  readonly #owned = new Set<number>()
  readonly #gone: ((incarnation: number) => void)[] = []
  readonly #leading: ((isLeader: boolean) => void)[] = []
  #holder: PartitionHolder | undefined
  #isDead = false
  #next = 0

  readonly #all: LocalCluster
  readonly incarnation: number
  readonly nodeName: string

  constructor(all: LocalCluster, incarnation: number, nodeName: string) {
    this.#all = all
    this.incarnation = incarnation
    this.nodeName = nodeName
  }

  get isDead(): boolean {
    return this.#isDead
  }

  get owned(): readonly number[] {
    return [...this.#owned]
  }

  get isLeader(): boolean {
    return this.#all.nodes.find((node) => !node.isDead) === this
  }

  get peers(): readonly Peer[] {
    return this.#others().map(({ incarnation, nodeName }) => ({
      incarnation,
      name: nodeName,
      advertise: '127.0.0.1:0',
      state: 'live',
    }))
  }

  #others(): LocalNode[] {
    return this.#all.nodes.filter((node) => node !== this && !node.isDead)
  }

  mayAct = (): boolean => !this.#isDead
  owns = (partition: number): boolean => this.#owned.has(partition)

  partitionFor(accountId: string, flowKey: string | undefined): number {
    if (flowKey !== undefined) return partitionOfKey(accountId, flowKey)
    const own = this.owned
    return own[this.#next++ % own.length] ?? this.#next++ % PARTITIONS
  }

  hold(holder: PartitionHolder): void {
    this.#holder = holder
  }

  onLeader(listener: (isLeader: boolean) => void): void {
    this.#leading.push(listener)
  }
  onNodeGone(listener: (incarnation: number) => void): void {
    this.#gone.push(listener)
  }
  handle(topic: string, handler: PeerHandler): void {
    this.#handlers.set(topic, handler)
  }
  isLive(incarnation: number): Promise<boolean> {
    return Promise.resolve(this.#all.nodes.some((node) => node.incarnation === incarnation && !node.isDead))
  }
  async notify(topic: string, payload: unknown): Promise<void> {
    for (const node of this.#others()) await node.receive(topic, payload, this.incarnation)
  }
  hint(partition: number, topic: string, payload: unknown): void {
    const owner = this.#all.ownerOf(partition)
    if (owner && owner !== this && !owner.isDead && !this.#all.losesHints)
      void owner.receive(topic, payload, this.incarnation)
  }
  hintLeader(topic: string, payload: unknown): void {
    const leader = this.#others().find(({ isLeader }) => isLeader)
    if (leader && !this.#all.losesHints) void leader.receive(topic, payload, this.incarnation)
  }
  async ask(topic: string, payload: unknown, of?: number) {
    const answers = []
    for (const peer of this.peers) {
      const node = this.#all.nodes.find(({ incarnation }) => incarnation === peer.incarnation)
      if (!node || (of !== undefined && of !== peer.incarnation)) continue
      answers.push({ peer, answer: await node.receive(topic, payload, this.incarnation) })
    }
    return answers
  }
  serve(): void {}
  tunnel(node: string): Promise<never> {
    return Promise.reject(new Error(`no tunnel to ${node}`))
  }
  open(): void {}
  drain(): Promise<void> {
    return Promise.resolve()
  }
  start(): Promise<void> {
    return Promise.resolve()
  }
  stop(): Promise<void> {
    return Promise.resolve()
  }

  /** Receives a message of another node. The payload is copied, as if it came from a socket. */
  async receive(topic: string, payload: unknown, from: number): Promise<unknown> {
    const handler = this.#handlers.get(topic)
    return handler ? await handler(JSON.parse(JSON.stringify(payload ?? null)), from) : undefined
  }

  async release(partitions: readonly number[], graceMs: number): Promise<ReadonlyMap<number, unknown>> {
    return (await this.#holder?.release(partitions, graceMs))?.notes ?? new Map()
  }

  lose(partitions: readonly number[]): void {
    for (const partition of partitions) this.#owned.delete(partition)
    if (!this.#isDead) this.#holder?.lost(partitions)
  }

  gain(gained: readonly { readonly partition: number; readonly notes?: unknown }[]): void {
    for (const { partition } of gained) this.#owned.add(partition)
    this.#holder?.gained(gained)
  }

  die(): void {
    this.#isDead = true
  }

  becomeLeader(): void {
    for (const listener of this.#leading) listener(true)
  }

  reportGone(incarnation: number): void {
    for (const listener of this.#gone) listener(incarnation)
  }
}
