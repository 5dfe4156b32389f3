import { type RawBuilder, sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import { configUnder } from './flow-keys.js'
import { type MessageRow, type NewMessage, type PendingRow, withoutLargeBody } from './messages.js'
import { type FilterParams, filterParams, type MessageFilter, passes } from './messages-filter.js'
import { listedMessages, wholeMessage } from './messages-read.js'
import { contentBytes, firstFitting, inOrderOf, pageBatches } from './messages-sizes.js'
import { acceptMessages, offersOf } from './queue-turns.js'

/** Selects dead letters of an account, by ids or by a filter. */
export interface DeadSelector {
  readonly accountId: string
  readonly kind: string
  /** `undefined`: select by the filter. */
  readonly dlqIds: readonly string[] | undefined
  /** Dates apply to the time of the failure. */
  readonly filter: MessageFilter
  readonly order: DeadOrder
  /** The page begins after this dead letter. */
  readonly after: string | undefined
  readonly limit: number
}

/** A dead letter without its content, and the size of the content. */
export type DeadPlace = Pick<MessageRow, 'seq' | 'dlq_id'> & { readonly bytes: number }

/** A page of dead letters, and the cursor of the next page if there is one. */
export interface DeadPage<Letter = MessageRow> {
  readonly letters: readonly Letter[]
  readonly cursor: string | undefined
}

type DeadQuery = FilterParams &
  Place & { untilAt: number; untilSeq: number; accountId: string; kind: string; limit: number }

type DeadOrder = 'earliestFirst' | 'latestFirst'

/** Dead letters that one read searches, even if few of them match, unless the page is larger. */
const MAX_SEARCHED = 2_000

/** Position of a dead letter in the order of failures. */
interface Place {
  readonly afterAt: number
  readonly afterSeq: number
}

/** The condition that a dead letter comes after a place in this order. */
const behind = (order: DeadOrder, p: Place): RawBuilder<boolean> =>
  sql<boolean>`(finished_at, seq) ${order === 'earliestFirst' ? sql`>` : sql`<`} (${p.afterAt}, ${p.afterSeq})`

const aheadQuery = (order: DeadOrder) =>
  query<Place & { accountId: string; ahead: number }, Place>(({ db, p }) =>
    db
      .selectFrom('messages')
      .select([sql<number>`finished_at`.as('afterAt'), 'seq as afterSeq'])
      .where('dlq_id', 'is not', null)
      .where('account_id', '=', p.accountId)
      .where(behind(order, p))
      .orderBy('finished_at', order === 'earliestFirst' ? 'asc' : 'desc')
      .orderBy('seq', order === 'earliestFirst' ? 'asc' : 'desc')
      .offset(p.ahead)
      .limit(1),
  )

const AHEAD = { earliestFirst: aheadQuery('earliestFirst'), latestFirst: aheadQuery('latestFirst') }

const deadQuery = (order: DeadOrder) =>
  query<DeadQuery, DeadPlace>(({ db, p, d }) =>
    db
      .selectFrom('messages')
      .select(['seq', 'dlq_id', contentBytes])
      .where('dlq_id', 'is not', null)
      .where('account_id', '=', p.accountId)
      .where('kind', '=', p.kind)
      .where(behind(order, p))
      .where(
        sql<boolean>`(finished_at, seq) ${order === 'earliestFirst' ? sql`<=` : sql`>=`} (${p.untilAt}, ${p.untilSeq})`,
      )
      .where(passes(p, d, 'finished_at'))
      .orderBy('finished_at', order === 'earliestFirst' ? 'asc' : 'desc')
      .orderBy('seq', order === 'earliestFirst' ? 'asc' : 'desc')
      .limit(p.limit),
  )

const BY_FILTER = { earliestFirst: deadQuery('earliestFirst'), latestFirst: deadQuery('latestFirst') }

const FIRST_PLACE = { afterAt: 0, afterSeq: 0 }

interface DeadIdsQuery {
  afterAt: number
  afterSeq: number
  accountId: string
  kind: string
  seqs: readonly number[]
  ids: readonly string[]
}

const byIds = query<DeadIdsQuery, DeadPlace>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'dlq_id', contentBytes])
    .where(d.inNumbers('seq', p.seqs))
    .where(d.inTexts('dlq_id', p.ids))
    .where(d.alsoIs('account_id', p.accountId))
    .where('kind', '=', p.kind)
    .where(sql<boolean>`(finished_at, seq) > (${p.afterAt}, ${p.afterSeq})`)
    .orderBy('finished_at')
    .orderBy('seq'),
)

/** Position of a dead letter, from its id `<finished_at>-<seq>`. */
function placeOf(dlqId: string): Place {
  const [at, seq] = dlqId.split('-')
  return { afterAt: Number(at), afterSeq: Number(seq) }
}

