import type { Static } from 'typebox'
import { charactersIn, timeOfId } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EVENT_STATES, Event } from '../../contract/queue/fields.js'
import { listEvents, listLogs } from '../../contract/queue/messages.js'
import { type Route, route } from '../../http/index.js'
import type { MessageFilter } from '../transactions/messages-filter.js'
import type { AttemptRow, MessageHistory } from '../transactions/messages-read.js'
import * as messagesRead from '../transactions/messages-read.js'
import { dueOf } from '../transactions/priority.js'
import { type ApiDeps, PLAIN } from './deps.js'
import { checkUnit, readSelection, type WireFilters } from './filters.js'
import { groupByMessage, type MessageLogView } from './grouped-events.js'
import {
  bodyBase64,
  callbackHeaders,
  mutable,
  redactHeaders,
  settingMembers,
  storedConfig,
  storedHeaders,
} from './message-view.js'

/** An entry of the log as the wire shows it. */
export type EventView = Static<typeof Event>
/** The state of an entry. */
export type EventState = (typeof EVENT_STATES)[number]

type LogEntry = Pick<EventView, 'time' | 'state'> & Partial<EventView>

/** The response to an attempt, from either table. */
interface AttemptResponse {
  readonly status: number
  readonly headers: string | null
  readonly body: Uint8Array | null
  readonly error: string | null
}

function responseMembers({ status, headers, body, error }: AttemptResponse, maxBytes: number): Partial<EventView> {
  if (status === 0) return error === null ? {} : { error }
  const responseHeaders = mutable(storedHeaders(headers))
  return {
    responseStatus: status,
    responseHeaders,
    responseHeader: responseHeaders,
    ...(body && { responseBody: Buffer.from(body.subarray(0, maxBytes)).toString('base64') }),
  }
}

/** Why an attempt failed. */
function errorOf({ status, error }: AttemptResponse): string {
  return error ?? `the destination responded with status ${status}`
}

function failedAttempt(attempt: AttemptRow, maxBytes: number): LogEntry[] {
  const shown = { ...responseMembers(attempt, maxBytes), error: errorOf(attempt), nextDeliveryTime: attempt.next_at }
  return [
    { time: attempt.started_at, state: 'ACTIVE' },
    { time: attempt.finished_at, state: 'ERROR', ...shown },
    { time: attempt.finished_at, state: 'RETRY', ...shown },
  ]
}

/** Entries for the end of a message; none while it is pending. */
function endEntries({ message }: MessageHistory, maxBytes: number): LogEntry[] {
  const time = message.finished_at ?? 0
  const { response_status: status, response_headers: headers, response_body: body, error } = message
  const answer: AttemptResponse = { status: status ?? 0, headers, body, error }
  const active: LogEntry = { time: message.started_at ?? time, state: 'ACTIVE' }
  switch (message.state) {
    case 'held':
    case 'pending':
      return []
    case 'delivered':
      return [active, { time, state: 'DELIVERED', ...responseMembers(answer, maxBytes) }]
    case 'failed': {
      const shown = { ...responseMembers(answer, maxBytes), error: errorOf(answer) }
      return [active, { time, state: 'ERROR', ...shown }, { time, state: 'FAILED', ...shown }]
    }
    case 'canceled':
      return [
        { time, state: 'CANCEL_REQUESTED' },
        { time, state: 'CANCELED', ...(error !== null && { error }) },
      ]
  }
}

/**
 * The log of a message, oldest entry first. Nothing is stored for it: it is derived from the message and its failed
 * attempts (reference queue 3.5).
 * @param maxBytes bodies are cut to this length.
 */
function eventsOf(history: MessageHistory, maxBytes: number): EventView[] {
  const { message, attempts } = history
  const config = storedConfig(message.config)
  const shared = {
    messageId: message.message_id,
    url: message.url,
    method: message.method,
    header: mutable(redactHeaders(storedHeaders(message.headers), config.redact)),
    body: bodyBase64(message, config, maxBytes),
    maxRetries: message.max_retries,
    ...settingMembers(message, config),
    ...(config.retryDelay !== undefined && { retryDelayExpr: config.retryDelay }),
    ...(config.callback && { callbackHeaders: callbackHeaders(config.callback, config) }),
    ...(config.failureCallback && { failureCallbackHeaders: callbackHeaders(config.failureCallback, config) }),
  }
  const entries: LogEntry[] = [
    {
      time: message.created_at,
      state: 'CREATED',
      ...(message.state === 'pending' && {
        nextDeliveryTime: dueOf({ nextAt: message.next_at, createdAt: message.created_at }),
      }),
    },
    ...attempts.flatMap((attempt) => failedAttempt(attempt, maxBytes)),
    ...endEntries(history, maxBytes),
  ]
  return entries.map((entry) => ({ ...shared, ...entry }))
}

