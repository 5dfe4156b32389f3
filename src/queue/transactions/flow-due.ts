import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { first, only, type Transaction } from '../../store/statement.js'
import type { DuePlace } from './messages.js'

/**
 * Counts the due messages of a flow-control key. Each read walks a bounded number of them, so that counting a million
 * delays no other read for long.
 */

interface Waiting {
  accountId: string
  key: string
  now: number
  nextAt: number
  seq: number
}

const dueAfter = ({ db, p }: Building<Waiting>) =>
  db
    .selectFrom('messages')
    .where('account_id', '=', p.accountId)
    .where('flow_key', '=', p.key)
    .where('finished_at', 'is', null)
    .where('state', '=', sql.lit('pending'))
    .where('next_at', '<=', p.now)
    .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)

const placeAhead = query<Waiting & { ahead: number }, DuePlace>((building) =>
  dueAfter(building)
    .select(['next_at as nextAt', 'seq'])
    .orderBy('next_at')
    .orderBy('seq')
    .offset(building.p.ahead)
    .limit(1),
)
const rest = query<Waiting, { count: number }>((building) =>
  dueAfter(building).select(({ fn }) => fn.countAll<number>().as('count')),
)

/** The place before every message. */
export const FIRST_DUE: DuePlace = { nextAt: -1, seq: -1 }

/** Some due messages of a key, counted; `next` is absent at the end. */
export interface DueCount {
  readonly count: number
  readonly next?: DuePlace
}

/** Counts the due messages of a key after a place, at most `limit`. */
export const count = read(
  'flowDue.count',
  function* (args: {
    accountId: string
    key: string
    now: number
    after: DuePlace
    limit: number
  }): Transaction<DueCount> {
    const { after, limit, ...of } = args
    const last = yield* first(placeAhead, { ...of, ...after, ahead: limit - 1 })
    return last ? { count: limit, next: last } : yield* only(rest, { ...of, ...after })
  },
  { turn: 'background' },
)