/** Malformed ids match nothing, like unknown ones. */
function* lettersById(
  { accountId, kind, after }: DeadSelector,
  dlqIds: readonly string[],
): Transaction<DeadPage<DeadPlace>> {
  const seqs = dlqIds.map((dlqId) => placeOf(dlqId).afterSeq).filter((seq) => Number.isSafeInteger(seq))
  const place = after === undefined ? FIRST_PLACE : placeOf(after)
  return { letters: yield* all(byIds, { accountId, kind, seqs, ids: dlqIds, ...place }), cursor: undefined }
}

const EVER = Number.MAX_SAFE_INTEGER

/** The places between which the letters of a filter lie, in this order. */
function placesInTime(order: DeadOrder, { fromDate, toDate }: MessageFilter): { first: Place; last: Place } {
  const start = { afterAt: (fromDate ?? 0) - 1, afterSeq: EVER }
  const end = { afterAt: toDate ?? EVER, afterSeq: EVER }
  return order === 'earliestFirst' ? { first: start, last: end } : { first: end, last: start }
}

function isBehind(order: DeadOrder, one: Place, other: Place): boolean {
  const difference = one.afterAt - other.afterAt || one.afterSeq - other.afterSeq
  return order === 'earliestFirst' ? difference > 0 : difference < 0
}

/**
 * Selects one row more than a page holds, to know whether there is another page. It searches a bounded number of letters, so
 * that other reads do not wait long. If few of them match, the page is short and its cursor continues after the last one
 * searched.
 */
function* page(selector: DeadSelector): Transaction<DeadPage<DeadPlace>> {
  const { accountId, kind, dlqIds, order, after, filter, limit } = selector
  if (dlqIds) return yield* lettersById(selector, dlqIds)
  const range = placesInTime(order, filter)
  const given = after === undefined ? range.first : placeOf(after)
  const place = isBehind(order, given, range.first) ? given : range.first
  const ahead = yield* first(AHEAD[order], { ...place, accountId, ahead: Math.max(MAX_SEARCHED, limit + 1) - 1 })
  const more = ahead && isBehind(order, range.last, ahead) ? ahead : undefined
  const { afterAt: untilAt, afterSeq: untilSeq } = more ?? range.last
  const params = { ...filterParams(filter), ...place, untilAt, untilSeq, accountId, kind, limit: limit + 1 }
  const rows = yield* all(BY_FILTER[order], params)
  const letters = rows.slice(0, limit)
  if (rows.length > limit) return { letters, cursor: letters.at(-1)?.dlq_id ?? undefined }
  return { letters, cursor: more && `${more.afterAt}-${more.afterSeq}` }
}

/** A page of dead letters without content. A cursor must have the form `<number>-<number>`. */
export const deadLetters = read('messages.deadLetters', page)

const whole = query<{ seqs: readonly number[] }, MessageRow>(({ db, p, d }) =>
  db.selectFrom('messages').selectAll().where(d.inNumbers('seq', p.seqs)),
)

function* wholeLetters(places: readonly DeadPlace[]): Transaction<MessageRow[]> {
  if (places.length === 0) return []
  return inOrderOf(places, yield* all(whole, { seqs: places.map((place) => place.seq) }))
}

/** The part of a page that may be in memory at once. A shortened page has a cursor. */
function cutShort({ letters, cursor }: DeadPage<DeadPlace>): DeadPage<DeadPlace> {
  const fitting = firstFitting(letters)
  return { letters: fitting, cursor: fitting.length < letters.length ? (fitting.at(-1)?.dlq_id ?? undefined) : cursor }
}

/** A page of complete dead letters. It is shorter than the limit if the letters are large. */
export const wholePage = read('messages.wholeDeadLetters', function* (selector: DeadSelector): Transaction<DeadPage> {
  const { letters, cursor } = cutShort(yield* page(selector))
  return { letters: yield* listedMessages(yield* wholeLetters(letters)), cursor }
})

const stillDead = query<{ seqs: readonly number[] }, { seq: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('messages')
      .select('seq')
      .where(d.inNumbers('seq', p.seqs))
      .where('dlq_id', 'is not', null)
      .orderBy('seq'),
  ),
)

/** The numbers of a page of dead letters, and the cursor of the next page if there is one. */
export const deadSeqs = read('messages.deadSeqs', function* (selector: DeadSelector): Transaction<{
  seqs: number[]
  cursor: string | undefined
}> {
  const { letters, cursor } = yield* page(selector)
  return { seqs: letters.map((letter) => letter.seq), cursor }
})

/** Locks a page of dead letters. Letters that another transaction has just taken are left out. */
function* lockPage(selector: DeadSelector): Transaction<DeadPage<DeadPlace>> {
  const { letters, cursor } = yield* page(selector)
  const rows = letters.length > 0 ? yield* all(stillDead, { seqs: letters.map((letter) => letter.seq) }) : []
  const mine = new Set(rows.map((row) => row.seq))
  return { letters: letters.filter((letter) => mine.has(letter.seq)), cursor }
}

const clearDlqId = query<{ seqs: readonly number[] }>(({ db, p, d }) =>
  db.updateTable('messages').set({ dlq_id: null }).where(d.inNumbers('seq', p.seqs)).where('dlq_id', 'is not', null),
)

