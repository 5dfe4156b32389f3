import { Holdings, type PartitionEpoch } from '../holdings.js'
import { BEAT_EVERY_MS, DeathWatch, LOOK_EVERY_MS, type Moment, Tenure } from '../membership.js'
import { type NodeView, type PartitionView, planOwnership } from '../ownership.js'
import { PARTITIONS } from '../types.js'

/** Mistakes that a test plants, to see that the simulation finds them. */
export interface PlantedBugs {
  /** Declares a node dead although it has beaten since the look. */
  readonly buryWithoutBeat?: boolean
  /** A node that was declared dead, or that drains, takes partitions. */
  readonly claimWithoutLive?: boolean
  /** A node acts until 4 s after the reply to its beat, not after sending the beat. */
  readonly tenureFromReply?: boolean
}

interface Row {
  readonly incarnation: number
  state: NodeView['state']
  is_open: 0 | 1
  beat: number
  beatenAt: number
}

interface SimulatedNode {
  readonly incarnation: number
  readonly tenure: Tenure
  readonly watch: DeathWatch
  readonly holdings: Holdings
  /** How fast its clocks run. */
  readonly rate: number
  /** Milliseconds during which its monotonic clock stood still. */
  suspendedMs: number
  suspendedUntil: number
  pausedUntil: number
  isBeating: boolean
  isLooking: boolean
  isGiving: boolean
  isEnded: boolean
}

/** Faults happen until the first time; then the run continues without faults for the second. */
const FAULTS_UNTIL_MS = 40_000
const QUIET_MS = 25_000
const NODES = 3
/** 5 s measured by a clock that runs 8 % fast. */
const MIN_SILENCE_MS = 4_600

/**
 * Nodes on one store in virtual time, all from one seed: the decisions of the cluster with slow calls, lost replies, pauses,
 * suspended machines, kills, clocks of different rates, and outages of the store. After every event it checks the invariants
 * of the cluster.
 */
