import { headerOf } from '../headers.js'
import { parseRetryDelay, type RetryDelay } from '../publish/retry-delay.js'
import { remembering } from '../remember.js'
import type { AttemptOutcome, Decision, DeliveryResponse, PendingMessage } from '../types.js'
import { retryAfterMs } from './retry-after.js'

const NOT_RETRYABLE = 489
/** No back-off is longer, whatever an expression computes (reference queue 3.4). */
const LONGEST_BACKOFF_MS = 86_400_000

/** The default wait before retry number `retried + 1`: e^(2.5 n) seconds, a day at most (reference queue 3.4). */
export function defaultBackoffMs(retried: number): number {
  return Math.min(LONGEST_BACKOFF_MS, Math.round(Math.exp(2.5 * (retried + 1)) * 1_000))
}

const compiled = remembering(
  (expression): RetryDelay | undefined => {
    const parsed = parseRetryDelay(expression)
    return 'delay' in parsed ? parsed.delay : undefined
  },
  { most: 1_000, longest: 1_000 },
)

/** The wait before the next attempt: by the message's expression, else by default. What is not a number counts as none. */
export function backoffMs(expression: string | undefined, retried: number): number {
  const wait = expression === undefined ? Number.NaN : (compiled(expression)?.(retried) ?? Number.NaN)
  if (Number.isNaN(wait)) return defaultBackoffMs(retried)
  return Math.round(Math.min(LONGEST_BACKOFF_MS, Math.max(0, wait)))
}

function isRefusal(response: DeliveryResponse): boolean {
  const header = headerOf(response.headers, 'Upstash-NonRetryable-Error')
  return response.status === NOT_RETRYABLE && header?.toLowerCase() === 'true'
}

/**
 * What the outcome of an attempt means for its message (reference queue 3.3, 3.4). Every retry uses up one of the
 * message's retries, also one that the destination asked for with `Retry-After`.
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
