import type { Duplex } from 'node:stream'
import { pause } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { BeatSchedule } from './beat-schedule.js'
import { Cleaning } from './cleaning.js'
import type { ClusteredDeps } from './clustered-deps.js'
import { DeathDetector } from './death-detector.js'
import { HandOver } from './hand-over.js'
import { Holdings } from './holdings.js'
import { partitionOfKey } from './key-partition.js'
import { Leadership } from './leadership.js'
import { type Moment, Tenure } from './membership.js'
import { Notifications } from './notifications.js'
import { hasHeir, planOwnership } from './ownership.js'
import type { PeerLink } from './peer-link.js'
import { PeerNodes } from './peer-nodes.js'
import { describeNode, register } from './registration.js'
import { Services } from './services.js'
import * as nodeRows from './transactions/cluster-nodes.js'
import * as partitionRows from './transactions/cluster-partitions.js'
import type { Cluster, Incarnation, PartitionHolder, Peer, PeerAnswer, PeerHandler, StreamHandler } from './types.js'

/** Topic that asks a node to look at the rows now. */
const LOOK = 'cluster.look'
/**
 * When the operator drains a node, partitions wait this long for requests in
 * flight. After that, these may be sent again.
 */
const OPERATOR_GRACE_MS = 60_000
/** How long `stop` waits for the store, so that an unavailable store does not keep the process from ending. */
const LEAVE_WITHIN_MS = 2_000

/**
 * A node of a cluster: a thin shell around the decisions of `membership.ts` and `ownership.ts`.
 *
 * A node that was declared dead does not begin a new incarnation in the same process, because the state that its modules
 * have in memory may have become outdated without a notification. The process ends, and its supervisor starts it again.
 */
export class Clustered implements Cluster {
  readonly name = 'cluster'
  readonly isSingleNode = false
  readonly #deps: ClusteredDeps
  readonly #monotonicMs: () => number
  readonly #tenure = new Tenure()
  readonly #deaths: DeathDetector
  readonly #holdings = new Holdings()
  readonly #link: PeerLink
  readonly #notifications: Notifications
  readonly #handOver: HandOver
  readonly #cleaning: Cleaning
  readonly #neighbours = new PeerNodes()
  readonly #leadership: Leadership
  readonly #services = new Services()
  #incarnation: Incarnation = 0
  /** `draining`: the operator drains the node, until it is resumed. `leaving`: the process stops. */
  #phase: 'new' | 'joined' | 'open' | 'draining' | 'leaving' | 'ended' = 'new'
  #drainForOperator: Promise<void> | undefined
  readonly #rhythm: BeatSchedule
  #isBeating = false
  /** The rows of the last look. */
  #seen: partitionRows.Seen | undefined

