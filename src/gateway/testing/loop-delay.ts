import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pause, systemClock } from '../../base/index.js'

const RESOLUTION_MS = 5
const NS_PER_MS = 1e6
/** A shared machine sometimes stalls for reasons of its own, so the best of this many tries counts. */
const MOST_TRIES = 3

/** How long work has blocked the event loop. */
export interface LoopDelay {
  /** The longest block of the event loop. */
  readonly longestMs: number
  /** Duration of the work. */
  readonly tookMs: number
}

/** Measures the longest block of this process's event loop while `work` runs. */
export async function loopDelayDuring(work: () => Promise<unknown>): Promise<LoopDelay> {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  // The monitor's timer has to run once before the work and once after it.
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

/** The same, as the best of several tries; stops after one of at most `goodMs`. */
export async function leastLoopDelay(goodMs: number, work: () => Promise<unknown>): Promise<LoopDelay> {
  let best = await loopDelayDuring(work)
  for (let tries = 1; tries < MOST_TRIES && best.longestMs > goodMs; tries++) {
    const next = await loopDelayDuring(work)
    if (next.longestMs < best.longestMs) best = next
  }
  return best
}
