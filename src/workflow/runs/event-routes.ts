import type { IncomingHttpHeaders } from 'node:http'
import { type Clock, namePattern, newId, parseDuration } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  listAwaitedEvents,
  listWaiters,
  MAX_WAITERS,
  MAX_WAITERS_OF_PAGE,
  notifyEvent,
  WAITERS_COUNT,
  WAITERS_CURSOR,
  waitForEvent,
  webhooks,
} from '../../contract/workflow/events.js'
import { type Call, compileChecker, type Route, reply, route } from '../../http/index.js'
import { type PublishItem, type Queue, type SettingLimits, titleCase } from '../../queue/index.js'
import type { Store } from '../../store/index.js'
import { base64, ownBytes, textBytes } from '../protocol/bytes.js'
import { announces } from '../protocol/protocol.js'
import { MAX_EVENT_ID_BYTES, refuseLarge } from '../protocol/sent-steps.js'
import { readRunItem, runIdOf } from '../protocol/settings.js'
import * as runsAwaited from '../transactions/runs-awaited.js'
import type { NotifyArgs, Released } from '../transactions/runs-notify.js'
import * as runsRead from '../transactions/runs-read.js'
import type { WaitRecord, WaitRow } from '../transactions/runs-wait.js'
import * as runsWait from '../transactions/runs-wait.js'
import { storedWait } from './columns.js'
import { notify } from './notify.js'

/** Collaborators of the routes for waits and events. */
export interface EventDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'offer' | 'drop' | 'refuseForbidden'>
  readonly clock: Clock
  readonly limits: SettingLimits
  /** The account of a `UserID`; webhook addresses contain one. */
  readonly accountOfUser: (userId: string) => string | undefined
  /** Public URL of the service; its scheme is that of webhook addresses. */
  readonly publicUrl: string
}

const DEFAULT_WAIT = '7d'
/** Awaited events on a page. */
const MAX_EVENTS = 100
const MAX_WAIT_MS = 366 * 86_400_000

/** Routes of waits, notifications and webhooks (reference workflow 4.9). */
export function eventRoutes(deps: EventDeps): Route[] {
  return [
    route(waitForEvent, ({ params, body, headers, caller, ip }) => {
      const origin = { headers: singleValues(headers), ip }
      return wait(deps, caller.accountId, parseWait(deps, params.eventId, body, origin))
    }),
    route(notifyEvent, async ({ params, body, caller }) => {
      const { accountId } = caller
      const sent = sentId(params.event)
      const whole = refusedToRuns(() => storable(sent))
      const event = { accountId, by: 'token' as const, ...(await targetOf(deps, accountId, whole)) }
      const shown = new ShownWaits()
      for await (const { released } of notify(deps, { ...event, data: ownBytes(body) })) shown.add(released)
      return shown.waits
    }),
    route(listWaiters, async ({ params, headers, caller: { accountId } }) => {
      const limit = numberIn(headers, WAITERS_COUNT, MAX_WAITERS_OF_PAGE) ?? MAX_WAITERS
      const after = numberIn(headers, WAITERS_CURSOR, Number.MAX_SAFE_INTEGER) ?? 0
      const page = { accountId, eventId: eventIdOf(params.eventId), after, limit }
      const { waits, next } = await deps.store.run(runsAwaited.waiters, page)
      return reply(200, waits.map(toWaiter), next === undefined ? undefined : { [WAITERS_CURSOR]: String(next) })
    }),
    route(listAwaitedEvents, async ({ query, caller }) => {
      const { prefix = '', count = MAX_EVENTS, cursor } = query
      const wanted = { accountId: caller.accountId, prefix, after: cursor, limit: count + 1 }
      const found = await deps.store.run(runsAwaited.awaited, wanted)
      const events = found.slice(0, count)
      return { events: events.map(toAwaited), ...(found.length > count && { cursor: events.at(-1)?.eventId }) }
    }),
    ...webhooks.map((webhook) => route(webhook, (call) => callWebhook(deps, webhook.method, call))),
  ]
}

/**
 * A header with a positive whole number; `undefined` without it.
 * @throws HomeportError `invalid_request`.
 */
function numberIn(headers: IncomingHttpHeaders, name: string, most: number): number | undefined {
  const text = headers[name.toLowerCase()]
  if (text === undefined) return undefined
  const value = typeof text === 'string' && /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  if (value <= most) return value
  const problem = `${name} is ${JSON.stringify(String(text).slice(0, 80))}; send a whole number from 1 to ${most}.`
  throw new HomeportError('invalid_request', { problem })
}