export class SimulatedNodes {
  readonly #random: () => number
  readonly #bugs: PlantedBugs
  readonly #faults: 'all' | 'outages'
  readonly #events: { at: number; run: () => void }[] = []
  readonly #rows: Row[] = []
  readonly #partitions = Array.from({ length: PARTITIONS }, (_, partition) => ({
    partition,
    owner: null as number | null,
    epoch: 0,
  }))
  readonly #owners = new Array<number>(PARTITIONS).fill(0)
  #nodes: SimulatedNode[] = []
  #now = 0
  #storeAwayUntil = 0
  #broken: string | undefined
  declaredDead = 0

  /** @param faults `outages`: only of the store, and no call is slow or gets lost. */
  constructor(random: () => number, bugs: PlantedBugs = {}, faults: 'all' | 'outages' = 'all') {
    this.#random = random
    this.#bugs = bugs
    this.#faults = faults
  }

  /** Runs to the end, or to the first broken invariant. Returns what was broken and when. */
  run(): string | undefined {
    for (let index = 0; index < NODES; index++) this.#join()
    this.#at(1_000, () => this.#fault())
    while (this.#broken === undefined && this.#now < FAULTS_UNTIL_MS + QUIET_MS) {
      const event = this.#events.shift()
      if (!event) break
      this.#now = event.at
      event.run()
      this.#checkOwners()
    }
    if (this.#broken === undefined) this.#checkEnd()
    return this.#broken
  }

  #at(at: number, run: () => void): void {
    let index = this.#events.length
    while (index > 0 && (this.#events[index - 1]?.at ?? 0) > at) index--
    this.#events.splice(index, 0, { at, run })
  }

  #between(least: number, most: number): number {
    return least + Math.floor(this.#random() * (most - least + 1))
  }

  /** Whether calls are quick and none gets lost. */
  get #isQuiet(): boolean {
    return this.#faults === 'outages' || this.#now >= FAULTS_UNTIL_MS
  }

  #delay(): number {
    const luck = this.#random()
    if (this.#isQuiet) return this.#between(1, 20)
    return luck < 0.03 ? this.#between(500, 7_000) : this.#between(1, 20)
  }

  #moment({ rate, suspendedMs }: SimulatedNode): Moment {
    return { monotonicMs: (this.#now - suspendedMs) * rate, wallMs: this.#now * rate }
  }

  /** Runs an event of a node: later if the node is paused, and never if it has ended. */
  #on(node: SimulatedNode, run: () => void): void {
    if (node.isEnded) return
    if (this.#now < node.pausedUntil) this.#at(node.pausedUntil, () => this.#on(node, run))
    else run()
  }

  /**
   * A call of the store: it takes time both ways, and its reply may get lost. If the connection broke, the node may
   * learn of the loss before the statement takes effect.
   */
  #call<Result>(node: SimulatedNode, apply: () => Result, done: (result: Result) => void, failed: () => void): void {
    const luck = this.#isQuiet ? 1 : this.#random()
    if (luck < 0.01) {
      this.#at(this.#now + this.#between(1, 20), () => this.#on(node, failed))
      this.#at(this.#now + this.#between(1, 3_000), () => void (this.#now < this.#storeAwayUntil || apply()))
      return
    }
    this.#at(this.#now + this.#delay(), () => {
      const isAway = this.#now < this.#storeAwayUntil
      const result = isAway ? undefined : { value: apply() }
      const answer = (): void => (result && luck >= 0.02 ? done(result.value) : failed())
      this.#at(this.#now + this.#delay(), () => this.#on(node, answer))
    })
  }

  #join(): void {
    const incarnation = this.#rows.length + 1
    this.#rows.push({ incarnation, state: 'live', is_open: 1, beat: 0, beatenAt: this.#now })
    const node: SimulatedNode = {
      incarnation,
      tenure: new Tenure(),
      watch: new DeathWatch(),
      holdings: new Holdings(),
      rate: 0.92 + this.#random() * 0.16,
      suspendedMs: 0,
      suspendedUntil: 0,
      pausedUntil: 0,
      isBeating: false,
      isLooking: false,
      isGiving: false,
      isEnded: false,
    }
    node.tenure.beaten(this.#moment(node))
    this.#nodes.push(node)
    this.#every(node, BEAT_EVERY_MS, () => this.#beat(node))
    this.#every(node, LOOK_EVERY_MS, () => this.#look(node))
  }

  #every(node: SimulatedNode, ms: number, run: () => void): void {
    this.#on(node, () => {
      run()
      this.#at(this.#now + ms / node.rate, () => this.#every(node, ms, run))
    })
  }

  #rowOf(incarnation: number): Row | undefined {
    return this.#rows.find((row) => row.incarnation === incarnation)
  }

  #beat(node: SimulatedNode): void {
    if (node.isBeating) return
    node.isBeating = true
    const sent = this.#moment(node)
    const apply = (): boolean => {
      const row = this.#rowOf(node.incarnation)
      if (row?.state !== 'live') return false
      row.beat++
      row.beatenAt = this.#now
      return true
    }
    const done = (isAlive: boolean): void => {
      node.isBeating = false
      if (isAlive) node.tenure.beaten(this.#bugs.tenureFromReply ? this.#moment(node) : sent)
      else this.#end(node)
    }
    this.#call(node, apply, done, () => {
      node.isBeating = false
    })
  }

  /** The process ends and is started again. */
  #end(node: SimulatedNode): void {
    node.isEnded = true
    node.tenure.end()
    this.#nodes = this.#nodes.filter((each) => each !== node)
    this.#at(this.#now + 1_000, () => {
      const row = this.#rowOf(node.incarnation)
      if (row?.state === 'live') row.state = 'dead'
      this.#join()
    })
  }

  #look(node: SimulatedNode): void {
    if (node.isLooking) return
    node.isLooking = true
    const sentMs = this.#moment(node).monotonicMs
    const apply = () => ({
      nodes: this.#rows.filter(({ state }) => state === 'live').map((row) => ({ ...row })),
      partitions: this.#partitions.map((row) => ({ ...row })),
    })
    const done = (seen: ReturnType<typeof apply>): void => {
      node.isLooking = false
      this.#looked(node, seen, sentMs)
    }
    this.#call(node, apply, done, () => {
      node.isLooking = false
      node.watch.lookFailed()
    })
  }

  #looked(node: SimulatedNode, seen: { nodes: readonly Row[]; partitions: PartitionView[] }, sentMs: number): void {
    const me = node.incarnation
    if (!seen.nodes.some(({ incarnation }) => incarnation === me)) {
      this.#end(node)
      return
    }
    const beats = seen.nodes.filter(({ incarnation }) => incarnation !== me)
    const returnedMs = this.#moment(node).monotonicMs
    for (const silent of node.watch.examine({ sentMs, returnedMs, beats })) this.#bury(node, silent)
    const { arriving, doubtful } = node.holdings.reconcile(me, seen.partitions)
    if (arriving.length > 0) this.#receive(node, arriving)
    if (doubtful.length > 0) this.#reclaim(node, doubtful)
    const { take, give } = planOwnership({ me, ...seen })
    if (take > 0) this.#take(node, take)
    if (give) this.#give(node, give)
  }

  #bury(node: SimulatedNode, { incarnation, beat }: { incarnation: number; beat: number }): void {
    const apply = (): void => {
      const row = this.#rowOf(incarnation)
      if (row?.state !== 'live' || (row.beat !== beat && !this.#bugs.buryWithoutBeat)) return
      row.state = 'dead'
      this.declaredDead++
      const silenceMs = this.#now - row.beatenAt
      if (silenceMs < MIN_SILENCE_MS) this.#fail(`node ${incarnation} is dead ${silenceMs} ms after a beat`)
    }
    this.#call(node, apply, doNothing, doNothing)
  }

  #receive(node: SimulatedNode, arriving: readonly PartitionEpoch[]): void {
    const apply = () => arriving.filter((each) => this.#partitions[each.partition]?.epoch === each.epoch)
    this.#call(node, apply, (gained) => node.holdings.gain(node.incarnation, gained), doNothing)
  }

  #take(node: SimulatedNode, most: number): void {
    const me = node.incarnation
    const apply = () => {
      const row = this.#rowOf(me)
      if (row?.state !== 'live' && !this.#bugs.claimWithoutLive) return []
      const free = this.#partitions.filter(({ owner }) => owner === null || this.#rowOf(owner)?.state === 'dead')
      return free.slice(0, most).map((each) => {
        if (row?.state !== 'live') this.#fail(`node ${me} took a partition after it was declared dead`)
        each.owner = me
        each.epoch++
        return { ...each }
      })
    }
    this.#call(node, apply, (taken) => node.holdings.gain(me, taken), doNothing)
  }

  #give(node: SimulatedNode, { count, to }: { count: number; to: number }): void {
    if (node.isGiving) return
    node.isGiving = true
    const { holdings } = node
    const chosen = holdings.owned.slice(0, count)
    holdings.leave(chosen)
    this.#at(this.#now + this.#between(0, 100), () => this.#on(node, () => this.#handOver(node, chosen, to)))
  }

  #handOver(node: SimulatedNode, chosen: readonly number[], to: number): void {
    const { holdings } = node
    const gifts = chosen
      .filter((partition) => holdings.has(partition))
      .map((partition) => ({ partition, epoch: holdings.epochOf(partition), to }))
    const done = (given: readonly (typeof gifts)[number][]): void => {
      node.isGiving = false
      holdings.gave(given)
      holdings.keep(
        chosen.filter((partition) => !given.some((gift) => gift.partition === partition)),
        new Map(),
      )
    }
    this.#call(
      node,
      () => this.#change(node, gifts),
      done,
      () => {
        node.isGiving = false
        holdings.doubt(gifts)
      },
    )
  }

  #change(from: SimulatedNode, gifts: readonly { partition: number; epoch: number; to: number }[]): typeof gifts {
    return gifts.filter(({ partition, epoch, to }) => {
      const row = this.#partitions[partition]
      if (row?.owner !== from.incarnation || row.epoch !== epoch) return false
      if (this.#rowOf(to)?.state !== 'live') return false
      row.owner = to
      row.epoch++
      return true
    })
  }

  #reclaim(node: SimulatedNode, doubtful: readonly PartitionEpoch[]): void {
    const me = node.incarnation
    const gifts = doubtful.map((each) => ({ ...each, to: me }))
    const apply = () => this.#change(node, gifts).map(({ partition, epoch }) => ({ partition, epoch: epoch + 1 }))
    this.#call(node, apply, (back) => node.holdings.gain(me, back), doNothing)
  }

  #fault(): void {
    if (this.#now >= FAULTS_UNTIL_MS) return
    const node = this.#nodes[this.#between(0, this.#nodes.length - 1)]
    const kind = this.#faults === 'outages' ? 0 : this.#between(0, 3)
    if (kind === 0) this.#storeAwayUntil = this.#now + this.#between(500, 15_000)
    if (kind === 1 && node) this.#end(node)
    if (kind >= 2 && node) {
      const until = this.#now + this.#between(300, 12_000)
      node.pausedUntil = Math.max(node.pausedUntil, until)
      if (kind === 3) suspend(node, this.#now, until)
    }
    this.#at(this.#now + this.#between(500, 6_000), () => this.#fault())
  }

  #fail(what: string): void {
    this.#broken ??= `at ${Math.round(this.#now)} ms: ${what}`
  }

  /** Each partition has at most one owner that may act. A paused node does nothing. */
  #checkOwners(): void {
    const owners = this.#owners.fill(0)
    for (const node of this.#nodes) {
      const { monotonicMs, wallMs } = this.#moment(node)
      if (this.#now < node.pausedUntil || !node.tenure.mayAct(monotonicMs, wallMs)) continue
      for (const partition of node.holdings.owned) {
        const other = owners[partition]
        if (other) this.#fail(`nodes ${other} and ${node.incarnation} own partition ${partition}`)
        owners[partition] = node.incarnation
      }
    }
  }

  /** Checks the end state: every partition is owned, and all nodes own about the same number. */
  #checkEnd(): void {
    const counts = this.#nodes.map(({ holdings }) => holdings.owned.length)
    const sum = counts.reduce((one, other) => one + other, 0)
    if (sum !== PARTITIONS || Math.max(...counts) - Math.min(...counts) > 1)
      this.#fail(`nodes own ${counts.join(', ')}`)
  }
}

/** Suspends a machine. If it is already suspended, it only sleeps for longer. */
function suspend(node: SimulatedNode, now: number, until: number): void {
  node.suspendedMs += Math.max(0, until - Math.max(now, node.suspendedUntil))
  node.suspendedUntil = Math.max(node.suspendedUntil, until)
}

function doNothing(): void {}
