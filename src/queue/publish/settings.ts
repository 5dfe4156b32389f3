import { parseDuration } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isForwardedOwn, isOwnSetting } from '../headers.js'
import type { KeyRule } from '../key-rule.js'
import type { CallbackConfig, FlowValue, Redaction } from '../types.js'
import { parseHttpUrl } from './destination.js'
import { keyRule, ownText, priority } from './own-settings.js'
import { parseRetryDelay } from './retry-delay.js'
import { duration, type Headers, key, MAX_DELAY_MS, present, refuseSetting, written } from './setting-values.js'

/** HTTP methods of deliveries. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Maximum of retries that a message may ask for. */
export const MAX_RETRIES = 1_000
/** The longest period of a rate limit. */
export const MAX_PERIOD_S = 7 * 86_400
const MAX_LABELS = 32
const DEEPEST_CALLBACK = 3

/** Limits of the server for settings of publish requests. */
export interface SettingLimits {
  /** Longest time of one attempt. */
  readonly timeoutMs: number
}

/**
 * No limits, for settings that were accepted earlier. The limits may be lower by now, but each
 * attempt is capped at the current limit anyway.
 */
export const AS_ACCEPTED: SettingLimits = { timeoutMs: Number.POSITIVE_INFINITY }

/** The validated `Upstash-*` settings of a publish request (reference queue 2.2). */
export interface Settings {
  readonly method?: string | undefined
  readonly retries?: number | undefined
  readonly retryDelay?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly delayMs?: number | undefined
  /** Unix milliseconds. Wins over `delayMs`. */
  readonly notBefore?: number | undefined
  readonly callback?: CallbackConfig | undefined
  readonly failureCallback?: CallbackConfig | undefined
  readonly labels: readonly string[]
  readonly flowKey?: string | undefined
  readonly flow?: FlowValue | undefined
  readonly redact?: Redaction | undefined
  readonly dedupId?: string | undefined
  readonly contentDedup: boolean
  readonly forwardAll: boolean
  readonly rule?: KeyRule | undefined
  /** Seconds. */
  readonly priority?: number | undefined
}

function method(headers: Headers): string | undefined {
  const found = present(headers, 'upstash-method')
  if (found === undefined) return undefined
  const upper = found.toUpperCase()
  if (METHODS.some((known) => known === upper)) return upper
  return refuseSetting('Upstash-Method', found, `send one of ${METHODS.join(', ')}`)
}

function retries(headers: Headers): number | undefined {
  const found = present(headers, 'upstash-retries')
  if (found === undefined) return undefined
  if (!/^\d{1,9}$/.test(found)) return refuseSetting('Upstash-Retries', found, 'send a whole number of 0 or more')
  const count = Number(found)
  if (count > MAX_RETRIES)
    throw new HomeportError('setting_limit', { setting: 'Upstash-Retries', found, limit: String(MAX_RETRIES) })
  return count
}

function retryDelay(headers: Headers): string | undefined {
  const found = present(headers, 'upstash-retry-delay')
  if (found === undefined) return undefined
  const parsed = parseRetryDelay(found)
  if ('delay' in parsed) return found
  const grammar =
    'it computes milliseconds from numbers, + - * /, parentheses, retried, and pow sqrt abs exp floor ceil round min max'
  return refuseSetting('Upstash-Retry-Delay', found, `${parsed.problem}: ${grammar}`)
}

function timeout(headers: Headers, limits: SettingLimits): number | undefined {
  const ms = duration(headers, 'upstash-timeout')
  if (ms === undefined) return undefined
  const found = headers['upstash-timeout'] ?? ''
  if (ms === 0) return refuseSetting('Upstash-Timeout', found, 'send more than 0')
  if (ms <= limits.timeoutMs) return ms
  throw new HomeportError('setting_limit', { setting: 'Upstash-Timeout', found, limit: `${limits.timeoutMs / 1_000}s` })
}

function delay(headers: Headers): number | undefined {
  const ms = duration(headers, 'upstash-delay')
  if (ms === undefined || ms <= MAX_DELAY_MS) return ms
  throw new HomeportError('setting_limit', {
    setting: 'Upstash-Delay',
    found: headers['upstash-delay'] ?? '',
    limit: '366d',
  })
}

