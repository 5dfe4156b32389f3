/**
 * Lets long work share the event loop. Such work is cut into slices of some milliseconds and yields between them. Each turn
 * of the event loop runs one slice of all the long work in the process, first come, first served. Requests that have
 * arrived are served between two slices, so they wait for one slice at most, regardless of the number of long tasks.
 */
import { performance } from 'node:perf_hooks'

/** Time that all callers of `isTurnSpent` together may use in one turn, milliseconds. */
const MAX_STRETCH_MS = 10
/** Length of a slice: switching costs next to nothing, and no client notices the delay. */
const SLICE_MS = 8

/** Slices in the order of their requests. */
let waiting: (() => void)[] = []
/** Index of the first slice in `waiting` that has not run. */
let head = 0
let isPumping = false
/** Work of `runInTurn` that has not run, in the order of the calls. */
const pieces: (() => void)[] = []
/** When work was first noticed in this turn of the event loop. */
let beganAt: number | undefined

/** Resolves in a later turn of the event loop, when it is this caller's turn. Call it between slices of long work. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise(scheduleSlice)
}

/** Calls `slice` in a later turn of the event loop: `yieldToEventLoop` with a callback. */
export function scheduleSlice(slice: () => void): void {
  waiting.push(slice)
  if (isPumping) return
  isPumping = true
  setImmediate(pump)
}

/**
 * Calls `make` after this turn of the event loop, and after everything that was already scheduled with `setImmediate`. For
 * work that nobody waits for, and whose result saves time later.
 * @returns a function that returns the result, or undefined while there is none. An error of `make` counts as no result.
 */
export function inNextTurn<Made>(make: () => Made): () => Made | undefined {
  let made: Made | undefined
  setImmediate(() => {
    try {
      made = make()
    } catch {
      // A caller that needs the result computes it itself, and gets the error.
    }
  })
  return () => made
}

/**
 * Whether this turn of the event loop has lasted so long that callers with more work should yield. All callers share
 * one budget: a hundred busy clients delay others no longer than one does.
 * @param stretchMs how long it may last for this caller
 */
export function isTurnSpent(stretchMs = MAX_STRETCH_MS): boolean {
  const now = performance.now()
  if (beganAt !== undefined) return now - beganAt >= stretchMs
  beganAt = now
  setImmediate(resetTurn)
  return false
}

/**
 * Calls `work` now, or in a later turn of the event loop if this one is spent. For work that takes a fraction of a
 * millisecond and may arrive a thousand times at once, such as TLS handshakes. All pieces share one slice per turn, so they
 * do not delay long work by a turn each.
 * @param work must not throw. What it schedules for the next tick counts as part of it.
 */
export function runInTurn(work: () => void): void {
  if (pieces.length === 0 && !isTurnSpent()) {
    work()
    return
  }
  pieces.push(work)
  if (pieces.length === 1) scheduleSlice(runPieces)
}

function runPieces(): void {
  pieces[0]?.()
  // Node reads the first bytes of a connection, and signs, in the next tick. Only after that the time is known.
  process.nextTick(() => {
    pieces.shift()
    if (pieces.length === 0) return
    if (isTurnSpent()) scheduleSlice(runPieces)
    else runPieces()
  })
}

function pump(): void {
  const slice = waiting[head++]
  if (head === waiting.length) {
    waiting = []
    head = 0
  }
  isPumping = waiting.length > 0
  if (isPumping) setImmediate(pump)
  resetTurn()
  slice?.()
}

function resetTurn(): void {
  beganAt = undefined
}

/** Measures slices of a loop: ask `isOver` after each step and await `rest` when it is. */
export class TimeSlice {
  #endsAt = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /** Yields to the event loop, then starts the next slice. */
  async rest(): Promise<void> {
    await yieldToEventLoop()
    this.#endsAt = performance.now() + SLICE_MS
  }
}

/** `list.map(transform)` that yields to the event loop when it takes long. */
export async function mapInSlices<Element, Result>(
  list: readonly Element[],
  transform: (element: Element) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  const slice = new TimeSlice()
  for (const element of list) {
    results.push(transform(element))
    if (slice.isOver) await slice.rest()
  }
  return results
}
