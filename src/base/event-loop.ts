/**
 * How long work shares the event loop. It is cut into slices of some milliseconds and yields between them: one slice of
 * all the long work in the process runs per turn of the event loop, first come, first served. Whatever has arrived is
 * served between two slices, so nobody waits longer than one slice takes, however many tasks are long.
 */
import { performance } from 'node:perf_hooks'

/** Time that all who ask `isTurnSpent` may use in one turn together, milliseconds. */
const LONGEST_STRETCH_MS = 10
/** Length of a slice: switching costs next to nothing, and no client notices the delay. */
const SLICE_MS = 8

/** Slices in the order of their requests. */
let waiting: (() => void)[] = []
/** Index of the first slice in `waiting` that has not run. */
let head = 0
let isPumping = false
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
 * Calls `make` after this turn of the event loop, and after what this turn has already planned for its end. For work whose
 * result saves time later, and that nobody waits for.
 * @returns the result, if it is there when it is asked for. An error of `make` counts as no result.
 */
export function inNextTurn<Made>(make: () => Made): () => Made | undefined {
  let made: Made | undefined
  setImmediate(() => {
    try {
      made = make()
    } catch {
      // The caller that needs the result makes it then, and gets the error.
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
