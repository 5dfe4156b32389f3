import { createHash } from 'node:crypto'
import { newId } from '../../base/index.js'
import { forwardedHeaders, refuseInvalidOfCallbacks, withoutTraceContext } from '../headers.js'
import { debouncedUntil, type KeyRule, storedKey } from '../key-rule.js'
import type { NewMessage, PublishEntry } from '../transactions/messages.js'
import { placeInStore } from '../transactions/priority.js'
import type { HeaderMap, MessageConfig, PublishItem } from '../types.js'
import { type Destination, parseDestination } from './destination.js'
import { redactionFor } from './provider-secrets.js'
import { refuseSetting } from './setting-values.js'
import { AS_ACCEPTED, NAME, readSettings, refuseWithoutKey, type SettingLimits, type Settings } from './settings.js'

/** How long publications with the same deduplication key count as one (reference queue 3.7). */
const DEDUP_WINDOW_MS = 10 * 60_000
/** Retries of a message that does not set them (reference queue 3.4). */
export const DEFAULT_RETRIES = 3

/** Input of drafting besides the item. */
export interface Drafting {
  readonly accountId: string
  /** IP address of the publisher; `null` for messages of the server itself. */
  readonly callerIp: string | null
  readonly now: number
  readonly limits: SettingLimits
  /** For items that do not set retries; default 3. */
  readonly defaultRetries?: number
  /** The schedule that publishes the item. */
  readonly scheduleId?: string
  /**
   * Prefix of deduplication keys for a token of one queue or flow-control key, so that its messages neither reveal nor block
   * other messages of the account. Absent: no prefix.
   */
  readonly dedupNamespace?: string
  /** The partition of messages without a flow-control key. Absent: see `partitionOf`. */
  readonly partition?: number | undefined
}

/** Destination of a draft: its own URL, or one endpoint of a URL group. */
export interface DraftTarget {
  readonly destination: Destination
  readonly topic?: string
  readonly endpoint?: string
}

/** The configuration of a message, without its rule. Contains only members that are set: most messages have `{}`. */
export function configOf(settings: Settings, redact = settings.redact): MessageConfig {
  const { timeoutMs, retryDelay, callback, failureCallback, flow, notBefore, priority } = settings
  const config: { -readonly [Member in keyof MessageConfig]: MessageConfig[Member] } = {}
  if (timeoutMs !== undefined) config.timeoutMs = timeoutMs
  if (retryDelay !== undefined) config.retryDelay = retryDelay
  if (callback) config.callback = callback
  if (failureCallback) config.failureCallback = failureCallback
  if (redact) config.redact = redact
  if (flow) config.flow = flow
  if (notBefore !== undefined) config.fixedTime = true
  if (priority) config.priority = priority
  return config
}

/** A configuration with the rule of its message. */
export const withRule = (config: MessageConfig, rule: KeyRule | undefined): MessageConfig =>
  rule ? { ...config, rule } : config

/** Skips `JSON.stringify` for the common empty configuration. */
function textOf(config: MessageConfig): string {
  for (const _member in config) return JSON.stringify(config)
  return '{}'
}

/** When the first attempt is due. */
export function firstAttemptAt(settings: Pick<Settings, 'delayMs' | 'notBefore' | 'rule'>, now: number): number {
  if (settings.rule?.kind === 'debounce') return debouncedUntil(settings.rule, now, now)
  return Math.max(now, settings.notBefore ?? now + (settings.delayMs ?? 0))
}

/** Labels in the form of their column: `|a|b|`. */
export function labelColumn(labels: readonly string[]): string {
  return labels.length === 0 ? '' : `|${labels.join('|')}|`
}

/** Copies a `Buffer`: it may be a view of a larger shared buffer, which would move to the store's thread with it. */
function storedBody(body: Uint8Array | undefined): Uint8Array | null {
  if (!body || body.byteLength === 0) return null
  return Buffer.isBuffer(body) ? new Uint8Array(body) : body
}

/** The parts of a message, except its body, that are the same for all items with the same headers and destination. */
export interface MessageTemplate {
  readonly destination: Destination
  readonly settings: Settings
  /** The headers that the destination receives. */
  readonly headers: HeaderMap
  /** The columns of the message that follow from the above. */
  readonly columns: Pick<NewMessage, 'method' | 'headers' | 'config' | 'labels' | 'queue' | 'flow_key'>
  readonly topic: string | undefined
  readonly endpoint: string | undefined
}

/**
 * Validates everything of an item except its body.
 * @param now Unix milliseconds, for settings that name a time.
 * @throws HomeportError with the problem of the item.
 */