type WaitBody = {
  readonly url: string
  readonly timeout?: string
  readonly timeoutUrl?: string
  readonly timeoutHeaders?: Readonly<Record<string, readonly string[]>>
  readonly step: Readonly<Record<string, unknown>>
}

interface WaitOrigin {
  readonly headers: Readonly<Record<string, string>>
  readonly ip: string
}

const checkWait = compileChecker(waitForEvent.body.schema, 'body')

/**
 * Parses input that a run may have sent.
 * @throws HomeportError `step_refused` instead of an error with status 400, which an SDK treats as the end of its run: the
 *   run would hang.
 */
function refusedToRuns<Value>(read: () => Value): Value {
  try {
    return read()
  } catch (error) {
    throw error instanceof HomeportError ? new HomeportError('step_refused', { problem: error.message }) : error
  }
}

const parseWait = (deps: EventDeps, event: string, body: unknown, origin: WaitOrigin) =>
  refusedToRuns(() => {
    checkWait(body)
    return readWait(deps, eventIdOf(event), body as WaitBody, origin)
  })

function readWait(deps: EventDeps, eventId: string, body: WaitBody, origin: WaitOrigin) {
  const now = deps.clock.now()
  const messageId = newId('msg_', now)
  const runId = runIdOf({ destination: body.url, headers: origin.headers, body: undefined })
  const record = recordOf(deps, body, origin, now)
  return { runId, eventId, messageId, record, deadline: now + timeoutMs(body.timeout), at: now }
}

async function wait(deps: EventDeps, accountId: string, request: ReturnType<typeof readWait>) {
  const { runId, messageId } = request
  const result = await deps.store.run(runsWait.wait, { accountId, ...request })
  switch (result.kind) {
    case 'missing':
      throw new HomeportError('run_unknown', { runId })
    case 'ended':
      throw new HomeportError('run_ended', { runId, state: result.state })
    case 'full': {
      const problem = 'The run has too many waits: together they take 8 MiB. Wait for fewer events at a time.'
      throw new HomeportError('step_refused', { problem })
    }
    case 'known':
      return { messageId: result.messageId }
    case 'waiting':
    case 'notified':
      deps.queue.offer(result.offers)
      return { messageId }
  }
}

function recordOf(deps: EventDeps, body: WaitBody, origin: WaitOrigin, now: number): WaitRecord {
  const { url, timeoutUrl = url, timeoutHeaders = {}, step } = body
  deps.queue.refuseForbidden([url, timeoutUrl], {})
  const record: WaitRecord = { step, url, timeoutUrl, headers: mergedNames(timeoutHeaders) }
  refuseLarge(record, 'The step of the wait')
  if (announces(origin.headers, 'WF_TriggerOnConfig')) return record
  // An SDK that repeats its settings sends them with the wait.
  const item: PublishItem = { destination: url, headers: singleValues(timeoutHeaders), body: undefined }
  return { ...record, delivery: readRunItem(item, { now, ip: origin.ip, limits: deps.limits }).meta.delivery }
}

function timeoutMs(text = DEFAULT_WAIT): number {
  const ms = parseDuration(/^\d{1,12}$/.test(text) ? `${text}s` : text)
  if (ms !== undefined && ms <= MAX_WAIT_MS) return ms
  throw new HomeportError('invalid_request', {
    problem: `timeout is ${JSON.stringify(text.slice(0, 80))}; send a duration of at most 366 days, such as 30s, 12h or 7d.`,
  })
}

/** Merges headers whose names differ only in case. */
function mergedNames(headers: Readonly<Record<string, readonly string[]>>): Record<string, readonly string[]> {
  return Object.fromEntries(Object.entries(headers).map(([name, values]) => [titleCase(name), values]))
}

function singleValues(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> {
  const single: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) single[name.toLowerCase()] = typeof value === 'string' ? value : value.join(', ')
  }
  return single
}

/** Decodes the rest of a path: event ids may contain slashes and spaces. The query of a webhook is for the run. */
function decodeEventId(rest: string): string {
  const eventId = decodeOrKeep(rest.split('?', 1)[0] ?? rest)
  if (eventId !== '') return eventId
  throw new HomeportError('invalid_request', { problem: 'The event id is missing. Put it at the end of the path.' })
}

/**
 * Refuses event ids that cannot be stored. PostgreSQL would refuse them too late, with a status that an SDK treats as the
 * end of its run.
 */
function storable(eventId: string): string {
  if (eventId.includes('\0'))
    throw new HomeportError('invalid_request', { problem: 'The event id contains the character U+0000. Remove it.' })
  if (Buffer.byteLength(eventId) <= MAX_EVENT_ID_BYTES) return eventId
  const problem = `The event id ${JSON.stringify(eventId.slice(0, 80))} is longer than ${MAX_EVENT_ID_BYTES} bytes. Use a shorter one.`
  throw new HomeportError('invalid_request', { problem })
}