const DEFAULT_COUNT = 100
const MAX_COUNT = 1_000
const MESSAGES_PER_READ = 100
/**
 * Most reads of one request, so that no request takes long when few of many messages match the filter. After these
 * reads, the reply has the entries found so far, and a cursor.
 */
const MAX_READS = 10
/** Entries repeat the body and the headers of their message. A page with this many characters of text is full. */
const PAGE_CHARACTERS = 8 * 2 ** 20

/** Query of a log request. */
interface WireEvents extends WireFilters {
  readonly state?: readonly string[] | undefined
  readonly order?: 'earliestFirst' | 'latestFirst' | undefined
  readonly count?: number | undefined
  readonly cursor?: string | undefined
  readonly trimBody?: number | undefined
  readonly groupBy?: 'messageId' | undefined
}

/** A page of the log. */
interface EventPage {
  readonly events: EventView[]
  readonly cursor?: string
  readonly searchedTo?: number
}

interface LogAnswer extends EventPage {
  readonly logs: EventView[]
  readonly messages?: MessageLogView[]
}

/**
 * Where a page ended: within the entries of this message, or after them. Between two requests, new entries are added at the
 * newer end of a message, so positions count from its oldest entry.
 */
interface Place {
  readonly messageId: string
  /** Entries already returned (earliest first) or still to return (latest first). 0: after all of them. */
  readonly entries: number
}

const IN_PROGRESS = ['ACTIVE', 'RETRY', 'ERROR']

function statesOf(states: readonly string[] | undefined): ReadonlySet<string> | undefined {
  if (states === undefined) return undefined
  const spelt = (state: string): readonly string[] => {
    if (state === 'IN_PROGRESS') return IN_PROGRESS
    return [state === 'CANCELLED' ? 'CANCELED' : state]
  }
  return new Set(states.flatMap(spelt))
}

function placeOf(cursor: string | undefined): Place | undefined {
  if (cursor === undefined || cursor === '') return undefined
  const parts = /^([\w-]{1,64})\.(\d{1,6})$/.exec(cursor)
  if (parts?.[1] !== undefined) return { messageId: parts[1], entries: Number(parts[2]) }
  throw new HomeportError('invalid_request', {
    problem: `cursor is "${cursor.slice(0, 80)}"; send the cursor of the previous page, or none for the first page.`,
  })
}

/** A cursor that is a time in milliseconds. Other cursors begin with a message id, and thus with letters. */
const TIME = /^\d{1,15}$/

/**
 * Turns a cursor in Unix milliseconds into a date filter: the log up to that time, or with `earliestFirst` from that
 * time on. The SDK describes cursors like that, and its example begins with the current time.
 */
function withoutTimeCursor(wire: WireEvents): WireEvents {
  const { cursor, order, ...rest } = wire
  if (cursor === undefined || !TIME.test(cursor)) return wire
  const at = Number(cursor)
  checkUnit('cursor', at)
  if (order === 'earliestFirst') return { ...rest, order, fromDate: Math.max(at, wire.fromDate ?? at) }
  return { ...rest, toDate: Math.min(at, wire.toDate ?? at) }
}

/** Collects entries message by message until the page is full. */
class EventReader {
  readonly #deps: ApiDeps
  readonly #wire: WireEvents
  readonly #states: ReadonlySet<string> | undefined
  readonly #count: number
  readonly #events: EventView[] = []
  #characters = 0
  #place: Place | undefined

  constructor(deps: ApiDeps, wire: WireEvents) {
    this.#deps = deps
    this.#wire = wire
    this.#states = statesOf(wire.state)
    this.#count = Math.min(wire.count ?? DEFAULT_COUNT, MAX_COUNT)
    this.#place = placeOf(wire.cursor)
  }

