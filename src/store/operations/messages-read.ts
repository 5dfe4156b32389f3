import type { Selectable } from 'kysely'
import { all, first, read, type Transaction } from '../operation.js'
import { query } from '../query.js'
import type { MessageAttemptsTable } from '../schema/messages.js'
import type { MessageRow } from './messages.js'
import { type FilterParams, filterParams, type MessageFilter, passes } from './messages-filter.js'

/** A failed attempt as it is stored. */
export type AttemptRow = Selectable<MessageAttemptsTable>

/** A message with its failed attempts, oldest first, but without the last attempt: that stands in the message. */
export interface MessageHistory {
  readonly message: MessageRow
  readonly attempts: readonly AttemptRow[]
}

const byId = query<{ accountId: string; kind: string; messageId: string }, MessageRow>(({ db, p }) =>
  db
    .selectFrom('messages')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('message_id', '=', p.messageId)
    .where('kind', '=', p.kind),
)

/** One message of an account, in whatever state. */
export const message = read(
  'messages.message',
  function* (args: { accountId: string; kind: string; messageId: string }): Transaction<MessageRow | undefined> {
    return yield* first(byId, args)
  },
)

type HistoryQuery = FilterParams & { accountId: string; kind: string; after: string; limit: number }

type HistoryOrder = 'newestFirst' | 'oldestFirst'

/** With ids a message is looked up, without them the account's messages are walked over: two texts, two plans. */
const historyQuery = (order: HistoryOrder, by: 'ids' | 'filter') =>
  query<HistoryQuery, MessageRow>(({ db, p, d }) =>
    db
      .selectFrom('messages')
      .selectAll()
      .where('account_id', '=', p.accountId)
      .$if(by === 'ids', (builder) => builder.where(d.inTexts('message_id', p.messageIds)))
      .where('message_id', order === 'newestFirst' ? '<' : '>', p.after)
      .where('kind', '=', p.kind)
      .where(passes(p, d, 'created_at'))
      .orderBy('message_id', order === 'newestFirst' ? 'desc' : 'asc')
      .limit(p.limit),
  )

const HISTORIES = {
  newestFirst: { ids: historyQuery('newestFirst', 'ids'), filter: historyQuery('newestFirst', 'filter') },
  oldestFirst: { ids: historyQuery('oldestFirst', 'ids'), filter: historyQuery('oldestFirst', 'filter') },
}

const attemptsOf = query<{ seqs: readonly number[] }, AttemptRow>(({ db, p, d }) =>
  db
    .selectFrom('message_attempts')
    .selectAll()
    .where(d.inNumbers('message_seq', p.seqs))
    .orderBy('message_seq')
    .orderBy('retried'),
)

/** Above every id, which consist of ASCII letters, digits and `_`. */
const LAST_ID = '~'

/** Which page of an account's messages is wanted. */
export interface HistoryArgs {
  readonly accountId: string
  readonly kind: string
  readonly filter: MessageFilter
  readonly order: HistoryOrder
  /** The page begins after this message id; `undefined` for the first page. */
  readonly after: string | undefined
  readonly limit: number
}

/** Messages of an account by creation, with their failed attempts. Dates of the filter hold for the creation. */
export const history = read('messages.history', function* (args: HistoryArgs): Transaction<MessageHistory[]> {
  const { accountId, kind, limit } = args
  const after = args.after ?? (args.order === 'newestFirst' ? LAST_ID : '')
  const params = { ...filterParams(args.filter), accountId, kind, after, limit }
  const rows = yield* all(HISTORIES[args.order][args.filter.messageIds.length > 0 ? 'ids' : 'filter'], params)
  const retried = rows.filter((row) => row.retried > 0).map((row) => row.seq)
  const attempts = retried.length > 0 ? yield* all(attemptsOf, { seqs: retried }) : []
  return rows.map((row) => ({ message: row, attempts: attempts.filter((attempt) => attempt.message_seq === row.seq) }))
})
