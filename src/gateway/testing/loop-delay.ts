import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pause, systemClock } from '../../base/index.js'

const RESOLUTION_MS = 5
const NS_PER_MS = 1e6
/** A machine that others use stands still now and then for reasons of its own: the best of so many tries counts. */
const MOST_TRIES = 3

/** How long others had to wait, milliseconds. */
export interface LoopDelay {
  /** The longest time for which the event loop served nobody. */
  readonly longestMs: number
  /** How long the whole of the work took. */
  readonly tookMs: number
}

/** Measures how long the event loop of this process serves nobody while `work` goes on. */
export async function loopDelayDuring(work: () => Promise<unknown>): Promise<LoopDelay> {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  // The timer of the monitor has to have run once before anything holds it up, and once behind all of it.
  delay.enable()
  await pause(systemClock, 3 * RESOLUTION_MS)
  delay.reset()
  const started = performance.now()
  await work()
  const tookMs = performance.now() - started
  await pause(systemClock, 3 * RESOLUTION_MS)
  delay.disable()
  return { longestMs: Math.max(0, delay.max / NS_PER_MS - RESOLUTION_MS), tookMs }
}

/** The same of the best of several tries, of which those after a good one are left out. */
export async function leastLoopDelay(goodMs: number, work: () => Promise<unknown>): Promise<LoopDelay> {
  let best = await loopDelayDuring(work)
  for (let tries = 1; tries < MOST_TRIES && best.longestMs > goodMs; tries++) {
    const next = await loopDelayDuring(work)
    if (next.longestMs < best.longestMs) best = next
  }
  return best
}
