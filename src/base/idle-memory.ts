import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Clock } from './clock.js'

/** How long there must have been next to nothing to do. */
const REST_MS = 10_000
/** The most work in that time, as a share of it. */
const MOST_WORK = 0.05
/** A collection has to be worth its while: the heap has grown by this much since the last one. */
const LEAST_GROWTH_BYTES = 4 * 2 ** 20

/** What decides when memory is given back. */
export interface IdleMemoryDeps {
  readonly clock: Clock
  /** Whether nothing is under way that a pause of some tenths of a second would hold up. */
  readonly isAtRest: () => boolean
  /** How much of the time the event loop has worked since the last question, 0 to 1. Omitted: what Node measures. */
  readonly workSinceAsked?: () => number
  /** Size of the heap, bytes. Omitted: that of this thread. */
  readonly heapBytes?: () => number
  /** Omitted: V8 gives back all it can. */
  readonly collect?: () => Promise<void>
}

/**
 * Gives the memory of a busy time back once it is over. V8 collects garbage while objects are made; a program with
 * nothing to do makes none, and so keeps its garbage for as long as it rests: after a thousand databases have gone to
 * sleep, that is twice as much as what is alive. A full collection stops the program for a moment, so it happens only
 * after a while of rest, and not again before there is something to collect.
 */
export class IdleMemory {
  readonly #parts: Required<IdleMemoryDeps>
  #isWatching = false
  #keptBytes = 0

  constructor(parts: IdleMemoryDeps) {
    this.#parts = { workSinceAsked: workMeter(), heapBytes, collect: collectAll, ...parts }
  }

  /** Something has come to rest; perhaps everything has. */
  rest(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.#watch()
  }

  #watch(): void {
    const { clock, workSinceAsked } = this.#parts
    workSinceAsked()
    clock.after(REST_MS, () => void this.#judge())
  }

  /** Never rejects. */
  async #judge(): Promise<void> {
    const { isAtRest, workSinceAsked, heapBytes, collect } = this.#parts
    if (isAtRest() && workSinceAsked() > MOST_WORK) {
      this.#watch()
      return
    }
    this.#isWatching = false
    // What is at work now calls `rest` when it is done.
    if (!isAtRest() || heapBytes() < this.#keptBytes + LEAST_GROWTH_BYTES) return
    // A Node that was built without developers' tools keeps what it has.
    await collect().catch(() => undefined)
    this.#keptBytes = heapBytes()
  }
}

const heapBytes = (): number => getHeapStatistics().total_heap_size

function workMeter(): () => number {
  let last = performance.eventLoopUtilization()
  return () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, last)
    last = now
    return utilization
  }
}

/** What V8 offers for it is meant for developers' tools; loaded only when it is asked for. */
async function collectAll(): Promise<void> {
  const { Session } = await import('node:inspector')
  const session = new Session()
  session.connect()
  await new Promise<void>((resolve) => session.post('HeapProfiler.collectGarbage', () => resolve()))
  session.disconnect()
}
