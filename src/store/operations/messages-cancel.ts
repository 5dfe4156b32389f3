import { sql } from 'kysely'
import { all, first, read, type Transaction, write } from '../operation.js'
import { query } from '../query.js'
import type { DuePlace, PendingRow } from './messages.js'
import { type FilterParams, filterParams, type MessageFilter, passes } from './messages-filter.js'
import { endTurns } from './queue-turns.js'

/**
 * Canceling many messages is selecting them on the reading side, page by page, and ending them by number: a filter
 * that few messages pass makes the search long, and the search must not keep other writes waiting.
 */

/** Which pending messages are meant. */
export interface PendingSelector {
  readonly accountId: string
  readonly kind: string
  /** `held`: those that wait for their turn in a queue. */
  readonly state: 'pending' | 'held'
  /** With ids, only those messages; dates hold for the creation. */
  readonly filter: MessageFilter
  /** Only messages created up to then, so that the set does not grow while it is worked on. */
  readonly createdUpTo: number
  /** The page begins after this place in the order of falling due. */
  readonly after: DuePlace
  readonly limit: number
}

/** The first place in the order of falling due. */
export const FIRST_DUE: DuePlace = { nextAt: Number.MIN_SAFE_INTEGER, seq: 0 }

/** So many messages are looked at in one read, however few of them pass: other reads must not wait for the rest. */
const MOST_SCANNED = 2_000

/** The last place in the order of falling due. */
const LAST_DUE: DuePlace = { nextAt: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER }

type SelectQuery = FilterParams & {
  accountId: string
  kind: string
  state: 'pending' | 'held'
  createdUpTo: number
  nextAt: number
  seq: number
  limit: number
}
type BoundedQuery = SelectQuery & { untilAt: number; untilSeq: number }

const placeAhead = (state: 'pending' | 'held') =>
  query<DuePlace & { ahead: number }, DuePlace>(({ db, p }) =>
    db
      .selectFrom('messages')
      .select(['next_at as nextAt', 'seq'])
      .where(sql<boolean>`state = ${sql.lit(state)}`)
      .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
      .orderBy('next_at')
      .orderBy('seq')
      .offset(p.ahead)
      .limit(1),
  )

/** Those that wait for their turns are selected apart: their order is not one of falling due, and canceled first. */
const byFilter = (state: 'pending' | 'held') =>
  query<BoundedQuery, DuePlace>(({ db, p, d }) =>
    db
      .selectFrom('messages')
      .select(['next_at as nextAt', 'seq'])
      .where(sql<boolean>`state = ${sql.lit(state)}`)
      .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
      .where(sql<boolean>`(next_at, seq) <= (${p.untilAt}, ${p.untilSeq})`)
      // Written so that no index on the account is taken: that one would lead through all finished messages.
      .where(sql<boolean>`(account_id || '') = ${p.accountId}`)
      .where('kind', '=', p.kind)
      .where('created_at', '<=', p.createdUpTo)
      .where(passes(p, d, 'created_at'))
      .orderBy('next_at')
      .orderBy('seq')
      .limit(p.limit),
  )

const AHEAD = { pending: placeAhead('pending'), held: placeAhead('held') }
const BY_FILTER = { pending: byFilter('pending'), held: byFilter('held') }

const byIds = query<SelectQuery, DuePlace>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['next_at as nextAt', 'seq'])
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('message_id', p.messageIds))
    .where('finished_at', 'is', null)
    .where('state', '=', p.state)
    .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
    .where('kind', '=', p.kind)
    .orderBy('next_at')
    .orderBy('seq')
    .limit(p.limit),
)

/** A page of selected messages; there may be more when it is not full. */
export interface PendingPage {
  readonly places: readonly DuePlace[]
  /** Where the next page begins; `undefined` at the end. */
  readonly next: DuePlace | undefined
}

/** Pending messages of an account, in the order of falling due. */
export const selectPending = read(
  'messages.selectPending',
  function* (selector: PendingSelector): Transaction<PendingPage> {
    const { filter, after, ...rest } = selector
    const params = { ...filterParams(filter), ...after, ...rest }
    if (filter.messageIds.length > 0) return pageOf(yield* all(byIds, params), selector.limit, undefined)
    const ahead = yield* first(AHEAD[selector.state], { ...after, ahead: MOST_SCANNED })
    const { nextAt: untilAt, seq: untilSeq } = ahead ?? LAST_DUE
    return pageOf(yield* all(BY_FILTER[selector.state], { ...params, untilAt, untilSeq }), selector.limit, ahead)
  },
)

const pageOf = (places: readonly DuePlace[], limit: number, ahead: DuePlace | undefined): PendingPage => ({
  places,
  next: places.length < limit ? ahead : places.at(-1),
})

interface Ended {
  readonly seq: number
  readonly queue: string | null
  readonly slot_seq: number | null
}

const setCanceled = query<{ seqs: readonly number[]; at: number }, Ended>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({ state: 'canceled', finished_at: p.at })
    .where(d.inNumbers('seq', p.seqs))
    .where('finished_at', 'is', null)
    .returning(['seq', 'queue', 'slot_seq']),
)

/** What a cancel did. */
export interface Cancellation {
  /** Messages that it ended: memory has to drop them. */
  readonly seqs: readonly number[]
  /** Messages of queues whose turn has come by it. */
  readonly offers: readonly PendingRow[]
}

/** Cancels those of the selected messages that are not finished. */
export const cancel = write(
  'messages.cancel',
  function* (args: { seqs: readonly number[]; at: number }): Transaction<Cancellation> {
    const ended = yield* all(setCanceled, args)
    const turns = ended.map((row) => (row.queue === null ? row.slot_seq : row.seq)).filter((seq) => seq !== null)
    return { seqs: ended.map((row) => row.seq), offers: yield* endTurns(turns) }
  },
)
