import type { BacklogLimits } from './backlog.js'
import type { InFlightLimits } from './round-robin.js'

/** Maximum of slow requests, and of outcomes that wait for their commit. */
const MAX_LINGERING = 5_000
/** Slow requests, and pending outcomes, for each request that may be in flight. */
const LINGERING_PER_REQUEST = 10

/** Maximum of slow requests, and of pending outcomes. */
export const maxLingering = (concurrency: number): number =>
  Math.min(MAX_LINGERING, concurrency * LINGERING_PER_REQUEST)

/** The limits of what the dispatcher holds in memory, by the requests that may be in flight at once. */
export function backlogLimits(concurrency: number): BacklogLimits {
  return {
    windowMs: 60_000,
    loadLimit: 1_000,
    maxPerHost: 2_500,
    flowLoadLimit: 40,
    maxPerFlowKey: 100,
    // More than can be in flight and pending together, so that something can always be evicted.
    capacity: Math.max(20_000, 4 * concurrency),
    inFlight: inFlightLimits(concurrency),
  }
}

/** Limits of requests in flight; see `RoundRobin`. */
function inFlightLimits(concurrency: number): InFlightLimits {
  return {
    maxTotal: concurrency,
    maxPerAccount: Math.ceil((concurrency * 3) / 4),
    // Half of all, so that one unresponsive host leaves the other half to the rest.
    maxPerHost: Math.ceil(concurrency / 2),
    slowAfterMs: 2_000,
    maxSlow: maxLingering(concurrency),
    maxSlowBytes: 256 * 2 ** 20,
  }
}
