import { sql } from 'kysely'
import { all, read, type Transaction, write } from '../operation.js'
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

type SelectQuery = FilterParams & {
  accountId: string
  kind: string
  state: 'pending' | 'held'
  createdUpTo: number
  nextAt: number
  seq: number
  limit: number
}

/** Those that wait for their turns are selected apart: their order is not one of falling due, and canceled first. */
const byFilter = (state: 'pending' | 'held') =>
  query<SelectQuery, DuePlace>(({ db, p, d }) =>
    db
      .selectFrom('messages')
      .select(['next_at as nextAt', 'seq'])
      .where(sql<boolean>`state = ${sql.lit(state)}`)
      .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
      // Written so that no index on the account is taken: that one would lead through all finished messages.
      .where(sql<boolean>`(account_id || '') = ${p.accountId}`)
      .where('kind', '=', p.kind)
      .where('created_at', '<=', p.createdUpTo)
      .where(passes(p, d, 'created_at'))
      .orderBy('next_at')
      .orderBy('seq')
      .limit(p.limit),
  )

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

/** Pending messages of an account, in the order of falling due. */
export const selectPending = read('messages.selectPending', function* (selector: PendingSelector): Transaction<
  DuePlace[]
> {
  const { filter, after, ...rest } = selector
  return yield* all(filter.messageIds.length > 0 ? byIds : BY_FILTER[selector.state], {
    ...filterParams(filter),
    ...after,
    ...rest,
  })
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
