import { headerOf } from '../headers.js'
import type { HeaderMap } from '../types.js'

/** A destination may not put a retry off for longer; a longer wish counts as none (reference queue 3.3). */
const LONGEST_RETRY_AFTER_MS = 86_400_000

/** In the order in which they are asked. */
const HEADERS = ['Retry-After', 'X-RateLimit-Reset', 'X-RateLimit-Reset-Requests', 'X-RateLimit-Reset-Tokens']

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}
const GO_DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|m|h|d))+$/
const GO_PART = /(\d+(?:\.\d+)?)(ns|us|µs|μs|ms|s|m|h|d)/g

/** Seconds, an HTTP date, or a duration such as `6m5s`; `undefined` for anything else. */
function waitOf(text: string, now: number): number | undefined {
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000
  if (GO_DURATION.test(text)) {
    let total = 0
    for (const [, amount, unit] of text.matchAll(GO_PART)) total += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0)
    return total
  }
  const date = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/**
 * How long a failed response asks to wait before the next attempt (reference queue 3.3).
 * @returns milliseconds, 0 for at once, or `undefined` when it does not say or asks for more than a day.
 */
export function retryAfterMs(headers: HeaderMap, now: number): number | undefined {
  for (const name of HEADERS) {
    const text = headerOf(headers, name)?.trim()
    const wait = text ? waitOf(text, now) : undefined
    if (wait !== undefined && wait <= LONGEST_RETRY_AFTER_MS) return Math.ceil(wait)
  }
  return undefined
}
