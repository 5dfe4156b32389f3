import { sha256Hex, yieldToEventLoop } from '../../base/index.js'
import { titleCase } from '../headers.js'
import { redactionOf } from '../publish/settings.js'
import type { MessageRow } from '../transactions/messages.js'
import { dueTime } from '../transactions/messages-parked.js'
import { dueOf } from '../transactions/priority.js'
import type { CallbackConfig, DeadLetterView, HeaderMap, MessageConfig, MessageView, Redaction } from '../types.js'
import { waitsFor } from '../wait-reason.js'

/**
 * The JSON columns of messages. This program validates them before it writes them, so the two functions below read them
 * without validation.
 */

/** Reads a column of settings. NULL means none. */
export const storedConfig = (json: string | null | undefined): MessageConfig =>
  JSON.parse(json ?? '{}') as MessageConfig

/** Reads a column of headers. NULL means none. */
export const storedHeaders = (json: string | null | undefined): HeaderMap => JSON.parse(json ?? '{}') as HeaderMap

/** Replaces a redacted value. Equal values get equal hashes; nothing else can be inferred. */
export function redacted(value: string | Uint8Array): string {
  return `REDACTED:${sha256Hex(value)}`
}

/** Headers with redacted values replaced. */
export function redactHeaders(headers: HeaderMap, redaction: Redaction | undefined): HeaderMap {
  if (redaction?.headers === undefined) return headers
  return withHashes(headers, (name) => isSecret(name.toLowerCase(), redaction))
}

/** Settings that forward a header: `upstash-forward-x`, and those of callbacks with a prefix. */
const FORWARDED = /(?:^|-)forward-(.+)$/

/** Settings of a callback, with the values of forwarded headers replaced if any redaction names them. */
function redactSettings(settings: HeaderMap, ...redactions: readonly (Redaction | undefined)[]): HeaderMap {
  return withHashes(settings, (setting) => {
    const name = FORWARDED.exec(setting.toLowerCase())?.[1]
    return name !== undefined && redactions.some((redaction) => isSecret(name, redaction))
  })
}

const isSecret = (lowerName: string, redaction: Redaction | undefined): boolean =>
  redaction?.headers === 'all' || (redaction?.headers?.includes(lowerName) ?? false)

function withHashes(headers: HeaderMap, isHidden: (name: string) => boolean): HeaderMap {
  return Object.fromEntries(
    Object.entries(headers).map(([name, values]) => [name, isHidden(name) ? values.map(redacted) : values]),
  )
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of bytes that are valid UTF-8, else `undefined`. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes)
  } catch {
    return undefined
  }
}

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

/** A copy of headers with mutable lists, as the wire types have them. */
export function mutable(headers: HeaderMap): Record<string, string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]]))
}

/** A body of this length takes several milliseconds to become text. */
const LARGE_BYTES = 1_048_576

/** Yields to the event loop if the body is large, because the store may answer several requests in one turn of the loop. */
export async function turnFor(body: Uint8Array | null): Promise<void> {
  if (body !== null && body.byteLength > LARGE_BYTES) await yieldToEventLoop()
}

/** The body as text or in base64, or its hash when redacted. */
export function bodyMembers(body: Uint8Array | null, config: MessageConfig): Pick<MessageView, 'body' | 'bodyBase64'> {
  if (body === null || body.byteLength === 0) return {}
  if (config.redact?.body) return { body: redacted(body) }
  const text = textOf(body)
  return text === undefined ? { bodyBase64: base64(body) } : { body: text }
}

/** The body in base64, as log entries have it. */
export function bodyBase64(row: Pick<MessageRow, 'body'>, config: MessageConfig, maxBytes: number): string {
  if (row.body === null || maxBytes === 0) return ''
  if (config.redact?.body) return Buffer.from(redacted(row.body)).toString('base64')
  return base64(row.body.subarray(0, maxBytes))
}

type Placed = Pick<MessageRow, 'labels' | 'flow_key' | 'topic' | 'endpoint' | 'queue' | 'schedule_id'>

/** Settings that messages, dead letters and log entries all show. */
export function settingMembers(row: Placed, config: MessageConfig): Partial<MessageView> {
  const labels = row.labels === '' ? [] : row.labels.slice(1, -1).split('|')
  const { flow, callback, failureCallback, retryDelay, timeoutMs, rule, priority } = config
  return {
    ...(row.topic !== null && { topicName: row.topic }),
    ...(row.endpoint !== null && { endpointName: row.endpoint }),
    ...(row.queue !== null && { queueName: row.queue }),
    ...(row.schedule_id !== null && { scheduleId: row.schedule_id }),
    ...(callback && { callback: callback.url }),
    ...(failureCallback && { failureCallback: failureCallback.url }),
    ...(retryDelay !== undefined && { retryDelayExpression: retryDelay }),
    ...(timeoutMs !== undefined && { timeout: timeoutMs }),
    ...(labels[0] !== undefined && { label: labels[0], labels }),
    ...(priority !== undefined && { priority }),
    ...(rule?.kind === 'debounce' && { debounceKey: rule.key }),
    ...(rule?.kind === 'singleton' && { singletonKey: rule.key }),
    ...(row.flow_key !== null && { flowControlKey: row.flow_key }),
    ...(flow?.parallelism !== undefined && { parallelism: flow.parallelism }),
    ...(flow?.rate !== undefined && { rate: flow.rate }),
    ...(flow && { period: flow.period ?? 1 }),
  }
}

/** The settings of a message's callback, as log entries show them. */
export function callbackHeaders({ headers }: CallbackConfig, { redact }: MessageConfig): Record<string, string[]> {
  const settings = Object.fromEntries(Object.entries(headers).map(([name, value]) => [titleCase(name), [value]]))
  return mutable(redactSettings(settings, redact, redactionOf(headers)))
}

/** The wire form of a message. If `now` is given, it includes why a pending message waits. */
export function messageView(row: MessageRow, now?: number): MessageView {
  const config = storedConfig(row.config)
  return {
    messageId: row.message_id,
    url: row.url,
    method: row.method,
    header: mutable(redactHeaders(storedHeaders(row.headers), config.redact)),
    ...bodyMembers(row.body, config),
    maxRetries: row.max_retries,
    notBefore: dueOf({ nextAt: dueTime(row.next_at), createdAt: row.created_at }),
    createdAt: row.created_at,
    ...(row.caller_ip !== null && { callerIP: row.caller_ip, callerIp: row.caller_ip }),
    ...settingMembers(row, config),
    ...(now !== undefined && becauseMember(row, config, now)),
  }
}

function becauseMember(row: MessageRow, config: MessageConfig, now: number): Pick<MessageView, 'because'> {
  if (row.finished_at !== null) return {}
  const because = waitsFor(config, { nextAt: dueTime(row.next_at), retried: row.retried }, now)
  return because.length > 0 ? { because } : {}
}

function responseMembers(row: MessageRow): Partial<DeadLetterView> {
  const body = row.response_body
  if (row.response_status === 0) return row.error === null ? {} : { responseBody: row.error }
  const shown = body === null ? {} : textMembers(body)
  return { responseHeader: mutable(storedHeaders(row.response_headers)), ...shown }
}

function textMembers(body: Uint8Array): Partial<DeadLetterView> {
  const text = textOf(body)
  return text === undefined ? { responseBodyBase64: base64(body) } : { responseBody: text }
}

/** The wire form of a dead letter. */
export function deadLetterView(row: MessageRow): DeadLetterView {
  return {
    ...messageView(row),
    dlqId: row.dlq_id ?? '',
    responseStatus: row.response_status ?? 0,
    ...responseMembers(row),
  }
}