const eventIdOf = (rest: string): string => storable(sentId(rest))

const TOKEN = new RegExp(`^${namePattern('qstash_token')}=`, 'i')

/** Decodes an event id. SDKs put ids into the path unescaped, so the query belongs to the id, except credentials. */
function sentId(rest: string): string {
  const mark = rest.indexOf('?')
  if (mark < 0) return decodeEventId(rest)
  const kept = rest
    .slice(mark + 1)
    .split('&')
    .filter((part) => !TOKEN.test(part))
  const eventId = decodeEventId(rest.slice(0, mark))
  return kept.length > 0 && kept.join('') !== '' ? `${eventId}?${decodeOrKeep(kept.join('&'))}` : eventId
}

function decodeOrKeep(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

type NotifyTarget = Pick<NotifyArgs, 'eventId' | 'runId'>

/** Finds the run and the event of a path. Event ids may contain slashes: the first segment is a run only if it exists. */
async function targetOf({ store }: EventDeps, accountId: string, whole: string): Promise<NotifyTarget> {
  const slash = whole.indexOf('/')
  if (slash < 0) return { eventId: whole }
  const runId = whole.slice(0, slash)
  const run = await store.run(runsRead.find, { accountId, runId })
  return run ? { runId, eventId: whole.slice(slash + 1) } : { eventId: whole }
}

async function callWebhook(
  deps: EventDeps,
  method: string,
  call: Call<{ userId: string; workflowRunId: string; eventId: string }, unknown, Uint8Array>,
) {
  const { userId, workflowRunId: runId, eventId } = call.params
  const accountId = deps.accountOfUser(userId)
  if (accountId === undefined) throw new HomeportError('webhook_not_found', {})
  const event = { accountId, runId, eventId: decodeEventId(eventId), by: 'webhook' as const }
  for await (const { kind } of notify(deps, { ...event, data: ownBytes(webhookData(deps, method, call)) })) {
    if (kind === 'unknown-run') throw new HomeportError('webhook_not_found', {})
  }
  return reply(200, { received: true as const })
}

/** The first entry of a header that proxies append to: that of the proxy nearest to the caller. */
function firstOf(forwarded: string | readonly string[] | undefined): string | undefined {
  const first = (typeof forwarded === 'string' ? forwarded : forwarded?.[0])?.split(',', 1)[0]?.trim()
  return first === '' ? undefined : first
}

/** Serializes a webhook request for the SDK, which rebuilds it: its URL must be the address that was called. */
function webhookData(
  { publicUrl }: EventDeps,
  method: string,
  { headers, target, body }: Call<unknown, unknown, Uint8Array>,
): Uint8Array {
  const known = new URL(publicUrl)
  const proto = firstOf(headers['x-forwarded-proto']) ?? known.protocol.slice(0, -1)
  const header = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [titleCase(name), Array.isArray(value) ? value : [value ?? '']]),
  )
  const host = firstOf(headers['x-forwarded-host']) ?? headers.host ?? known.host
  return textBytes(JSON.stringify({ method, url: target, proto, host, header, body: base64(body) }))
}

/** Limit of all waits in the answer to a notification, bytes. Waits that are not shown end too. */
const SHOWN_BYTES = 16 * 2 ** 20

/** The ended waits that the answer to a notification shows. */
class ShownWaits {
  readonly waits: ReturnType<typeof toNotified>[] = []
  #bytes = 0

  add(released: readonly Released[]): void {
    for (const one of released) {
      this.#bytes += one.wait.wait.length
      if (this.waits.length === MAX_WAITERS || this.#bytes > SHOWN_BYTES) return
      this.waits.push(toNotified(one))
    }
  }
}

const toAwaited = ({ eventId, waits, isMore, since, firstDeadline }: runsAwaited.AwaitedEvent) => ({
  eventId,
  waiting: waits,
  atLeast: isMore,
  since,
  firstTimeout: firstDeadline,
})

function toWaiter(row: WaitRow) {
  const { url, timeoutUrl, headers } = storedWait(row.wait)
  const plain = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]]))
  return {
    url,
    deadline: Math.floor(row.deadline / 1_000),
    headers: plain,
    timeoutUrl,
    timeoutBody: null,
    timeoutHeaders: plain,
  }
}

function toNotified({ wait: row, runId, createdAt }: Released) {
  return {
    waiter: toWaiter(row),
    messageId: row.message_id,
    deduplicated: false,
    error: '',
    workflowRunId: runId,
    workflowCreatedAt: createdAt,
  }
}