function notBefore(headers: Headers, now: number): number | undefined {
  const found = present(headers, 'upstash-not-before')
  if (found === undefined) return undefined
  // JavaScript counts milliseconds, so this mistake deserves its own text.
  if (/^\d{13}$/.test(found)) {
    const seconds = found.slice(0, -3)
    return refuseSetting('Upstash-Not-Before', found, `that is in milliseconds; send Unix seconds, such as ${seconds}`)
  }
  if (!/^\d{1,12}$/.test(found)) return refuseSetting('Upstash-Not-Before', found, 'send whole Unix seconds')
  const at = Number(found) * 1_000
  if (at - now <= MAX_DELAY_MS) return at
  throw new HomeportError('setting_limit', { setting: 'Upstash-Not-Before', found, limit: '366 days from now' })
}

/** Valid names of labels, queues, schedules and endpoints (reference queue 2.3). */
export const NAME = /^[A-Za-z0-9._-]{1,256}$/

function labels(headers: Headers): readonly string[] {
  const found = present(headers, 'upstash-label')
  if (found === undefined) return []
  const all = [
    ...new Set(
      found
        .split(',')
        .map((label) => label.trim())
        .filter((label) => label !== ''),
    ),
  ]
  const wrong = all.find((label) => !NAME.test(label))
  if (wrong !== undefined)
    return refuseSetting('Upstash-Label', wrong, 'a label consists of letters, digits, dots, hyphens and underscores')
  if (all.length > MAX_LABELS)
    return refuseSetting('Upstash-Label', found, `a message has at most ${MAX_LABELS} labels`)
  return all
}

const FLOW_PARTS = ['parallelism', 'rate', 'period'] as const

const FLOW_RANGES = {
  parallelism: 'a whole number of 1 or more',
  rate: 'a whole number of 1 or more',
  period: `a duration of whole seconds, from 1s to ${MAX_PERIOD_S / 86_400}d`,
} as const

function flow(headers: Headers): FlowValue | undefined {
  const name = 'Upstash-Flow-Control-Value'
  const found = present(headers, 'upstash-flow-control-value')
  if (found === undefined) return undefined
  const value: { parallelism?: number; rate?: number; period?: number } = {}
  for (const part of found.split(',')) {
    const [left, right, ...more] = part.split('=').map((side) => side.trim())
    const member = FLOW_PARTS.find((known) => known === left)
    if (!member || right === undefined || more.length > 0)
      return refuseSetting(name, found, 'send for example "parallelism=2, rate=5, period=60s"')
    const amount = flowAmount(member, right)
    if (amount === undefined) return refuseSetting(name, found, `${member} is ${FLOW_RANGES[member]}`)
    value[member] = amount
  }
  if (value.parallelism === undefined && value.rate === undefined)
    return refuseSetting(name, found, 'name rate, parallelism or both')
  return value
}

/** A number above 0. The period is in seconds, from a duration or a bare number. */
function flowAmount(member: (typeof FLOW_PARTS)[number], text: string): number | undefined {
  if (/^\d{1,9}$/.test(text)) return inRange(Number(text), member === 'period' ? MAX_PERIOD_S : Number.MAX_SAFE_INTEGER)
  const ms = member === 'period' ? parseDuration(text) : undefined
  return ms === undefined ? undefined : inRange(ms / 1_000, MAX_PERIOD_S)
}

const inRange = (amount: number, most: number): number | undefined =>
  Number.isInteger(amount) && amount > 0 && amount <= most ? amount : undefined

/**
 * Parses `Upstash-Redact-Fields`: `body`, `header` or `headers`, `header[Name]` or `headers[Name]`, comma-separated
 * (reference queue 2.2, 7 K6).
 * @throws HomeportError `invalid_request` for anything else.
 */
export function redactionOf(headers: Headers): Redaction | undefined {
  const found = present(headers, 'upstash-redact-fields')
  if (found === undefined) return undefined
  let body = false
  let all = false
  const names: string[] = []
  for (const part of found.split(',').map((field) => field.trim())) {
    const name = /^headers?\[([^\]]+)\]$/.exec(part)?.[1]
    if (part === 'body') body = true
    else if (part === 'header' || part === 'headers') all = true
    else if (name !== undefined) names.push(name.toLowerCase())
    else return refuseSetting('Upstash-Redact-Fields', part, 'send body, header or header[Name], separated by commas')
  }
  return {
    ...(body && { body: true as const }),
    ...(all ? { headers: 'all' as const } : names.length > 0 && { headers: names }),
  }
}

