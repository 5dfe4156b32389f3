import { pause, systemClock } from '../../src/base/index.js'

/** How hard the callers of a load work. */
export interface Pace {
  /** Time between two actions of a caller, so that the machine is not the limit. */
  readonly thinkMs: number
  /** How many of several there are: callers that do the same, or runs that one of them cancels together. */
  few(most: number): number
}

/** For campaigns, which have the machine alone. */
export const FAST: Pace = { thinkMs: 0, few: (most) => most }

/** For the few faults that `npm test` plays beside other tests. */
export const CALM: Pace = { thinkMs: 150, few: (most) => Math.ceil(most / 5) }

/** The pace of a test with this many faults. */
export const paceOf = (faults: number): Pace => (faults > 2 ? FAST : CALM)

/** A caller's break between two actions. */
export const think = async ({ thinkMs }: Pace): Promise<void> => {
  if (thinkMs > 0) await pause(systemClock, thinkMs)
}
