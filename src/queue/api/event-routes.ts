import { HomeportError } from '../../contract/errors/errors.js'
import { listEvents, listLogs } from '../../contract/queue/messages.js'
import { type Route, route } from '../../http/index.js'
import type { MessageFilter } from '../transactions/messages-filter.js'
import * as messagesRead from '../transactions/messages-read.js'
import { type ApiDeps, PLAIN } from './deps.js'
import { type EventView, eventsOf } from './event-view.js'
import { readSelection, type WireFilters } from './filters.js'

const DEFAULT_COUNT = 100
const LARGEST_COUNT = 1_000
const MESSAGES_PER_READ = 100
/** After this many reads that found messages, a request answers with what it has and a cursor. */
const MOST_READS = 20
/** The same for all reads: of many messages few may pass the filter. */
const MOST_LOOKS = 500
/** Entries repeat the body of their message: a page with this many characters of bodies is full. */
const PAGE_CHARACTERS = 8 * 2 ** 20

/** The query of a log request. */
interface WireEvents extends WireFilters {
  readonly state?: readonly string[] | undefined
  readonly order?: 'earliestFirst' | 'latestFirst' | undefined
  readonly count?: number | undefined
  readonly cursor?: string | undefined
  readonly trimBody?: number | undefined
}

/** A page of the log. */
interface EventPage {
  readonly events: EventView[]
  readonly cursor?: string
}

/**
 * Where a page ended: in the middle of the entries of this message, or after them. Entries come to the newer end of a
 * message while somebody turns the pages, so places in it are counted from its oldest entry.
 */
interface Place {
  readonly messageId: string
  /** How many entries have been given out (earliest first) or are left (latest first). 0: after all of them. */
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
    problem: `cursor is "${cursor.slice(0, 80)}"; send the cursor of the page before, or none.`,
  })
}

/** Collects entries message by message until a page is full. */
class EventReader {
  readonly #deps: ApiDeps
  readonly #wire: WireEvents
  readonly #states: ReadonlySet<string> | undefined
  readonly #count: number
  readonly #events: EventView[] = []
  #characters = 0
  #reads = 0
  #place: Place | undefined

  constructor(deps: ApiDeps, wire: WireEvents) {
    this.#deps = deps
    this.#wire = wire
    this.#states = statesOf(wire.state)
    this.#count = Math.min(wire.count ?? DEFAULT_COUNT, LARGEST_COUNT)
    this.#place = placeOf(wire.cursor)
  }

  async page(accountId: string, filter: MessageFilter): Promise<EventPage> {
    for (let looks = 0; looks < MOST_LOOKS && this.#reads < MOST_READS; looks++) {
      const more = await this.#readSome(accountId, filter)
      if (!more) return { events: this.#events }
      if (this.#isFull) break
    }
    const cursor = this.#place && `${this.#place.messageId}.${this.#place.entries}`
    return cursor === undefined ? { events: this.#events } : { events: this.#events, cursor }
  }

  /** Reads the next messages. Answers whether there may be more entries after what has been collected. */
  async #readSome(accountId: string, filter: MessageFilter): Promise<boolean> {
    const order = this.#wire.order === 'earliestFirst' ? 'oldestFirst' : 'newestFirst'
    // A message whose entries did not all fit is read again.
    const half = this.#place && this.#place.entries > 0 ? this.#place : undefined
    const after = half ? justBefore(half.messageId, order) : this.#place?.messageId
    // An entry is never older than its message, so only the later bound narrows the messages.
    const narrowed = { ...filter, fromDate: null }
    const bodies = this.#wire.trimBody === 0 ? 'none' : 'whole'
    const args = { accountId, kind: PLAIN, filter: narrowed, order, after, limit: MESSAGES_PER_READ, bodies } as const
    const { histories, next } = await this.#deps.store.run(messagesRead.history, args)
    if (histories.length > 0) this.#reads++
    for (const history of histories) {
      const { message_id: messageId } = history.message
      const entries = this.#wanted(eventsOf(history, this.#wire.trimBody ?? Number.MAX_SAFE_INTEGER), filter)
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
    this.#characters += entry.body.length + (entry.responseBody?.length ?? 0)
  }

  /** The entries of one message that were asked for, in the order that was asked for. */
  #wanted(entries: EventView[], filter: MessageFilter): EventView[] {
    const from = filter.fromDate ?? 0
    const to = filter.toDate ?? Number.MAX_SAFE_INTEGER
    const wanted = entries.filter(({ state, time }) => (this.#states?.has(state) ?? true) && time >= from && time <= to)
    return this.#wire.order === 'earliestFirst' ? wanted : wanted.reverse()
  }
}

/** The greatest text before an id, or the least one after it, so that a page can begin with the id itself. */
function justBefore(messageId: string, order: 'oldestFirst' | 'newestFirst'): string {
  if (order === 'newestFirst') return `${messageId}!`
  const last = messageId.charCodeAt(messageId.length - 1)
  return `${messageId.slice(0, -1)}${String.fromCharCode(last - 1)}~`
}

/** The log of messages, under both of its names. */
export function eventRoutes(deps: ApiDeps): Route[] {
  const answer = async (accountId: string, wire: WireEvents): Promise<EventPage & { logs: EventView[] }> => {
    const selection = readSelection(wire)
    if (selection.kind === 'nothing') return { events: [], logs: [] }
    const page = await new EventReader(deps, wire).page(accountId, selection.filter)
    return { ...page, logs: page.events }
  }
  return [
    route(listEvents, ({ caller, query }) => answer(caller.accountId, query)),
    route(listLogs, ({ caller, query }) => answer(caller.accountId, query)),
  ]
}