export function templateOf(
  item: PublishItem,
  now: number,
  limits: SettingLimits,
  target?: DraftTarget,
): MessageTemplate {
  const settings = readSettings(item.headers, now, limits)
  if (limits !== AS_ACCEPTED) refuseWithoutKey(item.headers)
  // Before the destination: without a queue in the path, the scheme of the destination takes its place.
  const queue = queueOf(item, settings)
  const { destination, topic, endpoint } = target ?? { destination: parseDestination(item.destination) }
  const headers = forwardedHeaders(item.headers, settings.forwardAll)
  if (settings.callback || settings.failureCallback) refuseInvalidOfCallbacks(item.headers)
  const columns = {
    method: settings.method ?? 'POST',
    headers: JSON.stringify(headers),
    config: textOf(withRule(configOf(settings, redactionFor(destination, settings.redact)), settings.rule)),
    labels: labelColumn(settings.labels),
    queue,
    flow_key: settings.flowKey,
  }
  return { destination, settings, headers, columns, topic, endpoint }
}

/** Makes a message with an id and a body of its own. */
export function messageOf(template: MessageTemplate, given: Uint8Array | undefined, drafting: Drafting): PublishEntry {
  const { destination, settings, columns } = template
  const { now } = drafting
  // Written out, because spreading an object costs ten times as much.
  const message: { -readonly [Column in keyof NewMessage]: NewMessage[Column] } = {
    message_id: newId('msg_', now),
    account_id: drafting.accountId,
    kind: 'http',
    url: destination.url,
    method: columns.method,
    headers: columns.headers,
    config: columns.config,
    max_retries: settings.retries ?? drafting.defaultRetries ?? DEFAULT_RETRIES,
    next_at: placeInStore(columns.config, firstAttemptAt(settings, now), now),
    created_at: now,
    labels: columns.labels,
    caller_ip: drafting.callerIp,
    host: destination.host,
    path: destination.path,
  }
  // Only what is set: every member is copied on its way to the store's thread.
  const body = storedBody(given)
  if (body) message.body = body
  if (columns.queue !== undefined) message.queue = columns.queue
  if (columns.flow_key !== undefined) message.flow_key = columns.flow_key
  if (template.topic !== undefined) message.topic = template.topic
  if (template.endpoint !== undefined) message.endpoint = template.endpoint
  if (drafting.scheduleId !== undefined) message.schedule_id = drafting.scheduleId
  if (drafting.partition !== undefined) message.partition = drafting.partition
  const { dedupNamespace = '' } = drafting
  const key = dedupKey(settings, message, template.headers)
  const dedup = key === undefined ? null : { key: storedKey(dedupNamespace + key), expiresAt: now + DEDUP_WINDOW_MS }
  const { rule } = settings
  return rule ? { message, dedup, rule: { ...rule, key: ruleKey(rule, message, dedupNamespace) } } : { message, dedup }
}

/** The key of a rule in the store. Each endpoint of a URL group has a key of its own. */
function ruleKey({ key }: KeyRule, { topic, url }: NewMessage, namespace: string): string {
  return storedKey(topic ? `${namespace}${key} ${url}` : namespace + key)
}

/**
 * Turns a publish item into a validated message, ready to be stored.
 * @throws HomeportError with the problem of the item.
 */
export function draftMessage(item: PublishItem, drafting: Drafting, target?: DraftTarget): PublishEntry {
  return messageOf(templateOf(item, drafting.now, drafting.limits, target), item.body, drafting)
}

/** The queue of an item. An item with both a queue and a priority is refused. */
export function queueOf(item: PublishItem, { priority }: Pick<Settings, 'priority'>): string | undefined {
  const name = queueNameOf(item)
  if (name === undefined || priority === undefined) return name
  return refuseSetting(
    'Homeport-Priority',
    String(priority),
    'leave it out, because a queue keeps the order of its messages',
  )
}

/** The queue that an item names in its path or its headers. */
function queueNameOf(item: PublishItem): string | undefined {
  const name = item.queue ?? item.headers['upstash-queue-name']?.trim()
  if (name === undefined || name === '') return undefined
  return NAME.test(name) ? name : refuseSetting('The queue name', name, 'use letters, digits, - _ and . only')
}

/** The deduplication key: the id that the item names, or a hash of its content. */
function dedupKey(settings: Settings, message: NewMessage, headers: HeaderMap): string | undefined {
  // Each endpoint of a URL group gets a publication once (reference queue 3.7).
  if (settings.dedupId !== undefined) {
    return message.topic ? `id:${settings.dedupId}:${message.url}` : `id:${settings.dedupId}`
  }
  if (!settings.contentDedup) return undefined
  const sorted = Object.entries(withoutTraceContext(headers)).sort(([a], [b]) => (a < b ? -1 : 1))
  const hash = createHash('sha256').update(JSON.stringify([message.url, message.method, sorted]))
  return `content:${hash
    .update('\0')
    .update(message.body ?? '')
    .digest('hex')}`
}
