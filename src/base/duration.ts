const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const DURATION = /^(?:\d+(?:\.\d+)?(?:ms|[smhd]))+$/
const COMPONENT = /(\d+(?:\.\d+)?)(ms|[smhd])/g

/**
 * Reads a duration such as `10s`, `1d10h30m`, `1.5h` or `250ms`.
 * @returns whole milliseconds, or `undefined` when the text is not a duration or is too large to be exact.
 */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(COMPONENT)) total += Number(amount) * (UNIT_MS[unit ?? ''] ?? Number.NaN)
  const ms = Math.round(total)
  return Number.isSafeInteger(ms) ? ms : undefined
}

/** Formats milliseconds for people: 90,000 is `1m30s`, zero is `0s`. */
export function formatDuration(ms: number): string {
  let rest = Math.max(0, Math.round(ms))
  if (rest === 0) return '0s'
  const parts: string[] = []
  for (const unit of ['d', 'h', 'm', 's', 'ms']) {
    const size = UNIT_MS[unit] ?? 1
    const amount = Math.floor(rest / size)
    if (amount > 0) parts.push(`${amount}${unit}`)
    rest -= amount * size
  }
  return parts.join('')
}

/** Current times in seconds lie in this range. As milliseconds the same numbers are all in early 1970. */
const SECONDS_FROM = 1e9
const SECONDS_TO = 1e10
/** Current times in microseconds lie above this. As milliseconds the same number is beyond the year 33000. */
const MICROSECONDS_FROM = 1e15

/**
 * Guesses the unit of a time that should be in Unix milliseconds but most likely is not; `undefined` when it plausibly is.
 * Read as milliseconds, such a time is far in the past or future, and a filter would select everything or nothing.
 */
export function otherUnitOf(timeMs: number): 'seconds' | 'microseconds' | undefined {
  if (timeMs >= SECONDS_FROM && timeMs < SECONDS_TO) return 'seconds'
  return timeMs >= MICROSECONDS_FROM ? 'microseconds' : undefined
}

/** A time in Go's format, which clients of the reference parse: `2025-08-31 15:12:00 +0000 UTC`. */
export function goTime(atMs: number): string {
  const [day = '', time = ''] = new Date(atMs).toISOString().split('T')
  return `${day} ${time.slice(0, 8)} +0000 UTC`
}
