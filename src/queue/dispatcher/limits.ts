import type { InFlightLimits } from './round-robin.js'

/** Limits of the messages in memory. */
export interface BacklogLimits {
  /** Messages that are due later than this from now stay in the store. */
  readonly windowMs: number
  /** Rows of one load. */
  readonly loadLimit: number
  /** The lane of a host is parked when this many of its messages are held. Less than `capacity`. */
  readonly maxPerHost: number
  /** Rows of one load of a flow-control key's lane. Smaller, because there may be very many keys. */
  readonly flowLoadLimit: number
  /** The lane of a flow-control key is parked when this many of its messages are held. */
  readonly maxPerFlowKey: number
  /** All messages in memory. */
  readonly capacity: number
  /** Limits of requests in flight. */
  readonly inFlight: InFlightLimits
}

/** Most slow requests, and most outcomes that wait for their commit, at any concurrency. */
const MAX_LINGERING = 5_000
/** Slow requests, and outcomes that wait for their commit, for each request that may be in flight. */
const LINGERING_PER_REQUEST = 10

/** How many slow requests, and how many outcomes that wait for their commit, this concurrency allows. */
export const maxLingering = (concurrency: number): number =>
  Math.min(MAX_LINGERING, concurrency * LINGERING_PER_REQUEST)

/** The memory limits of a dispatcher with this many requests in flight. */
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

/** Memory of quick requests together, at up to 1,024 requests in flight. Slow requests may use the same amount again. */
const BODIES_BYTES = 256 * 2 ** 20
/** Bytes. A request that needs less memory always takes one place. */
const MIN_BYTES_PER_PLACE = 256 * 1024

/** Limits of requests in flight; see `RoundRobin`. */
function inFlightLimits(concurrency: number): InFlightLimits {
  return {
    maxTotal: concurrency,
    maxPerAccount: Math.ceil((concurrency * 3) / 4),
    // Half of all, so that one unresponsive host leaves the other half to the rest.
    maxPerHost: Math.ceil(concurrency / 2),
    slowAfterMs: 2_000,
    maxSlow: maxLingering(concurrency),
    maxSlowBytes: BODIES_BYTES,
    bytesPerPlace: Math.max(MIN_BYTES_PER_PLACE, BODIES_BYTES / concurrency),
  }
}
