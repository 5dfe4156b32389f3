import { performance } from 'node:perf_hooks'
import { yieldToEventLoop } from './yield.js'

/** Long enough that switching costs nothing, short enough that nobody notices. */
const SLICE_MS = 8

/** Keeps long work on the event loop in slices of some milliseconds: ask `isOver` between two steps, and `rest` then. */
export class TimeSlice {
  #endsAt = performance.now() + SLICE_MS

  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /** Lets everybody else go first, and begins the next slice. */
  async rest(): Promise<void> {
    await yieldToEventLoop()
    this.#endsAt = performance.now() + SLICE_MS
  }
}

/** Makes something of each element of a list, in slices when that takes long. */
export async function inSlices<Element, Made>(
  list: readonly Element[],
  make: (element: Element) => Made,
): Promise<Made[]> {
  const made: Made[] = []
  const slice = new TimeSlice()
  for (const element of list) {
    made.push(make(element))
    if (slice.isOver) await slice.rest()
  }
  return made
}
