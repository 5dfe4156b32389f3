import { type Selectable, sql } from 'kysely'
import { idsFrom } from '../../base/index.js'
import { intact, isIntact, reportChanged } from '../../store/checksum.js'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessageAttemptsTable } from '../../store/schema/messages.js'
import { all, first, type Transaction } from '../../store/statement.js'
import { type MessageRow, PENDING_COLUMNS, partitionColumn } from './messages.js'
import { type FilterParams, filterParams, type MessageFilter, passes } from './messages-filter.js'
import { contentBytes, firstFitting, headingBytes, inOrderOf } from './messages-sizes.js'

/** A failed attempt as it is stored. */
export type AttemptRow = Selectable<MessageAttemptsTable>

/** A message with its failed attempts, oldest first. The last attempt is stored in the message itself. */
export interface MessageHistory {
  readonly message: MessageRow
  readonly attempts: readonly AttemptRow[]
}

/** @throws HomeportError `store_damaged` when a checksum does not match. */
export function wholeMessage(row: MessageRow): MessageRow {
  intact(row.body, row.body_crc, 'messages', () => `the body of ${row.message_id}`)
  intact(row.response_body, row.response_crc, 'messages', () => `the response to ${row.message_id}`)
  return row
}

/** Messages for a list. A damaged body is left out and reported, so that it does not hide the other messages. */
export function* listedMessages(rows: readonly MessageRow[]): Transaction<MessageRow[]> {
  const listed: MessageRow[] = []
  for (const row of rows) listed.push(yield* listedMessage(row))
  return listed
}

function* listedMessage(row: MessageRow): Transaction<MessageRow> {
  const { body, body_crc, response_body, response_crc, message_id } = row
  const hasBody = isIntact(body, body_crc)
  const hasResponse = isIntact(response_body, response_crc)
  if (hasBody && hasResponse) return row
  if (!hasBody) yield* reportChanged('messages', `the body of ${message_id}`)
  if (!hasResponse) yield* reportChanged('messages', `the response to ${message_id}`)
  const error = `${row.error ?? ''} (content left out: it is damaged in the store of the server)`.trimStart()
  return { ...row, body: hasBody ? body : null, response_body: hasResponse ? response_body : null, error }
}

const byId = query<{ accountId: string; kind: string; messageId: string }, MessageRow>(({ db, p }) =>
  db
    .selectFrom('messages')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('message_id', '=', p.messageId)
    .where('kind', '=', p.kind),
)

/** One message of an account, in any state. */
export const message = read(
  'messages.message',
  function* (args: { accountId: string; kind: string; messageId: string }): Transaction<MessageRow | undefined> {
    const row = yield* first(byId, args)
    return row && wholeMessage(row)
  },
)

type HistoryQuery = FilterParams & {
  accountId: string
  kind: string
  after: string
  until: string
  activeFrom: number
  limit: number
}

type HistoryOrder = 'newestFirst' | 'oldestFirst'

/** Whether bodies of requests and responses are read. */
export type Bodies = 'whole' | 'none'

/** A message without its content, and the size of the content. */
type MessagePlace = Pick<MessageRow, 'seq' | 'retried'> & {
  readonly bytes: number
  readonly heading_bytes: number
  readonly attempt_bytes: number
}

/** Bytes of the stored responses to failed attempts, with their headers. */
const attemptBytes = sql<number>`case when retried > 0
  then (select coalesce(sum(coalesce(length(a.body), 0) + octet_length(a.headers)), 0) from message_attempts as a where a.message_seq = messages.seq)
  else 0 end`.as('attempt_bytes')

/**
 * With ids, messages are looked up. Without ids, the account's messages are walked. The two need different query plans.
 */
