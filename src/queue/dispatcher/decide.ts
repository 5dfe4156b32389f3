import { headerOf } from '../headers.js'
import { memoized } from '../memoized.js'
import { parseRetryDelay, type RetryDelay } from '../publish/retry-delay.js'
import type { AttemptOutcome, Decision, DeliveryResponse, HeaderMap, PendingMessage } from '../types.js'

/** Longest delay that a destination may ask for. A longer one is ignored (reference queue 3.3). */
const MAX_RETRY_AFTER_MS = 86_400_000

/** In the order in which they are tried. */
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
// Escaped, because a character that is not of Latin 1 doubles the memory of the whole bundled file.
const GO_DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|[\u00b5\u03bc]s|ms|s|m|h|d))+$/
const GO_PART = /(\d+(?:\.\d+)?)(ns|us|[\u00b5\u03bc]s|ms|s|m|h|d)/g

/** Milliseconds from seconds, an HTTP date, or a duration such as `6m5s`; `undefined` for anything else. */
function waitOf(text: string, now: number): number | undefined {
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000
  if (GO_DURATION.test(text)) {
    let total = 0
    for (const [, amount, unit] of text.matchAll(GO_PART)) total += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0)
    return total
  }
  // The obsolete asctime form of an HTTP date names no zone. It is in GMT.
  const date = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text.endsWith('GMT') ? text : `${text} GMT`) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/**
 * How long a failed response asks to wait before the next attempt (reference queue 3.3).
 * @returns milliseconds, 0 for at once, or `undefined` when it asks for nothing or for more than a day.
 */
export function retryAfterMs(headers: HeaderMap, now: number): number | undefined {
  for (const name of HEADERS) {
    const text = headerOf(headers, name)?.trim()
    const wait = text ? waitOf(text, now) : undefined
    if (wait !== undefined && wait <= MAX_RETRY_AFTER_MS) return Math.ceil(wait)
  }
  return undefined
}

const NOT_RETRYABLE = 489
/** Longest backoff, whatever an expression computes (reference queue 3.4). */
const MAX_BACKOFF_MS = 86_400_000

/** Default backoff before retry number `retried + 1`: e^(2.5 n) seconds, at most a day (reference queue 3.4). */
export function defaultBackoffMs(retried: number): number {
  return Math.min(MAX_BACKOFF_MS, Math.round(Math.exp(2.5 * (retried + 1)) * 1_000))
}

const compiled = memoized(
  (expression): RetryDelay | undefined => {
    const parsed = parseRetryDelay(expression)
    return 'delay' in parsed ? parsed.delay : undefined
  },
  { most: 1_000, longest: 1_000 },
)

/** Backoff before the next attempt, from the message's expression. The default if there is none or it computes NaN. */
export function backoffMs(expression: string | undefined, retried: number): number {
  const wait = expression === undefined ? Number.NaN : (compiled(expression)?.(retried) ?? Number.NaN)
  if (Number.isNaN(wait)) return defaultBackoffMs(retried)
  return Math.round(Math.min(MAX_BACKOFF_MS, Math.max(0, wait)))
}

function isRefusal(response: DeliveryResponse): boolean {
  const header = headerOf(response.headers, 'Upstash-NonRetryable-Error')
  return response.status === NOT_RETRYABLE && header?.toLowerCase() === 'true'
}

/**
 * Decides what follows an outcome (reference queue 3.3, 3.4). Every retry counts against `maxRetries`, also one that
 * the destination asked for with `Retry-After`.
 */
export function decideNext(
  message: Pick<PendingMessage, 'maxRetries' | 'retried' | 'config'>,
  outcome: AttemptOutcome,
  now: number,
): Decision {
  const response = outcome.kind === 'answered' ? outcome.response : undefined
  if (response && response.status >= 200 && response.status < 300) return { kind: 'delivered' }
  if (response && isRefusal(response)) return { kind: 'failed', reason: 'refused' }
  if (outcome.kind === 'unanswered' && outcome.isRefused) return { kind: 'failed', reason: 'refused' }
  if (message.retried >= message.maxRetries) return { kind: 'failed', reason: 'exhausted' }
  const asked = response && retryAfterMs(response.headers, now)
  return { kind: 'retry', at: now + (asked ?? backoffMs(message.config.retryDelay, message.retried)) }
}
