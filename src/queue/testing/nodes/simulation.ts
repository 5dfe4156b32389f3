import { isObject } from '../../../base/index.js'
import type { MemoryStore } from '../../../store/testing/memory-store.js'
import { Checks } from './checks.js'
import { Ledger } from './ledger.js'
import { Network } from './network.js'
import type { Plant } from './plants.js'
import { SimulatedLinks } from './simulated-links.js'
import { SimulatedNode } from './simulated-node.js'
import type { StoreWatch } from './simulated-store.js'
import { Traffic } from './traffic.js'
import { World } from './world.js'

/** Faults happen until then. */
const FAULTS_UNTIL_MS = 30_000
/** Without faults everything ends within this time. */
const ENDS_WITHIN_MS = 60_000
/** Partitions are balanced within this time. */
const BALANCED_WITHIN_MS = 30_000
/** Slow calls and restarts of the time with faults have ended. */
const SETTLED_AFTER_MS = 14_000
const NAMES = ['a', 'b', 'c', 'd']
const NODES = 3
/** Clocks of nodes may differ by this much in each direction: more is refused, or reported. */
const MOST_OFFSET_MS = 900
/** Messages that are published when everything is quiet, and how soon they are sent. */
const QUIET_MESSAGES = 8
const QUIET_WITHIN_MS = 500

/** The result of a simulation. */
export interface Played {
  /** The broken promise; `undefined`: everything was kept. */
  readonly problem: string | undefined
  /** The events up to it, if they were asked for. */
  readonly trace: readonly string[]
  readonly steps: number
  readonly requests: number
  readonly declaredDead: number
  readonly fires: number
}

/**
 * Nodes on one store in virtual time, all from one seed: the real cluster, queue and transactions, with clients that publish and
 * cancel, slow and lost calls, pauses, suspended machines, kills, drains, joins, clocks that are set, and outages of the store.
 * Then the faults stop, everything must end, and a quiet cluster must send at once.
 */
export class Simulation {
  readonly #world: World
  readonly #memory: MemoryStore
  readonly #network: Network
  readonly #links: SimulatedLinks
  readonly #ledger: Ledger
  readonly #checks: Checks
  readonly #traffic: Traffic
  readonly #plant: Plant
  /** Whether the clocks of the nodes are right and never set. */
  readonly #hasOneClock: boolean
  #nodes: SimulatedNode[] = []
  #declaredDead = 0
  /** Lives that were declared dead. */
  readonly #dead = new Set<number>()

  constructor(memory: MemoryStore, seed: number, plant: Plant = {}, isTraced = false) {
    memory.clear()
    this.#memory = memory
    this.#plant = plant
    this.#world = new World(seed, isTraced)
    this.#hasOneClock = seed % 2 === 0
    this.#network = new Network(this.#world)
    this.#links = new SimulatedLinks(this.#world, this.#network, plant.redirect)
    this.#ledger = new Ledger(this.#world, memory)
    const nodes = () => this.#nodes
    this.#checks = new Checks(this.#world, memory, this.#ledger, nodes)
    this.#traffic = new Traffic(this.#world, this.#ledger, nodes)
  }

  /** Runs to the end, or to the first broken promise. */
  async play(): Promise<Played> {
    const undo = this.#plant.patch?.(this.#world, this.#memory)
    try {
      await this.#play()
    } finally {
      undo?.()
    }
    const { problem, trace = [], steps } = this.#world
    const { requests, fires } = this.#ledger
    return { problem, trace, steps, requests, fires, declaredDead: this.#declaredDead }
  }

  async #play(): Promise<void> {
    const world = this.#world
    for (const name of NAMES.slice(0, NODES)) this.#join(name)
    for (const id of ['hourly', 'other']) world.at(3_000, () => this.#traffic.schedule(id))
    world.at(2_500, () => this.#act())
    world.at(4_000, () => this.#fault())
    await this.#until(FAULTS_UNTIL_MS)
    this.#network.isQuiet = true
    world.note('the faults stop')
    await this.#until(world.now + 5_000)
    await this.#until(world.now + ENDS_WITHIN_MS, () => this.#checks.pending().length === 0)
    if (world.problem === undefined) this.#checks.checkEnd()
    await this.#until(FAULTS_UNTIL_MS + SETTLED_AFTER_MS)
    await this.#until(FAULTS_UNTIL_MS + BALANCED_WITHIN_MS, () => this.#checks.isBalanced)
    if (world.problem === undefined) await this.#quiet()
  }

  /** Without faults every message is sent at once, by whichever node, and no sweep is needed. */
  async #quiet(): Promise<void> {
    this.#checks.checkBalance()
    const strays = this.#strays
    const messages = Array.from({ length: QUIET_MESSAGES }, (_, index) =>
      this.#traffic.publish({ hasCallback: false, ...(index % 2 === 0 && { key: 'side' }) }),
    )
    await this.#until(this.#world.now + 5_000)
    for (const message of messages) {
      if (!message || message.key !== undefined) continue
      const { label, acknowledgedAt, firstStartAt, starts } = message
      if (starts === 0 || firstStartAt - acknowledgedAt > QUIET_WITHIN_MS)
        this.#world.fail(`I3: ${label} was sent late, without a fault`)
    }
    if (this.#strays > strays) this.#world.fail('I3: a sweep found a message, without a fault')
  }

  #until(ms: number, isOver?: () => boolean): Promise<void> {
    return this.#world.run(ms, this.#checks.afterStep, isOver)
  }

  get #strays(): number {
    return this.#nodes.reduce((sum, { meter }) => sum + meter.strays, 0)
  }

  #offset(): number {
    return this.#hasOneClock ? 0 : this.#world.between(-MOST_OFFSET_MS, MOST_OFFSET_MS)
  }

