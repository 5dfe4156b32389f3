/** Present times lie between these when they are given in seconds; as milliseconds they would all be in early 1970. */
const SECONDS_FROM = 1e9
const SECONDS_TO = 1e10
/** Present times lie above this when they are given in microseconds; as milliseconds nobody will live to see them. */
const MICROSECONDS_FROM = 1e15

/**
 * The unit in which a time was most likely given that should be in Unix milliseconds; `undefined` when it may well be.
 * Taken for milliseconds it would be long past or far ahead, and a filter would select everything or nothing.
 */
export function otherUnitOf(timeMs: number): 'seconds' | 'microseconds' | undefined {
  if (timeMs >= SECONDS_FROM && timeMs < SECONDS_TO) return 'seconds'
  return timeMs >= MICROSECONDS_FROM ? 'microseconds' : undefined
}