const historyQuery = (order: HistoryOrder, by: 'ids' | 'filter') =>
  query<HistoryQuery, MessagePlace>(({ db, p, d }) =>
    db
      .selectFrom('messages')
      .select(['seq', 'retried', contentBytes, headingBytes, attemptBytes])
      .where('account_id', '=', p.accountId)
      .$if(by === 'ids', (builder) => builder.where(d.inTexts('message_id', p.messageIds)))
      .where('message_id', order === 'newestFirst' ? '<' : '>', p.after)
      .where('message_id', order === 'newestFirst' ? '>=' : '<=', p.until)
      .where('kind', '=', p.kind)
      .where(({ eb, or }) =>
        or([
          eb('finished_at', 'is', null),
          eb('finished_at', '>=', p.activeFrom),
          eb('created_at', '>=', p.activeFrom),
        ]),
      )
      .where(passes(p, d, 'created_at'))
      .orderBy('message_id', order === 'newestFirst' ? 'desc' : 'asc')
      .limit(p.limit),
  )

const HISTORIES = {
  newestFirst: { ids: historyQuery('newestFirst', 'ids'), filter: historyQuery('newestFirst', 'filter') },
  oldestFirst: { ids: historyQuery('oldestFirst', 'ids'), filter: historyQuery('oldestFirst', 'filter') },
}

/** Rows scanned in one read, even if few of them match, so that other reads do not wait long. */
const MAX_SCANNED = 2_000

/** The last message that a read scans; no row when it reaches the end. */
const idAhead = (order: HistoryOrder) =>
  query<{ accountId: string; after: string; ahead: number }, { message_id: string }>(({ db, p }) =>
    db
      .selectFrom('messages')
      .select('message_id')
      .where('account_id', '=', p.accountId)
      .where('message_id', order === 'newestFirst' ? '<' : '>', p.after)
      .orderBy('message_id', order === 'newestFirst' ? 'desc' : 'asc')
      .offset(p.ahead)
      .limit(1),
  )

const ID_AHEAD = { newestFirst: idAhead('newestFirst'), oldestFirst: idAhead('oldestFirst') }

type OfSeqs = { seqs: readonly number[] }

const noBytes = sql<Uint8Array | null>`null`
const noChecksum = sql<number | null>`null`

const rowsOf = {
  whole: query<OfSeqs, MessageRow>(({ db, p, d }) =>
    db.selectFrom('messages').selectAll().where(d.inNumbers('seq', p.seqs)),
  ),
  none: query<OfSeqs, MessageRow>(({ db, p, d }) =>
    db
      .selectFrom('messages')
      .select([...PENDING_COLUMNS, 'state', 'path', 'finished_at', 'started_at', 'error', 'dlq_id'])
      .select(['response_status', 'response_headers', noBytes.as('response_body'), noBytes.as('body')])
      .select([noChecksum.as('body_crc'), noChecksum.as('response_crc')])
      .select(partitionColumn(d))
      .where(d.inNumbers('seq', p.seqs)),
  ),
}

const attemptsQuery = (bodies: Bodies) =>
  query<OfSeqs, AttemptRow>(({ db, p, d }) =>
    db
      .selectFrom('message_attempts')
      .select(['message_seq', 'retried', 'started_at', 'finished_at', 'status', 'headers', 'error', 'next_at'])
      .select(bodies === 'whole' ? 'body' : noBytes.as('body'))
      .where(d.inNumbers('message_seq', p.seqs))
      .orderBy('message_seq')
      .orderBy('retried'),
  )

const attemptsOf = { whole: attemptsQuery('whole'), none: attemptsQuery('none') }

/** The text before all ids in each order. Ids consist of ASCII letters, digits and `_`. */
const BEFORE_ALL = { newestFirst: '~', oldestFirst: '' }

/** An id may have been made this long before or after the time of the message's row. */
const ID_MARGIN_MS = 60_000

/**
 * The range of ids of the messages that were created in the time of the filter. Ids begin with their time.
 * @returns the id after which the range begins, and its last id, in the given order.
 */
