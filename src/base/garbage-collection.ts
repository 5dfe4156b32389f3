import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Clock } from './clock.js'

const IDLE_MS = 10_000
/** Largest share of `IDLE_MS` that the event loop may work in an idle process. */
const IDLE_UTILIZATION = 0.05
/** A collection pays only when the heap has grown by this much since the last one. */
const MIN_GROWTH_BYTES = 4 * 2 ** 20

/** Collaborators of `IdleMemory`: they say when the process is idle, and collect garbage. */
export interface IdleMemoryDeps {
  readonly clock: Clock
  /** Whether the process is idle, so that a pause of some tenths of a second delays nobody. */
  readonly isIdle: () => boolean
  /** Share of the time since the last call in which the event loop worked, 0 to 1. Default: what Node measures. */
  readonly utilization?: () => number
  /** Size of the heap, bytes. Default: that of this thread. */
  readonly heapBytes?: () => number
  /** Default: a full collection by V8. */
  readonly collect?: () => Promise<void>
}

/**
 * Returns memory to the system once a busy time is over. V8 collects garbage when objects are allocated; an idle program
 * allocates none and so keeps its garbage for as long as it is idle. After a thousand databases have gone to sleep, that
 * is twice as much as the live objects. A full collection stops the program for a moment, so it runs only after an idle
 * time, and not again until the heap has grown.
 */
export class IdleMemory {
  readonly #deps: Required<IdleMemoryDeps>
  #isWatching = false
  #collectedBytes = 0

  constructor(deps: IdleMemoryDeps) {
    this.#deps = { utilization: utilizationMeter(), heapBytes, collect: collectAll, ...deps }
  }

  /** Something has become idle; perhaps the whole process has. */
  reportIdle(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.#watch()
  }

  #watch(): void {
    const { clock, utilization } = this.#deps
    utilization()
    clock.after(IDLE_MS, () => void this.#collectIfIdle())
  }

  /** Never rejects. */
  async #collectIfIdle(): Promise<void> {
    const { isIdle, utilization, heapBytes, collect } = this.#deps
    if (isIdle() && utilization() > IDLE_UTILIZATION) {
      this.#watch()
      return
    }
    this.#isWatching = false
    // A component that is busy now calls `reportIdle` when it has finished.
    if (!isIdle() || heapBytes() < this.#collectedBytes + MIN_GROWTH_BYTES) return
    // Fails in a Node that was built without the inspector; the memory is kept then.
    await collect().catch(() => undefined)
    this.#collectedBytes = heapBytes()
  }
}

const heapBytes = (): number => getHeapStatistics().total_heap_size

function utilizationMeter(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

/** Only the inspector offers a full collection to a process that was started without `--expose-gc`. */
async function collectAll(): Promise<void> {
  const { Session } = await import('node:inspector')
  const session = new Session()
  session.connect()
  await new Promise<void>((resolve) => session.post('HeapProfiler.collectGarbage', () => resolve()))
  session.disconnect()
}

const neverCollectedObjects: object[] = []

/**
 * Keeps an object, and all that it refers to, until its thread ends, so that it is never garbage-collected.
 *
 * For objects of better-sqlite3: from Node 24.19 on, collecting an object of a version before 13 may end the whole process,
 * and version 13 does not run on Node 20. So files are opened once or seldom, settings are made with `exec`, which leaves
 * no object behind, and statements are kept too. Only on older versions of Node does the store drop rare statements.
 */
export function keepForever<Kept extends object>(object: Kept): Kept {
  neverCollectedObjects.push(object)
  return object
}

/** The map is copied after this many deletions, plus four for each entry that is left. */
const MIN_DELETIONS = 32
const DELETIONS_PER_ENTRY = 4

/**
 * A map whose entries come and go all the time, such as requests in flight.
 *
 * When a V8 `Map` has no space left for changes, it moves to a new table, and the old table points to the new one. Once a
 * full collection has promoted an old table to the old generation, that unused table keeps the next one alive, which keeps
 * its successor, and each keeps the entries it had. So everything that passes through such a map survives all young
 * collections, which then take twenty times as long. Copying the map ends the chain.
 */
export class TurnoverMap<Key, Value> {
  #entries = new Map<Key, Value>()
  #deletions = 0

  get size(): number {
    return this.#entries.size
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key)
  }

  has(key: Key): boolean {
    return this.#entries.has(key)
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, value)
  }

  /** Returns whether there was such an entry. */
  delete(key: Key): boolean {
    if (!this.#entries.delete(key)) return false
    if (++this.#deletions > MIN_DELETIONS + DELETIONS_PER_ENTRY * this.#entries.size) this.#copy()
    return true
  }

  /** In insertion order; entries that are set or deleted meanwhile may or may not appear. */
  keys(): IterableIterator<Key> {
    return this.#entries.keys()
  }

  /** As `keys`. */
  values(): IterableIterator<Value> {
    return this.#entries.values()
  }

  /** As `keys`. */
  entries(): IterableIterator<[Key, Value]> {
    return this.#entries.entries()
  }

  clear(): void {
    this.#entries = new Map()
    this.#deletions = 0
  }

  #copy(): void {
    this.#entries = new Map(this.#entries)
    this.#deletions = 0
  }
}