  async page(accountId: string, filter: MessageFilter): Promise<EventPage> {
    for (let reads = 0; reads < MAX_READS; reads++) {
      const more = await this.#readSome(accountId, filter)
      if (!more) return { events: this.#events }
      if (this.#isFull) break
    }
    if (this.#place === undefined) return { events: this.#events }
    const { messageId, entries } = this.#place
    const searchedTo = this.#isFull ? undefined : timeOfId('msg_', messageId)
    const cursor = `${messageId}.${entries}`
    return { events: this.#events, cursor, ...(searchedTo !== undefined && { searchedTo }) }
  }

  /** Reads the next messages. Returns whether there may be more entries after these. */
  async #readSome(accountId: string, filter: MessageFilter): Promise<boolean> {
    const order = this.#wire.order === 'earliestFirst' ? 'oldestFirst' : 'newestFirst'
    // Read a message again if not all of its entries fit into the page before.
    const half = this.#place && this.#place.entries > 0 ? this.#place : undefined
    const after = half ? justBefore(half.messageId, order) : this.#place?.messageId
    // A message that was created before `fromDate` may have later entries, until it has ended.
    const activeFrom = filter.fromDate ?? undefined
    const narrowed = { ...filter, fromDate: null }
    const bodies = this.#wire.trimBody === 0 ? 'none' : 'whole'
    const page = { order, after, limit: MESSAGES_PER_READ, bodies, activeFrom } as const
    const args = { accountId, kind: PLAIN, filter: narrowed, ...page }
    const { histories, next } = await this.#deps.store.run(messagesRead.history, args)
    for (const history of histories) {
      const { message_id: messageId } = history.message
      const entries = this.#matching(eventsOf(history, this.#wire.trimBody ?? Number.MAX_SAFE_INTEGER), filter)
      const isHalf = half?.messageId === messageId
      const first = isHalf ? (order === 'oldestFirst' ? half.entries : Math.max(0, entries.length - half.entries)) : 0
      let end = first
      while (end < entries.length && !this.#isFull) this.#add(entries[end++] as EventView)
      const left = entries.length - end
      this.#place = { messageId, entries: order === 'oldestFirst' && left > 0 ? end : left }
      if (this.#isFull) return true
    }
    if (next !== undefined) this.#place = { messageId: next, entries: 0 }
    return next !== undefined
  }

  get #isFull(): boolean {
    return this.#events.length >= this.#count || this.#characters >= PAGE_CHARACTERS
  }

  #add(entry: EventView): void {
    this.#events.push(entry)
    this.#characters += charactersIn(entry)
  }

  /** The entries of one message that match, in the requested order. */
  #matching(entries: EventView[], filter: MessageFilter): EventView[] {
    const from = filter.fromDate ?? 0
    const to = filter.toDate ?? Number.MAX_SAFE_INTEGER
    const matching = entries.filter(
      ({ state, time }) => (this.#states?.has(state) ?? true) && time >= from && time <= to,
    )
    return this.#wire.order === 'earliestFirst' ? matching : matching.reverse()
  }
}

/** The greatest text before an id, or the least one after it, so that a page can start with the id itself. */
function justBefore(messageId: string, order: 'oldestFirst' | 'newestFirst'): string {
  if (order === 'newestFirst') return `${messageId}!`
  const last = messageId.charCodeAt(messageId.length - 1)
  return `${messageId.slice(0, -1)}${String.fromCharCode(last - 1)}~`
}

/** The log of messages, under both of its names. */
export function eventRoutes(deps: ApiDeps): Route[] {
  const answer = async (accountId: string, given: WireEvents): Promise<LogAnswer> => {
    const wire = withoutTimeCursor(given)
    const selection = readSelection(wire)
    if (selection.kind === 'nothing') return { events: [], logs: [], ...(wire.groupBy && { messages: [] }) }
    const page = await new EventReader(deps, wire).page(accountId, selection.filter)
    if (wire.groupBy) return { ...page, events: [], logs: [], messages: groupByMessage(page.events) }
    // The original's MCP server asks for one message by its id, and reads `messages`.
    const isOne = wire.messageId?.length === 1
    return { ...page, logs: page.events, ...(isOne && { messages: groupByMessage(page.events) }) }
  }
  return [
    route(listEvents, ({ caller, query }) => answer(caller.accountId, query)),
    route(listLogs, ({ caller, query }) => answer(caller.accountId, query)),
  ]
}
