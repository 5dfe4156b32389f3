import { sha256Hex } from '../base/index.js'

/**
 * How a new message affects an older one of its account with the same key. Times are milliseconds.
 * - `debounce`: the new message replaces an older one that has not been sent yet, and the delay starts again. `maxDelayMs`
 *   counts from the first message of the burst.
 * - `singleton`: while an older message has not ended, `skip` drops the new one, and `cancel` cancels the older one.
 */
export type KeyRule =
  | {
      readonly kind: 'debounce'
      readonly key: string
      readonly delayMs: number
      readonly maxDelayMs?: number
    }
  | { readonly kind: 'singleton'; readonly key: string; readonly mode: SingletonMode }

/** What a new message of a singleton key does while an older one has not ended. */
export type SingletonMode = 'skip' | 'cancel'

type Debounce = Extract<KeyRule, { kind: 'debounce' }>

/**
 * When a debounced message is due.
 * @param since when the first message of the burst was published, Unix milliseconds.
 */
export function debouncedUntil({ delayMs, maxDelayMs }: Debounce, since: number, now: number): number {
  const latest = since + (maxDelayMs ?? Number.POSITIVE_INFINITY)
  return Math.max(now, Math.min(now + delayMs, latest))
}

/** Bytes. A longer key would not fit into a database index. */
const MAX_STORED_KEY_LENGTH = 600

/** A deduplication, debounce or singleton key as it is stored: a long key is replaced by its hash. */
export const storedKey = (key: string): string =>
  Buffer.byteLength(key) <= MAX_STORED_KEY_LENGTH ? key : `sha256 ${sha256Hex(key)}`

/** Why a message was cancelled, as its log shows it. */
export const replacedBy = (messageId: string, { kind }: KeyRule): string =>
  `Replaced by ${messageId}, which has the same ${kind} key.`

/** Why a publish or trigger request was skipped for an older message or run, or has replaced it. */
export function becauseOfRule(
  { kind, key }: KeyRule,
  effect: 'skipped' | 'replaces',
  what: 'message' | 'run' = 'message',
): string {
  const older = `The ${what} with the ${kind} key ${JSON.stringify(key)}`
  if (effect === 'skipped') return `${older} has not ended.`
  const begun = what === 'run' ? 'had not started' : 'had not been sent'
  return `${older} ${kind === 'debounce' ? begun : 'had not ended'}; this one replaces it.`
}
