import { createHash } from 'node:crypto'
import { newId } from '../../base/index.js'
import { forwardedHeaders } from '../headers.js'
import type { NewMessage, PublishEntry } from '../transactions/messages.js'
import type { HeaderMap, MessageConfig, PublishItem } from '../types.js'
import { type Destination, parseDestination } from './destination.js'
import { NAME, readSettings, refuseSetting, type SettingLimits, type Settings } from './settings.js'

/** How long two publications with the same key count as one (reference queue 3.7). */
const DEDUP_WINDOW_MS = 10 * 60_000
/** Retries of a message that does not say how many it wants (reference queue 3.4). */
export const DEFAULT_RETRIES = 3

/** What a draft needs to know besides the item. */
export interface Drafting {
  readonly accountId: string
  /** Address of the publisher; `null` for messages that the server makes itself. */
  readonly callerIp: string | null
  readonly now: number
  readonly limits: SettingLimits
  /** For items that do not say it; default 3. */
  readonly defaultRetries?: number
  /** The schedule that publishes. */
  readonly scheduleId?: string
}

/** Where a draft goes: to its own URL, or to one of the endpoints of a URL group. */
export interface DraftTarget {
  readonly destination: Destination
  readonly topic?: string
  readonly endpoint?: string
}

/** The part of a message's configuration that its settings give. Only what is set: most messages have `{}`. */
export function configOf(settings: Settings): MessageConfig {
  const { timeoutMs, retryDelay, callback, failureCallback, redact, flow, notBefore } = settings
  const config: { -readonly [Member in keyof MessageConfig]: MessageConfig[Member] } = {}
  if (timeoutMs !== undefined) config.timeoutMs = timeoutMs
  if (retryDelay !== undefined) config.retryDelay = retryDelay
  if (callback) config.callback = callback
  if (failureCallback) config.failureCallback = failureCallback
  if (redact) config.redact = redact
  if (flow) config.flow = flow
  if (notBefore !== undefined) config.fixedTime = true
  return config
}

/** Most messages have no configuration. */
function textOf(config: MessageConfig): string {
  for (const _member in config) return JSON.stringify(config)
  return '{}'
}

/** When the first attempt is due. */
export function firstAttemptAt(settings: Pick<Settings, 'delayMs' | 'notBefore'>, now: number): number {
  return Math.max(now, settings.notBefore ?? now + (settings.delayMs ?? 0))
}

/** Labels as the store keeps them: `|a|b|`. */
export function labelColumn(labels: readonly string[]): string {
  return labels.length === 0 ? '' : `|${labels.join('|')}|`
}

/** A `Buffer` may be a view into one that much else shares, which would be taken across a thread with it. */
function storedBody(body: Uint8Array | undefined): Uint8Array | null {
  if (!body || body.byteLength === 0) return null
  return Buffer.isBuffer(body) ? new Uint8Array(body) : body
}

/**
 * Makes a message of a publish item, checked and ready to be stored.
 * @throws HomeportError with what is wrong with the item.
 */
export function draftMessage(item: PublishItem, drafting: Drafting, target?: DraftTarget): PublishEntry {
  const { now, accountId } = drafting
  const settings = readSettings(item.headers, now, drafting.limits)
  const { destination, topic, endpoint } = target ?? { destination: parseDestination(item.destination) }
  const headers = forwardedHeaders(item.headers, settings.forwardAll)
  const message: { -readonly [Column in keyof NewMessage]: NewMessage[Column] } = {
    message_id: newId('msg_', now),
    account_id: accountId,
    kind: 'http',
    url: destination.url,
    method: settings.method ?? 'POST',
    headers: JSON.stringify(headers),
    config: textOf(configOf(settings)),
    max_retries: settings.retries ?? drafting.defaultRetries ?? DEFAULT_RETRIES,
    next_at: firstAttemptAt(settings, now),
    created_at: now,
    labels: labelColumn(settings.labels),
    caller_ip: drafting.callerIp,
    host: destination.host,
    path: destination.path,
  }
  // Only what is there: everything that is named has to be copied on its way to the store.
  const body = storedBody(item.body)
  const queue = queueNameOf(item)
  if (body) message.body = body
  if (queue !== undefined) message.queue = queue
  if (settings.flowKey !== undefined) message.flow_key = settings.flowKey
  if (topic !== undefined) message.topic = topic
  if (endpoint !== undefined) message.endpoint = endpoint
  if (drafting.scheduleId !== undefined) message.schedule_id = drafting.scheduleId
  const key = dedupKey(settings, message, headers)
  return { message, dedup: key === undefined ? null : { key, expiresAt: now + DEDUP_WINDOW_MS } }
}

/** The queue that an item names, in its path or its headers. */
export function queueNameOf(item: PublishItem): string | undefined {
  const name = item.queue ?? item.headers['upstash-queue-name']?.trim()
  if (name === undefined || name === '') return undefined
  return NAME.test(name) ? name : refuseSetting('The queue name', name, 'use letters, digits, - _ and . only')
}

/** The key under which a publication counts as one with others: the one it names, or a hash of what it says. */
function dedupKey(settings: Settings, message: NewMessage, headers: HeaderMap): string | undefined {
  // Each endpoint of a URL group gets a publication once (reference queue 3.7).
  if (settings.dedupId !== undefined) {
    return message.topic ? `id:${settings.dedupId}:${message.url}` : `id:${settings.dedupId}`
  }
  if (!settings.contentDedup) return undefined
  const sorted = Object.entries(headers).sort(([a], [b]) => (a < b ? -1 : 1))
  const hash = createHash('sha256').update(JSON.stringify([message.url, message.method, sorted]))
  return `content:${hash
    .update('\0')
    .update(message.body ?? '')
    .digest('hex')}`
}
