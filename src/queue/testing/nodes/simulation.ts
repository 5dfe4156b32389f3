import * as clusterNodes from '../../../cluster/transactions/cluster-nodes.js'
import * as clusterPartitions from '../../../cluster/transactions/cluster-partitions.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import * as schedules from '../../transactions/schedules.js'
import * as census from './census.js'
import { Checks } from './checks.js'
import { Effects } from './effects.js'
import { Ledger } from './ledger.js'
import { Network } from './network.js'
import { Operator } from './operator.js'
import type { Plant } from './plants.js'
import { SimulatedLinks } from './simulated-links.js'
import { SimulatedNode } from './simulated-node.js'
import type { ExtensionFactory, SimulationExtension, Stage } from './stage.js'
import { Timeline } from './timeline.js'
import { Traffic } from './traffic.js'

/** Faults happen until then. */
const FAULTS_UNTIL_MS = 30_000
/** Without faults everything ends within this time. */
const ENDS_WITHIN_MS = 60_000
/** Partitions are balanced within this time. */
const BALANCED_WITHIN_MS = 30_000
/** This long after the last fault, its slow calls and restarts have ended. */
const SETTLED_AFTER_MS = 14_000
/** Nodes notice what the operator writes within this time. */
const NOTICED_WITHIN_MS = 2_000
const NAMES = ['a', 'b', 'c', 'd']
const NODES = 3
/** Clocks of nodes may differ by this much in each direction. Homeport refuses or reports larger differences. */
const MAX_OFFSET_MS = 900
/** Messages that are published when everything is quiet, and how soon they are sent. */
const QUIET_MESSAGES = 8
const QUIET_WITHIN_MS = 500
/** After `HINTED_MS` a hint has arrived or is lost. A sweep then finds its message within `SWEPT_MS`. */
const HINTED_MS = 1_000
const SWEPT_MS = 5_000

/** Options of a simulation. */
export interface SimulationOptions {
  /** A mistake to plant. Default: none. */
  readonly plant?: Plant
  /** Whether events are recorded for a reader. Default: no. */
  readonly isTraced?: boolean
  /** Modules above the queue. Default: none. */
  readonly extensions?: readonly ExtensionFactory[]
}

/** The result of a simulation. */
export interface Played {
  /** The broken invariant; `undefined` if all were kept. */
  readonly problem: string | undefined
  /** The events up to the end or the problem, if `isTraced`. */
  readonly trace: readonly string[]
  readonly steps: number
  readonly requests: number
  readonly declaredDead: number
  readonly fires: number
}

/**
 * Nodes on one store in virtual time, all from one seed: the real cluster, queue and transactions, with clients that
 * publish and cancel, slow and lost calls, pauses, suspended machines, kills, drains, joins, clocks that are set, and
 * outages of the store. Then the faults stop, everything must end, and a quiet cluster must send at once.
 */
export class Simulation {
  readonly #timeline: Timeline
  readonly #memory: MemoryStore
  readonly #network: Network
  readonly #links: SimulatedLinks
  readonly #effects = new Effects()
  readonly #ledger: Ledger
  readonly #extensions: readonly SimulationExtension[]
  readonly #checks: Checks
  readonly #traffic: Traffic
  readonly #operator: Operator
  readonly #plant: Plant
  /** Whether the clocks of the nodes are right and never set. */
  readonly #hasOneClock: boolean
  /** Whether another server of the store takes over at times, without the last commits. */
  readonly #losesCommits: boolean
  #nodes: SimulatedNode[] = []
  #declaredDead = 0