  #join(name: string): void {
    const [world, memory, network, links, ledger] = [
      this.#world,
      this.#memory,
      this.#network,
      this.#links,
      this.#ledger,
    ]
    const node = new SimulatedNode(name, this.#offset(), {
      ...{ world, memory, network, links, ledger },
      watch: (of) => this.#watch(of),
      onEnd: (over) => this.#ended(over),
    })
    this.#nodes = [...this.#nodes, node]
    world.note(`${name} starts`)
    node.start()
  }

  #ended(node: SimulatedNode): void {
    this.#nodes = this.#nodes.filter((each) => each !== node)
    const { name } = node.process
    this.#world.after(this.#world.between(300, 3_000), () => {
      const isNeeded = this.#nodes.length < NODES
      if (isNeeded && !this.#nodes.some(({ process }) => process.name === name)) this.#join(name)
    })
  }

  #watch(node: SimulatedNode): StoreWatch {
    const { replace } = this.#plant
    return {
      ...(replace && { replace: (operation, args) => replace(node, operation, args) }),
      applied: (operation, args, result) => this.#applied(operation, args, result),
    }
  }

  /** Learns from the store what the checks must know. */
  #applied(operation: string, args: unknown, result: unknown): void {
    if (/^(messages|queues|schedules)/.test(operation)) this.#checks.changed()
    if (!isObject(args)) return
    if (operation.endsWith('.declareDead') && result === true) this.#buried(args['incarnation'])
    if (operation.endsWith('.take') && Array.isArray(result)) {
      this.#checkTaker(args['incarnation'], result.length)
      for (const row of result) if (isObject(row)) this.#ledger.takenOver(Number(row['partition']))
    }
    const { gifts } = args
    if (operation === 'partitions.give' && Array.isArray(gifts)) {
      for (const gift of gifts) {
        if (!isObject(gift)) continue
        if (gift['notes'] === null || !this.#hasOneClock) this.#ledger.takenOver(Number(gift['partition']))
      }
    }
    if (operation === 'schedules.fire' && Array.isArray(result) && result.length > 0)
      this.#ledger.fired(String(args['scheduleId']), Number(args['dueAt']))
  }

  /** I1: only a node that is live takes partitions. */
  #checkTaker(incarnation: unknown, count: number): void {
    const node = this.#nodes.find(({ cluster }) => cluster.incarnation === incarnation)
    if (count === 0) return
    this.#world.note(`${node?.process.name ?? 'a node'} takes ${count} partitions`)
    if (this.#dead.has(Number(incarnation)))
      this.#world.fail(`I1: life ${incarnation} took partitions after it was over`)
  }

  #buried(incarnation: unknown): void {
    this.#dead.add(Number(incarnation))
    const node = this.#nodes.find(({ cluster }) => cluster.incarnation === incarnation)
    if (!node) return
    this.#declaredDead++
    node.isDeclaredDead = true
    this.#world.note(`${node.process.name} is declared dead`)
  }

  #act(): void {
    if (this.#world.now >= FAULTS_UNTIL_MS) return
    this.#traffic.act()
    this.#world.after(this.#world.between(50, 1_200), () => this.#act())
  }

  #fault(): void {
    const world = this.#world
    if (world.now >= FAULTS_UNTIL_MS) return
    const node = world.random.pick(this.#nodes)
    if (node) this.#harm(node)
    world.after(world.between(300, 5_000), () => this.#fault())
  }

  #harm(node: SimulatedNode): void {
    const [world, network, { process }] = [this.#world, this.#network, node]
    const kinds = [
      'pause',
      'pause',
      'suspend',
      'kill',
      'drain',
      'join',
      'store',
      'storm',
      'cut',
      'away',
      'clock',
    ] as const
    const kind = world.random.pick(kinds) ?? 'pause'
    const wanted = world.random.chance(0.5) ? world.between(200, 3_000) : world.between(3_000, 12_000)
    const ms = Math.min(wanted, FAULTS_UNTIL_MS - world.now)
    world.note(`fault: ${kind} ${process.name} for ${ms} ms`)
    switch (kind) {
      case 'pause':
      case 'suspend':
        return process.pause(ms, kind === 'suspend')
      case 'kill':
        return node.end('is killed')
      case 'drain':
        return node.phase === 'open' ? node.drain() : undefined
      case 'join': {
        const free = NAMES.find((name) => !this.#nodes.some((each) => each.process.name === name))
        return free === undefined ? undefined : this.#join(free)
      }
      case 'store':
        network.storeAwayUntil = world.now + ms
        return
      case 'storm':
        network.stormUntil = world.now + ms
        return
      case 'cut': {
        const other = world.random.pick(this.#nodes)
        return other && network.cutBetween(process, other.process, ms)
      }
      case 'away':
        return network.cutFromStore(process, ms)
      case 'clock':
        if (this.#hasOneClock) return
        process.offsetMs = this.#offset()
        process.disturb()
        this.#ledger.takenOver('any')
    }
  }
}
