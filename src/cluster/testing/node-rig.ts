import { type Clock, type Timer, yieldToEventLoop } from '../../base/index.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { SchemaRange } from '../../store/index.js'
import { openStore, type Store } from '../../store/index.js'
import { ClusterMeter, silentLogger } from '../../telemetry/index.js'
import { Clustered } from '../clustered.js'
import type { Incarnation, PartitionHolder, ReleasedPartitions } from '../types.js'
import { DirectLinks } from './direct-links.js'

/** The clock of one process. While it is paused, no timer fires, as after SIGSTOP. */
class ProcessClock implements Clock {
  readonly #time: ManualClock
  #held: (() => void)[] | undefined

  constructor(time: ManualClock) {
    this.#time = time
  }

  now(): number {
    return this.#time.now()
  }

  after(delayMs: number, callback: () => void): Timer {
    return this.#time.after(delayMs, () => {
      if (this.#held) this.#held.push(callback)
      else callback()
    })
  }

  pause(): void {
    this.#held ??= []
  }

  resume(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const callback of held) callback()
  }
}

/** A partition holder that only records its partitions and their notes. */
export class RecordingHolder implements PartitionHolder {
  readonly held = new Map<number, unknown>()
  /** Partitions with requests in flight. */
  readonly busy = new Set<number>()

  gained(partitions: readonly { readonly partition: number; readonly notes?: unknown }[]): void {
    for (const { partition, notes } of partitions) this.held.set(partition, notes)
  }

  release(partitions: readonly number[], _graceMs: number): Promise<ReleasedPartitions> {
    const notes = new Map(partitions.map((partition) => [partition, { from: partition }]))
    return Promise.resolve({ notes, busy: partitions.filter((partition) => this.busy.has(partition)) })
  }

  lost(partitions: readonly number[]): void {
    for (const partition of partitions) this.held.delete(partition)
  }
}

/** A node under test. */
export interface RiggedNode {
  readonly cluster: Clustered
  readonly holder: RecordingHolder
  readonly clock: ProcessClock
  readonly meter: ClusterMeter
  readonly store: Store
  /** The errors passed to `onDead`. */
  readonly deaths: Error[]
  /** The lives whose end it was notified of. */
  readonly gone: Incarnation[]
  /** The payloads that it was notified of. */
  readonly heard: unknown[]
}

/** How a node starts. */
export interface NodeOptions {
  readonly dir?: string
  readonly config?: Readonly<Record<string, string>>
  /** Default: the range of this version. */
  readonly range?: SchemaRange
  /** Default: the location of the rig. */
  readonly location?: string
}

/** A step of time is shorter than the interval of any regular action of a node. */
const STEP_MS = 250

/** Nodes in one process on one real store, with a clock that the test advances. */
export class NodeRig {
  readonly #location: string
  readonly time = new ManualClock()
  readonly links = new DirectLinks()
  readonly #nodes: (RiggedNode & { readonly upkeep: Store })[] = []

  constructor(location: string) {
    this.#location = location
  }

  /** Starts a node. Resolves when the node takes part. */
  async add(name: string, options: NodeOptions = {}): Promise<RiggedNode> {
    const node = await this.make(name, options)
    await node.cluster.start()
    node.cluster.open()
    return node
  }

  /** A node that is not started. */
  async make(name: string, options: NodeOptions = {}): Promise<RiggedNode> {
    const { dir = `dir of ${name}`, config = {}, range, location = this.#location } = options
    const place = { location, dataDir: '', onFailure: () => undefined }
    const store = await openStore({ ...place, sharing: 'cluster' })
    const upkeep = await openStore({ ...place, sharing: 'cluster upkeep' })
    const clock = new ProcessClock(this.time)
    const [holder, meter] = [new RecordingHolder(), new ClusterMeter()]
    const records = { deaths: [] as Error[], gone: [] as Incarnation[], heard: [] as unknown[] }
    const cluster = new Clustered({
      store,
      upkeep,
      clock,
      meter,
      logger: silentLogger,
      link: this.links.make,
      identity: { name, host: '127.0.0.1', dir, version: '1', config, ...(range && { range }) },
      monotonicMs: () => this.time.now(),
      onDead: (error) => records.deaths.push(error),
    })
    cluster.hold(holder)
    cluster.onNodeGone((incarnation) => records.gone.push(incarnation))
    cluster.handle('news', (payload) => void records.heard.push(payload))
    const node = { cluster, holder, clock, meter, store, ...records }
    this.#nodes.push({ ...node, upkeep })
    return node
  }

  /** Lets time pass in steps, and waits for the resulting work after each step. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.time.advance(STEP_MS)
      await this.#settle()
    }
  }

  /** Lets time pass until a condition holds. Returns how long that took, milliseconds. */
  async until(isSo: () => boolean, mostMs = 60_000): Promise<number> {
    let passed = 0
    for (; !isSo() && passed < mostMs; passed += STEP_MS) await this.pass(STEP_MS)
    if (!isSo()) throw new Error(`not so after ${mostMs} ms`)
    return passed
  }

  /** Lets time pass until a promise settles. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    let isSettled = false
    const settled = (): void => {
      isSettled = true
    }
    work.then(settled, settled)
    while (!isSettled) await this.pass(STEP_MS)
    return work
  }

  /** Waits for the nodes' work. A look that changes something takes a few transactions, one after the other. */
  async #settle(): Promise<void> {
    for (let round = 0; round < 4; round++) {
      await Promise.all(this.#nodes.flatMap(({ store, upkeep }) => [store.settled(), upkeep.settled()]))
      await yieldToEventLoop()
    }
  }

  async close(): Promise<void> {
    for (const { cluster, clock, store, upkeep } of this.#nodes.splice(0)) {
      clock.resume()
      await this.during(cluster.stop())
      await Promise.all([store.close(), upkeep.close()])
    }
  }
}
