/**
 * Lets long work share the event loop. Such work is cut into slices of some milliseconds and yields between them. Each turn
 * of the event loop runs one slice of all the long work in the process, first come, first served. Requests that have
 * arrived are served between two slices, so they wait for one slice at most, regardless of the number of long tasks.
 */
import { performance } from 'node:perf_hooks'

/** Time that all callers of `isTurnSpent` together may use in one turn, milliseconds. */
const LONGEST_STRETCH_MS = 10
/** Length of a slice: switching costs next to nothing, and no client notices the delay. */
const SLICE_MS = 8

/** Slices in the order of their requests. */
let waiting: (() => void)[] = []
/** Index of the first slice in `waiting` that has not run. */
let head = 0
let isPumping = false
/** Time of the first call of `isTurnSpent` in this turn of the event loop. */
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
export function isTurnSpent(stretchMs = LONGEST_STRETCH_MS): boolean {
  const now = performance.now()
  if (beganAt !== undefined) return now - beganAt >= stretchMs
  beganAt = now
  setImmediate(resetTurn)
  return false
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