  constructor(
    memory: MemoryStore,
    seed: number,
    { plant = {}, isTraced = false, extensions = [] }: SimulationOptions = {},
  ) {
    memory.clear()
    this.#memory = memory
    this.#plant = plant
    this.#timeline = new Timeline(seed, isTraced)
    this.#hasOneClock = seed % 2 === 0
    this.#losesCommits = seed % 5 === 0
    this.#network = new Network(this.#timeline)
    this.#links = new SimulatedLinks(this.#timeline, this.#network, plant.redirect)
    const [timeline, network, effects] = [this.#timeline, this.#network, this.#effects]
    this.#ledger = new Ledger({ timeline, memory })
    const stage: Stage = { timeline, memory, network, effects, ledger: this.#ledger, nodes: () => this.#nodes }
    this.#extensions = extensions.map((create) => create(stage))
    this.#checks = new Checks(stage)
    this.#traffic = new Traffic(stage)
    this.#operator = new Operator(stage)
    this.#watch()
  }

  /** Runs to the end, or to the first broken invariant. */
  async play(): Promise<Played> {
    const undo = this.#plant.patch?.(this.#timeline, this.#memory)
    try {
      await this.#play()
    } finally {
      undo?.()
    }
    const { problem, trace = [], steps } = this.#timeline
    const { requests, fires } = this.#ledger
    return { problem, trace, steps, requests, fires, declaredDead: this.#declaredDead }
  }

  async #play(): Promise<void> {
    const timeline = this.#timeline
    for (const name of NAMES.slice(0, NODES)) this.#join(name)
    for (const id of ['hourly', 'other']) timeline.at(3_000, () => this.#traffic.schedule(id))
    timeline.at(2_500, () => this.#act())
    timeline.at(4_000, () => this.#fault())
    await this.#until(FAULTS_UNTIL_MS)
    this.#network.isQuiet = true
    timeline.note('the faults stop')
    await this.#until(timeline.now + 5_000)
    await this.#until(timeline.now + ENDS_WITHIN_MS, () => this.#isOver())
    if (timeline.problem === undefined) this.#checks.checkEnd()
    if (timeline.problem === undefined) for (const extension of this.#extensions) extension.checkEnd()
    await this.#until(FAULTS_UNTIL_MS + SETTLED_AFTER_MS)
    if (timeline.random.chance(0.1)) this.#operator.drain(NAMES)
    await this.#until(timeline.now + NOTICED_WITHIN_MS)
    await this.#until(FAULTS_UNTIL_MS + BALANCED_WITHIN_MS, () => this.#checks.isBalanced)
    if (timeline.problem === undefined) await this.#quiet()
  }

  /** Checks that without faults every message is sent at once, without the help of a sweep. */
  async #quiet(): Promise<void> {
    this.#checks.checkBalance()
    const messages = Array.from({ length: QUIET_MESSAGES }, (_, index) =>
      this.#traffic.publish({ hasCallback: false, ...(index % 2 === 0 && { key: 'side' }) }),
    )
    await this.#until(this.#timeline.now + HINTED_MS)
    // A comparison after a lost commit may come much later, and also finds messages whose hints are still on their way.
    const strays = this.#strays
    await this.#until(this.#timeline.now + SWEPT_MS)
    for (const message of messages) {
      if (!message || message.key !== undefined) continue
      const { label, acknowledgedAt, firstStartAt, starts } = message
      if (starts === 0 || firstStartAt - acknowledgedAt > this.#quietWithinMs)
        this.#timeline.fail(`I3: ${label} was sent late, without a fault`)
    }
    if (this.#strays > strays) this.#timeline.fail('I3: a sweep found a message, without a fault')
  }

  /** A message that a drained node accepts is due by that node's clock, and sent by the clock of another one. */
  get #quietWithinMs(): number {
    const isOfOther = !this.#hasOneClock && this.#nodes.some(({ cluster }) => cluster.isBeingDrained)
    return QUIET_WITHIN_MS + (isOfOther ? 2 * MAX_OFFSET_MS : 0)
  }

  #isOver(): boolean {
    return this.#checks.pending().length === 0 && this.#extensions.every((extension) => extension.isOver())
  }

  #until(ms: number, isOver?: () => boolean): Promise<void> {
    return this.#timeline.run(ms, this.#checks.afterStep, isOver)
  }

  get #strays(): number {
    return this.#nodes.reduce((sum, { meter }) => sum + meter.strays, 0)
  }

  #offset(): number {
    return this.#hasOneClock ? 0 : this.#timeline.between(-MAX_OFFSET_MS, MAX_OFFSET_MS)
  }

  #join(name: string): void {
    const [timeline, memory, network, effects] = [this.#timeline, this.#memory, this.#network, this.#effects]
    const { replace } = this.#plant
    const node = new SimulatedNode(name, this.#offset(), {
      timeline,
      memory,
      network,
      effects,
      links: this.#links,
      ledger: this.#ledger,
      extensions: this.#extensions,
      replace: replace && ((of) => (operation, args) => replace(of, operation, args)),
      onEnd: (over) => this.#ended(over),
    })
    this.#nodes = [...this.#nodes, node]
    timeline.note(`${name} starts`)
    node.start()
  }

  #ended(node: SimulatedNode): void {
    this.#nodes = this.#nodes.filter((each) => each !== node)
    const { name } = node.process
    this.#timeline.after(this.#timeline.between(300, 3_000), () => {
      const isNeeded = this.#nodes.length < NODES
      if (isNeeded && !this.#nodes.some(({ process }) => process.name === name)) this.#join(name)
    })
  }

  /** Passes events of the store to the checks and the ledger. */
  #watch(): void {
    const [effects, ledger] = [this.#effects, this.#ledger]
    effects.on(clusterNodes.declareDead, ({ incarnation, beat }, isDead) => {
      if (isDead) this.#declaredDeadAt(incarnation, beat)
    })
    effects.on(clusterPartitions.take, ({ incarnation }, taken) => {
      this.#checkTaker(incarnation, taken.length)
      for (const { partition } of taken) ledger.takenOver(partition)
    })
    effects.on(clusterPartitions.give, ({ gifts }) => {
      for (const { partition, notes } of gifts) {
        if (notes === null || !this.#hasOneClock) ledger.takenOver(partition)
      }
    })
    effects.on(schedules.fire, ({ scheduleId, dueAt }, { offers }) => {
      if (offers.length > 0) ledger.fired(scheduleId, dueAt)
    })
  }

  /** I1: only a live node takes partitions, or a draining one while no other may. */
  #checkTaker(incarnation: number, count: number): void {
    const node = this.#nodes.find(({ cluster }) => cluster.incarnation === incarnation)
    if (count === 0) return
    this.#timeline.note(`${node?.process.name ?? 'a node'} takes ${count} partitions`)
    const state = this.#memory.run(census.incarnation, { incarnation })?.state ?? 'gone'
    const mayTake = state === 'draining' ? !this.#memory.run(census.hasTaker, {}) : state === 'live'
    if (!mayTake) this.#timeline.fail(`I1: incarnation ${incarnation} took partitions, and is ${state}`)
  }

  /** I1: a node is declared dead only if it has not beaten since the beat that was seen. */
  #declaredDeadAt(incarnation: number, beat: number): void {
    const last = this.#memory.run(census.incarnation, { incarnation })?.beat
    if (last !== undefined && last !== beat)
      this.#timeline.fail(`I1: incarnation ${incarnation} was declared dead after a beat`)
    const node = this.#nodes.find(({ cluster }) => cluster.incarnation === incarnation)
    if (!node) return
    this.#declaredDead++
    node.isDeclaredDead = true
    this.#timeline.note(`${node.process.name} is declared dead`)
  }

  /** Whether a node takes part, according to the store; true for a node that has not registered yet. */
  #takesPart({ cluster: { incarnation } }: SimulatedNode): boolean {
    const state = this.#memory.run(census.incarnation, { incarnation })?.state ?? 'gone'
    return incarnation === 0 || state === 'live' || state === 'draining'
  }

  #act(): void {
    if (this.#timeline.now >= FAULTS_UNTIL_MS) return
    this.#traffic.act()
    for (const extension of this.#extensions) extension.act()
    this.#timeline.after(this.#timeline.between(50, 1_200), () => this.#act())
  }

  #fault(): void {
    const timeline = this.#timeline
    if (timeline.now >= FAULTS_UNTIL_MS) return
    const node = timeline.random.pick(this.#nodes)
    if (node) this.#harm(node)
    timeline.after(timeline.between(300, 5_000), () => this.#fault())
  }

  #harm(node: SimulatedNode): void {
    const [timeline, network, { process }] = [this.#timeline, this.#network, node]
    const kinds = [
      'pause',
      'pause',
      'suspend',
      'kill',
      'drain',
      'steer',
      'remove',
      'join',
      'store',
      'storm',
      'cut',
      'away',
      'clock',
    ] as const
    const failovers = this.#losesCommits ? (['failover', 'failover'] as const) : []
    const kind = timeline.random.pick([...kinds, ...failovers]) ?? 'pause'
    const wanted = timeline.random.chance(0.5) ? timeline.between(200, 3_000) : timeline.between(3_000, 12_000)
    const ms = Math.min(wanted, FAULTS_UNTIL_MS - timeline.now)
    timeline.note(`fault: ${kind} ${process.name} for ${ms} ms`)
    const faults: Readonly<Record<typeof kind, () => void>> = {
      pause: () => process.pause(ms, false),
      suspend: () => process.pause(ms, true),
      kill: () => node.end('is killed'),
      drain: () => node.phase === 'open' && node.drain(),
      steer: () => this.#steer(process.name, ms),
      remove: () => this.#operator.remove(timeline.random.pick(NAMES) ?? ''),
      join: () => this.#joinAnother(),
      store: () => {
        network.storeAwayUntil = timeline.now + ms
      },
      storm: () => {
        network.stormUntil = timeline.now + ms
      },
      cut: () => network.cutBetween(process, timeline.random.pick(this.#nodes)?.process ?? process, ms),
      away: () => network.cutFromStore(process, ms),
      clock: () => this.#setClock(node),
      failover: () => this.#failOver(ms),
    }
    faults[kind]()
  }

  /** The operator drains a node, or all of them, and mostly resumes them later. */
  #steer(name: string, ms: number): void {
    const timeline = this.#timeline
    const names = timeline.random.chance(0.2) ? NAMES : [name]
    this.#operator.drain(names)
    if (timeline.random.chance(0.7)) timeline.after(ms, () => this.#operator.resume(names))
  }

  #joinAnother(): void {
    const free = NAMES.find((name) => !this.#nodes.some((each) => each.process.name === name))
    if (free !== undefined) this.#join(free)
  }

  /** Another server of the store takes over, without the last commits. @param ms how long until it accepts calls. */
  #failOver(ms: number): void {
    const [timeline, memory, network] = [this.#timeline, this.#memory, this.#network]
    const [since, lost] = [timeline.now, timeline.between(5, 2_000)]
    if (memory.isMarked || since + lost >= FAULTS_UNTIL_MS) return
    memory.mark()
    timeline.after(lost, () => {
      timeline.note(`the store loses the commits of ${lost} ms`)
      memory.goBack()
      network.storeServer++
      network.storeAwayUntil = Math.max(network.storeAwayUntil, timeline.now + ms)
      this.#ledger.lostCommits(since, network.storeAwayUntil)
      this.#checks.lostCommits()
      for (const extension of this.#extensions) extension.lostCommits()
      for (const node of this.#nodes) node.isDeclaredDead = !this.#takesPart(node)
    })
  }

  #setClock({ process }: SimulatedNode): void {
    if (this.#hasOneClock) return
    process.offsetMs = this.#offset()
    process.disturb()
    this.#ledger.takenOver('any')
  }
}