  constructor(deps: ClusteredDeps) {
    this.#deps = deps
    const { store, upkeep, clock, logger, meter } = deps
    this.#monotonicMs = deps.monotonicMs ?? (() => performance.now())
    this.#deaths = new DeathDetector(upkeep, (incarnation) => this.#hasDied(incarnation))
    this.#cleaning = new Cleaning(upkeep, clock, this.#monotonicMs)
    const me = (): Incarnation => this.#incarnation
    this.#link = deps.link({
      incarnation: me,
      onRequest: (request) => this.#notifications.receive(request),
      onTunnel: (head) => this.#services.find(head),
    })
    this.#leadership = new Leadership({
      me,
      store: upkeep,
      mayAct: () => this.mayAct(),
      onChange: (isLeader) =>
        logger.info(isLeader ? 'cluster_leader' : 'cluster_leader_no_more', { node: deps.identity.name }),
    })
    const own = { me, pause: (ms: number) => pause(clock, ms), nowMs: this.#monotonicMs }
    this.#notifications = new Notifications({
      ...own,
      store,
      link: this.#link,
      logger,
      meter,
      wallMs: () => clock.now(),
      isOver: () => this.#tenure.isOver,
    })
    this.#handOver = new HandOver({
      ...own,
      store: upkeep,
      holdings: this.#holdings,
      notifications: this.#notifications,
      heirs: () => this.peers,
      isOver: () => this.#tenure.isOver,
      wake: (nodes) => this.#wake(nodes),
      onGiven: (partitions, tookMs) => {
        meter.handOver.record(tookMs / 1_000)
        logger.info('cluster_partitions_given', { partitions, durationMs: Math.round(tookMs) })
      },
    })
    this.#rhythm = new BeatSchedule({ clock, beat: () => this.#beat(), look: () => this.#look() })
    // The handler does not wait for the look, because the asking node may be about to end.
    this.handle(LOOK, () => void this.#rhythm.look())
  }

  get incarnation(): Incarnation {
    return this.#incarnation
  }

  get owned(): readonly number[] {
    return this.#holdings.owned
  }

  get isLeader(): boolean {
    return this.#leadership.isMine
  }

  get peers(): readonly Peer[] {
    return this.#neighbours.all
  }

  get takesPart(): boolean {
    return this.#phase === 'open' || this.#phase === 'draining'
  }

  get isDraining(): boolean {
    return this.isBeingDrained || this.#phase === 'leaving'
  }

  get isBeingDrained(): boolean {
    return this.#phase === 'draining'
  }

  mayAct(): boolean {
    return this.#tenure.mayAct(this.#monotonicMs(), this.#deps.clock.now())
  }

  owns(partition: number): boolean {
    return this.#holdings.owns(partition)
  }

  partitionFor(accountId: string, flowKey: string | undefined): number {
    return flowKey === undefined ? this.#holdings.next() : partitionOfKey(accountId, flowKey)
  }

  onLeader(listener: (isLeader: boolean) => void): void {
    this.#leadership.onChange(listener)
  }

  hold(holder: PartitionHolder): void {
    this.#holdings.hold(holder)
  }

  onNodeGone(listener: (incarnation: Incarnation) => void): void {
    this.#neighbours.onNodeGone(listener)
  }

  isLive(incarnation: Incarnation): Promise<boolean> {
    return this.#deps.store.run(nodeRows.isLive, { incarnation })
  }

  handle(topic: string, handler: PeerHandler): void {
    this.#notifications.handle(topic, handler)
  }

  notify(topic: string, payload: unknown): Promise<void> {
    return this.#notifications.notify(topic, payload)
  }

  hint(partition: number, topic: string, payload: unknown): void {
    this.#hintTo(this.#holdings.ownerOf(partition), topic, payload)
  }

  hintLeader(topic: string, payload: unknown): void {
    this.#hintTo(this.#leadership.leader, topic, payload)
  }

  #hintTo(to: Incarnation | null, topic: string, payload: unknown): void {
    const peer = this.#neighbours.of(to)
    if (peer) this.#notifications.hint(peer, topic, payload)
  }

  async ask(topic: string, payload: unknown, of?: Incarnation): Promise<readonly PeerAnswer[]> {
    const isMeant = ({ incarnation }: Peer): boolean => of === undefined || incarnation === of
    return this.#notifications.ask(this.peers.filter(isMeant), topic, payload)
  }

  serve(service: string, accept: StreamHandler, isServing?: () => boolean): void {
    this.#services.serve(service, accept, isServing)
  }

  tunnel(node: string, service: string, ip: string, detail = ''): Promise<Duplex> {
    const peer = this.peers.find(({ name }) => name === node)
    if (peer) return this.#link.tunnel(peer, { service, ip, detail })
    return Promise.reject(new Error(`no node ${node} takes part`))
  }

  async start(): Promise<void> {
    if (this.#phase !== 'new') return
    const { upkeep: store, identity, clock, logger } = this.#deps
    await this.#link.start()
    const [node, sent] = [describeNode(identity, this.#link.port), this.#now()]
    const { incarnation, seen } = await register(node, { store, clock, monotonicMs: this.#monotonicMs })
    this.#incarnation = incarnation
    this.#deps.store.actFor?.(incarnation)
    this.#notifications.begin(seen)
    this.#tenure.beaten(sent)
    this.#phase = 'joined'
    logger.info('cluster_joined', { node: identity.name, incarnation })
    this.#rhythm.start()
    await this.#beat()
    await this.#rhythm.look()
  }

  open(): void {
    if (this.#phase !== 'joined') return
    this.#phase = 'open'
    void this.#rhythm.look()
  }

  async drain(graceMs: number): Promise<void> {
    if (!['joined', 'open', 'draining'].includes(this.#phase)) return
    this.#phase = 'leaving'
    this.#leadership.mayLead = false
    const endMs = this.#monotonicMs() + graceMs
    // A drain for the operator may still wait for partitions with requests in flight.
    if (this.#drainForOperator) await Promise.race([this.#drainForOperator, pause(this.#deps.clock, graceMs)])
    await this.#giveUp(Math.max(0, endMs - this.#monotonicMs()), 'draining')
  }

  /** Follows the state that the operator has set in the row of this node, and gives up what other nodes can take. */
  async #follow({ nodes, leader }: partitionRows.Seen): Promise<void> {
    const me = this.#incarnation
    const state = nodes.find(({ incarnation }) => incarnation === me)?.state
    if (state === 'draining' && this.#phase === 'open') this.#phase = 'draining'
    else if (state === 'live' && this.#phase === 'draining') this.#phase = 'open'
    const mustGiveUp = this.#phase === 'draining' && hasHeir(nodes)
    this.#leadership.mayLead = this.takesPart && !mustGiveUp
    if (!mustGiveUp) return
    if (this.#holdings.owned.length > 0) this.#startDrain()
    else if (leader === me) await this.#handOver.resign()
  }

  /** Gives up all partitions. Partitions that no node has taken are kept, and given up as soon as a node can take them. */
  #startDrain(): void {
    this.#drainForOperator = this.#giveUp(OPERATOR_GRACE_MS, 'resigned').then(() => {
      this.#drainForOperator = undefined
      const left = this.#holdings.all.filter((partition) => !this.#holdings.owns(partition))
      if (this.takesPart) this.#holdings.keep(left, new Map())
    })
  }

  /** Gives up all partitions and the leadership. Never rejects. */
  async #giveUp(graceMs: number, becomes: 'resigned' | 'draining'): Promise<void> {
    this.#leadership.notify()
    await this.#handOver.drain({ graceMs, becomes, known: this.#seen && { ...this.#seen, me: this.#incarnation } })
    // After a look, one of the other nodes leads, and all of them send hints to the new owners.
    this.#wake(this.#neighbours.incarnations)
  }

  async stop(): Promise<void> {
    const hasJoined = !['new', 'ended'].includes(this.#phase)
    this.#end()
    await this.#rhythm.stop()
    const { upkeep: store, clock, logger } = this.#deps
    if (hasJoined) {
      const incarnation = this.#incarnation
      // If the store does not answer, the other nodes declare this one dead.
      const left = store.run(nodeRows.leave, { incarnation })
      await Promise.race([left, pause(clock, LEAVE_WITHIN_MS)]).catch((error) =>
        logger.warn('cluster_not_left', { error }),
      )
      await this.#notifications.ask(this.peers, LOOK, null)
    }
    await this.#link.stop()
  }

  #end(): void {
    this.#phase = 'ended'
    this.#leadership.mayLead = false
    this.#tenure.end()
    this.#rhythm.end()
    this.#holdings.lose(this.#holdings.all)
    this.#leadership.notify()
  }

  /** Others have declared this incarnation dead. */
  #die(): void {
    if (this.#phase === 'ended') return
    this.#end()
    const error = new HomeportError('node_declared_dead', { node: this.#deps.identity.name })
    this.#deps.logger.error('cluster_declared_dead', { node: this.#deps.identity.name, error })
    this.#deps.onDead(error)
  }

  #now(): Moment {
    return { monotonicMs: this.#monotonicMs(), wallMs: this.#deps.clock.now() }
  }

  /** Never rejects. */
  async #beat(): Promise<void> {
    const { upkeep: store, clock, meter } = this.#deps
    if (this.#phase === 'ended') return
    if (this.#isBeating) return void meter.beatsMissed++
    this.#isBeating = true
    const sent = this.#now()
    const beat = { incarnation: this.#incarnation, seen: this.#notifications.seen, now: clock.now() }
    try {
      if (await store.run(nodeRows.beat, beat)) this.#beaten(sent)
      else this.#die()
    } catch {
      meter.beatsMissed++
    } finally {
      this.#isBeating = false
    }
  }

  /**
   * A beat was stored. If the node could not act before, listeners are notified that it did not lead, and then that it leads
   * again. So work that a timer skipped meanwhile is done now, even if no look has ended since.
   */
  #beaten(sent: Moment): void {
    this.#leadership.notify()
    this.#tenure.beaten(sent)
    this.#leadership.notify()
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    await this.#lookOnce().catch((error) => {
      this.#deaths.lookFailed()
      this.#deps.logger.debug('cluster_look_failed', { error })
    })
    this.#leadership.notify()
  }

  async #lookOnce(): Promise<void> {
    const [sentMs, epochs] = [this.#monotonicMs(), this.#holdings.epochs]
    const seen = await this.#deps.upkeep.run(partitionRows.look, { seen: this.#notifications.seen })
    const returnedMs = this.#monotonicMs()
    if (this.#phase === 'ended') return
    if (!seen.nodes.some(({ incarnation }) => incarnation === this.#incarnation)) return this.#die()
    void this.#handleAll(seen.announcements)
    const others = seen.nodes.filter(({ incarnation }) => incarnation !== this.#incarnation)
    await this.#deaths.examine({ sentMs, returnedMs, beats: others })
    this.#neighbours.update(others)
    this.#leadership.leader = seen.leader
    this.#seen = seen
    await this.#settle(seen, epochs)
    if (this.isLeader) await this.#cleaning.runIfDue()
  }

  /** Handles announcements, and then beats at once, because other nodes wait for that beat. Never rejects. */
  async #handleAll(announcements: partitionRows.Seen['announcements']): Promise<void> {
    if (await this.#notifications.handleAll(announcements)) await this.#beat()
  }

  #hasDied(incarnation: Incarnation): void {
    const { logger, meter } = this.#deps
    meter.declaredDead++
    this.#rhythm.lookSoon()
    logger.warn('cluster_node_dead', { node: this.#neighbours.of(incarnation)?.name ?? '', incarnation })
  }

  /** Reconciles what this node holds with the rows. @param epochs the epochs that were known before the look. */
  async #settle(seen: partitionRows.Seen, epochs: readonly number[]): Promise<void> {
    const { upkeep: store } = this.#deps
    const me = this.#incarnation
    await this.#handOver.receive(this.#holdings.reconcile(me, seen.partitions, epochs))
    if (this.#phase === 'leaving') await this.#handOver.giveRest({ ...seen, me })
    await this.#follow(seen)
    if (!this.takesPart) return
    if (seen.nodes.some(({ incarnation, is_open }) => incarnation === me && is_open === 0)) {
      await store.run(nodeRows.open, { incarnation: me })
      this.#rhythm.lookSoon()
      return
    }
    const { take, give } = planOwnership({ me, nodes: seen.nodes, partitions: seen.partitions })
    if (take > 0) this.#handOver.gain(await store.run(partitionRows.take, { incarnation: me, most: take }))
    if (give) void this.#handOver.balance(give.count, give.to)
    await this.#leadership.claim(seen)
  }

  #wake(nodes: ReadonlySet<Incarnation>): void {
    for (const peer of this.peers) if (nodes.has(peer.incarnation)) this.#notifications.hint(peer, LOOK, null)
  }
}