function idsInTime(order: HistoryOrder, { fromDate, toDate }: MessageFilter): { after: string; until: string } {
  const earliest = fromDate === null ? BEFORE_ALL.oldestFirst : idsFrom('msg_', fromDate - ID_MARGIN_MS)
  const latest = toDate === null ? BEFORE_ALL.newestFirst : idsFrom('msg_', toDate + ID_MARGIN_MS)
  return order === 'newestFirst' ? { after: latest, until: earliest } : { after: earliest, until: latest }
}

const laterOf = (order: HistoryOrder, one: string, other: string): string =>
  one > other === (order === 'oldestFirst') ? one : other

/** Selects a page of an account's messages. */
export interface HistoryArgs {
  readonly accountId: string
  readonly kind: string
  readonly filter: MessageFilter
  readonly order: HistoryOrder
  /** The page begins after this message id; `undefined` for the first page. */
  readonly after: string | undefined
  readonly limit: number
  readonly bodies: Bodies
  /** Leaves out messages that were created and have ended before this time, Unix milliseconds. Absent: none. */
  readonly activeFrom?: number | undefined
}

/** A page of histories. A page that is not full may have a next one. */
export interface HistoryPage {
  readonly histories: readonly MessageHistory[]
  /** The next page begins after this message id; `undefined` at the end. */
  readonly next: string | undefined
}

/**
 * Messages of an account by creation, with their failed attempts. Dates of the filter apply to the creation. The page
 * is shorter than the limit when messages are large.
 */
export const history = read('messages.history', function* (args: HistoryArgs): Transaction<HistoryPage> {
  const { limit, bodies } = args
  const { found, end } = yield* placesOf(args)
  // PostgreSQL returns a sum as a string.
  const places = firstFitting(
    found.map(({ heading_bytes, attempt_bytes, ...place }) => {
      const own = bodies === 'whole' ? place.bytes : heading_bytes
      return { ...place, bytes: own + Number(attempt_bytes) }
    }),
  )
  const read = places.length > 0 ? yield* all(rowsOf[bodies], { seqs: places.map((place) => place.seq) }) : []
  const rows = bodies === 'whole' ? yield* listedMessages(read) : read
  const retried = places.filter((place) => place.retried > 0).map((place) => place.seq)
  const attempts = retried.length > 0 ? yield* all(attemptsOf[bodies], { seqs: retried }) : []
  const ofMessage = byMessage(attempts)
  const histories = inOrderOf(places, rows).map((row) => ({ message: row, attempts: ofMessage.get(row.seq) ?? [] }))
  const isFull = places.length < found.length || found.length === limit
  return { histories, next: isFull ? histories.at(-1)?.message.message_id : end }
})

/** Groups attempts by message. A page may hold a thousand messages with a hundred attempts each. */
function byMessage(attempts: readonly AttemptRow[]): ReadonlyMap<number, AttemptRow[]> {
  const groups = new Map<number, AttemptRow[]>()
  for (const attempt of attempts) {
    const group = groups.get(attempt.message_seq)
    if (group) group.push(attempt)
    else groups.set(attempt.message_seq, [attempt])
  }
  return groups
}

/** The matching messages among those scanned, and the last one scanned if there are more. */
function* placesOf({ accountId, kind, filter, order, after: from, limit, activeFrom = 0 }: HistoryArgs): Transaction<{
  found: readonly MessagePlace[]
  end: string | undefined
}> {
  const range = idsInTime(order, filter)
  const after = from === undefined ? range.after : laterOf(order, range.after, from)
  const by = filter.messageIds.length > 0 ? 'ids' : 'filter'
  const ahead =
    by === 'filter' ? yield* first(ID_AHEAD[order], { accountId, after, ahead: MAX_SCANNED - 1 }) : undefined
  // After the end of the range, nothing more matches.
  const isMore = ahead !== undefined && laterOf(order, ahead.message_id, range.until) === range.until
  const end = isMore ? ahead.message_id : undefined
  const until = end ?? range.until
  const bounds = { after, until, activeFrom, limit }
  const found = yield* all(HISTORIES[order][by], { ...filterParams(filter), accountId, kind, ...bounds })
  return { found, end }
}
