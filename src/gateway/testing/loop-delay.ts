import { mainThreadMs, unitMs } from '../../../test/support/processor-time.js'
import { pause, systemClock } from '../../base/index.js'

const MEASURE_EVERY_MS = 5
/** A garbage collection may fall into any try, so the best of this many counts. */
const MAX_TRIES = 3

/** How long work has blocked the event loop. */
export interface LoopDelay {
  /** The longest block of the event loop, milliseconds of processor time. */
  readonly longestMs: number
  /** The longest block in units of a known piece of work (`unitMs`). */
  readonly longestUnits: number
}

/** Measures the longest block of this process's event loop while `work` runs. */
export async function loopDelayDuring(work: () => Promise<unknown>): Promise<LoopDelay> {
  let last = mainThreadMs()
  let longestMs = 0
  const measuring = setInterval(() => {
    const now = mainThreadMs()
    longestMs = Math.max(longestMs, now - last)
    last = now
  }, MEASURE_EVERY_MS)
  await work()
  // At least one measurement has to follow the work.
  await pause(systemClock, 3 * MEASURE_EVERY_MS)
  clearInterval(measuring)
  return { longestMs, longestUnits: longestMs / unitMs() }
}

/** The same, as the best of several tries; stops after one of at most `goodUnits`. */
export async function leastLoopDelay(goodUnits: number, work: () => Promise<unknown>): Promise<LoopDelay> {
  let best = await loopDelayDuring(work)
  for (let tries = 1; tries < MAX_TRIES && best.longestUnits > goodUnits; tries++) {
    const next = await loopDelayDuring(work)
    if (next.longestUnits < best.longestUnits) best = next
  }
  return best
}