/** Reads a callback. Its settings are publish headers with a prefix (reference queue 2.2). */
function callback(headers: Headers, name: string, limits: SettingLimits, depth: number): CallbackConfig | undefined {
  const url = present(headers, name)
  if (url === undefined) return undefined
  const problem = parseHttpUrl(url)
  if ('problem' in problem) return refuseSetting(written(name), url, problem.problem)
  const own: Record<string, string> = {}
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(`${name}-`)) continue
    const setting = `upstash-${header.slice(name.length + 1)}`
    // The workflow package copies all headers of a trigger to its failure callback, including debounce and singleton keys.
    // A callback has no such keys.
    if (!isForwardedOwn(setting)) own[setting] = value
  }
  const delayed = ['upstash-delay', 'upstash-not-before'].find((setting) => own[setting] !== undefined)
  if (delayed)
    return refuseSetting(
      `${written(name)}-${written(delayed.slice(8))}`,
      own[delayed] ?? '',
      'a callback cannot be delayed',
    )
  if (depth >= DEEPEST_CALLBACK)
    return refuseSetting(written(name), url, `callbacks are nested deeper than ${DEEPEST_CALLBACK}`)
  readSettings(own, 0, limits, depth + 1)
  return { url, headers: own }
}

/** Settings that have no effect without a second header. */
const NEEDS_KEY = [
  ['upstash-flow-control-value', 'upstash-flow-control-key'],
  ['upstash-callback-flow-control-value', 'upstash-callback-flow-control-key'],
  ['upstash-failure-callback-flow-control-value', 'upstash-failure-callback-flow-control-key'],
  ['homeport-debounce-delay', 'homeport-debounce'],
  ['homeport-debounce-max-delay', 'homeport-debounce'],
  ['homeport-singleton-mode', 'homeport-singleton'],
] as const

/**
 * Refuses limits and modes without their key. This is not part of `readSettings`: default headers of a
 * URL group and headers of a retry may have one without the other, and settings that were accepted
 * before this check existed are still published.
 */
export function refuseWithoutKey(headers: Headers): void {
  for (const [name, key] of NEEDS_KEY) {
    const textOf = isOwnSetting(name) ? ownText : present
    const found = textOf(headers, name)
    if (found === undefined || textOf(headers, key) !== undefined) continue
    refuseSetting(written(name), found, `it has no effect without ${written(key)}: send both or neither`)
  }
}

const isTrue = (text: string | undefined): boolean => text?.trim().toLowerCase() === 'true'

/**
 * Parses and validates all settings of a publish request.
 * @param headers lower-case names
 * @param now Unix milliseconds.
 * @throws HomeportError `invalid_request` or `setting_limit`, with the setting and the value found.
 */
export function readSettings(headers: Headers, now: number, limits: SettingLimits, depth = 0): Settings {
  if (headers['upstash-cron'] !== undefined) {
    refuseSetting('Upstash-Cron', headers['upstash-cron'], 'a schedule is made with POST /v2/schedules/<destination>')
  }
  return {
    method: method(headers),
    retries: retries(headers),
    retryDelay: retryDelay(headers),
    timeoutMs: timeout(headers, limits),
    delayMs: delay(headers),
    notBefore: notBefore(headers, now),
    callback: callback(headers, 'upstash-callback', limits, depth),
    failureCallback: callback(headers, 'upstash-failure-callback', limits, depth),
    flowKey: key(headers, 'upstash-flow-control-key'),
    flow: flow(headers),
    redact: redactionOf(headers),
    dedupId: key(headers, 'upstash-deduplication-id'),
    labels: labels(headers),
    contentDedup: isTrue(headers['upstash-content-based-deduplication']),
    forwardAll: isTrue(headers['upstash-header-forward']),
    rule: keyRule(headers),
    priority: priority(headers),
  }
}