/** Number of deleted dead letters, and the cursor of the next page. */
export interface DeadDeletion {
  readonly deleted: number
  readonly cursor: string | undefined
}

/** Removes a page of messages from the dead letter queue. They stay in the logs as failed. */
export const deleteDeadLetters = write(
  'messages.deleteDeadLetters',
  function* (selector: DeadSelector): Transaction<DeadDeletion> {
    const { letters, cursor } = yield* lockPage(selector)
    if (letters.length === 0) return { deleted: 0, cursor }
    return { deleted: yield* change(clearDlqId, { seqs: letters.map((letter) => letter.seq) }), cursor }
  },
)

/** Deletes the dead letters among these messages, within another transaction. Returns their numbers. */
export function* deleteLetters(among: readonly number[]): Transaction<number[]> {
  const seqs = (yield* all(stillDead, { seqs: among })).map((row) => row.seq)
  if (seqs.length > 0) yield* change(clearDlqId, { seqs })
  return seqs
}

/** What a retry changes in the messages that it sends again. */
export interface Revision {
  readonly nextAt: number
  readonly maxRetries: number | undefined
  /** JSON of members that replace those of the stored configuration. */
  readonly config: string
  readonly flowKey: string | undefined
  readonly labels: string | undefined
}

/** Dead letters to send again. */
export interface RetryArgs {
  readonly selector: DeadSelector
  /** A fresh message id for each letter that a page may hold. */
  readonly ids: readonly string[]
  readonly at: number
  readonly revision: Revision
}

/** The configuration of the new message. It does not have the debounce or singleton key of the letter. */
function revisedConfig(letter: MessageRow, revision: Revision): object {
  const isSameKey = revision.flowKey === undefined || revision.flowKey === letter.flow_key
  const { rule: _, ...stored } = configUnder(letter.config, isSameKey)
  return { ...stored, ...JSON.parse(revision.config) }
}

function revive(letter: MessageRow, messageId: string, at: number, revision: Revision): NewMessage {
  const { account_id, kind, group_key, url, method, headers, body, caller_ip, host, path } = letter
  const { topic, endpoint, queue, schedule_id, partition } = letter
  return {
    message_id: messageId,
    account_id,
    kind,
    group_key,
    url,
    method,
    headers,
    body,
    config: JSON.stringify(revisedConfig(letter, revision)),
    max_retries: revision.maxRetries ?? letter.max_retries,
    next_at: revision.nextAt,
    created_at: at,
    labels: revision.labels ?? letter.labels,
    flow_key: revision.flowKey ?? letter.flow_key,
    caller_ip,
    host,
    path,
    topic,
    endpoint,
    queue,
    schedule_id,
    partition,
  }
}

/**
 * Sends a page of dead letters again as new messages with the original content, and removes the letters from the queue.
 * Returns the new message ids in the order of the letters.
 */
export const retryDeadLetters = write('messages.retryDeadLetters', function* (args: RetryArgs): Transaction<{
  messageIds: string[]
  offers: PendingRow[]
  cursor: string | undefined
}> {
  const taken = yield* lockPage(args.selector)
  // Letters selected by id are all sent again at once, because such a request has no pages.
  const { letters, cursor } = args.selector.dlqIds ? taken : cutShort(taken)
  return { ...(yield* sendAgain(letters, args)), cursor }
})

type Resending = Pick<RetryArgs, 'ids' | 'at' | 'revision'>

function* sendAgain(
  letters: readonly DeadPlace[],
  { ids, at, revision }: Resending,
): Transaction<{ messageIds: string[]; offers: PendingRow[] }> {
  const messageIds = ids.slice(0, letters.length)
  if (letters.length === 0) return { messageIds, offers: [] }
  yield* change(clearDlqId, { seqs: letters.map((letter) => letter.seq) })
  const offers: PendingRow[] = []
  let next = 0
  for (const batch of pageBatches(letters)) {
    // Damaged content must not be stored again with a checksum that matches.
    const fresh = (yield* wholeLetters(batch))
      .map(wholeMessage)
      .map((letter) => revive(letter, messageIds[next++] ?? '', at, revision))
    offers.push(...offersOf(fresh, yield* acceptMessages(fresh, at)).map(withoutLargeBody))
  }
  return { messageIds, offers }
}

const deadBySeq = query<{ seqs: readonly number[] }, DeadPlace>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('messages')
      .select(['seq', 'dlq_id', contentBytes])
      .where(d.inNumbers('seq', p.seqs))
      .where('dlq_id', 'is not', null)
      .orderBy('seq'),
  ),
)

/** Sends the dead letters among these messages again, within another transaction. Returns their numbers. */
export function* retryLetters(
  among: readonly number[],
  resending: Resending,
): Transaction<{ seqs: number[]; offers: PendingRow[] }> {
  const letters = yield* all(deadBySeq, { seqs: among })
  const { offers } = yield* sendAgain(letters, resending)
  return { seqs: letters.map((letter) => letter.seq), offers }
}
