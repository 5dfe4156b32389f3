import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { first, only, type Transaction } from '../../store/statement.js'
import type { DuePlace } from './messages.js'

/**
 * Counts of messages for metrics. Each read walks a bounded slice of a partial index, so that counting millions delays no
 * other read for long. States are literals in the SQL text, because a partial index is used only when the text names its
 * condition.
 */

/** What is counted. Each has an index of its own. */
export type CountedMessages = 'pending' | 'held' | 'dead'

/** A place in the order of the slice's index. `account` only orders dead letters. */
export interface CensusPlace extends DuePlace {
  readonly account: string
}

/** The place before every message. */
export const CENSUS_START: CensusPlace = { account: '', nextAt: -1, seq: -1 }

/** A counted slice; `next` is absent when it was the last one. */
export interface CensusSlice {
  readonly count: number
  readonly next?: CensusPlace
}

type Args = { account: string; nextAt: number; seq: number; limit: number }
type Count = { count: number }

const place = (state: 'pending' | 'held') =>
  query<Args, DuePlace>(({ db, p }) =>
    db
      .selectFrom('messages')
      .select(['next_at as nextAt', 'seq'])
      .where(sql<boolean>`state = ${sql.lit(state)}`)
      .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
      .orderBy('next_at')
      .orderBy('seq')
      .limit(1)
      .offset(p.limit),
  )

const rest = (state: 'pending' | 'held') =>
  query<Args, Count>(({ db, p }) =>
    db
      .selectFrom('messages')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where(sql<boolean>`state = ${sql.lit(state)}`)
      .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`),
  )

const placeOfDead = query<Args, CensusPlace>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['account_id as account', sql<number>`finished_at`.as('nextAt'), 'seq'])
    .where('dlq_id', 'is not', null)
    .where(sql<boolean>`(account_id, finished_at, seq) > (${p.account}, ${p.nextAt}, ${p.seq})`)
    .orderBy('account_id')
    .orderBy('finished_at')
    .orderBy('seq')
    .limit(1)
    .offset(p.limit),
)

const restOfDead = query<Args, Count>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('dlq_id', 'is not', null)
    .where(sql<boolean>`(account_id, finished_at, seq) > (${p.account}, ${p.nextAt}, ${p.seq})`),
)

const PLACES = { pending: place('pending'), held: place('held'), dead: placeOfDead }
const RESTS = { pending: rest('pending'), held: rest('held'), dead: restOfDead }

function* sliceOf(args: {
  readonly what: CountedMessages
  readonly after: CensusPlace
  readonly size: number
}): Transaction<CensusSlice> {
  const { what, after, size } = args
  // If the place of message number `size` exists, the slice is full.
  const last = yield* first<Args, DuePlace & { account?: string }>(PLACES[what], { ...after, limit: size - 1 })
  if (last) return { count: size, next: { account: '', ...last } }
  return yield* only(RESTS[what], { ...after, limit: size })
}

/** Counts messages of one state after a place, at most `size`. */
export const slice = read('messagesCensus.slice', sliceOf, { turn: 'background' })

/** When a message is due. A priority may have moved its `next_at` to before its creation. */
const DUE = sql<number>`case when messages.next_at < messages.created_at then messages.created_at else messages.next_at end`

const earliestMessage = query<Record<never, never>, { at: number }>(({ db }) =>
  db
    .selectFrom('messages')
    .select(DUE.as('at'))
    .where(sql<boolean>`state = 'pending'`)
    .orderBy('next_at')
    .orderBy('seq')
    .limit(1),
)

/** Probes the index once for each account. A read in due order would pass every message of the excepted accounts. */
const earliestExcept = query<{ except: readonly string[] }, { at: number | null }>(({ db, p, d }) =>
  db
    .selectFrom('accounts')
    .select(
      sql<number | null>`min((select ${DUE} from messages
        where messages.account_id = accounts.account_id and messages.state = 'pending'
        order by messages.next_at, messages.seq limit 1))`.as('at'),
    )
    .where(sql<boolean>`not (${d.inTexts('accounts.account_id', p.except)})`),
)

const earliestSchedule = query<Record<never, never>, { at: number | null }>(({ db }) =>
  db
    .selectFrom('schedules')
    .select(({ fn }) => fn.min<number | null>('next_at').as('at'))
    .where(sql<boolean>`paused = 0`)
    .where('next_at', 'is not', null),
)

/**
 * When the first pending message and the first fire of a schedule are due, Unix milliseconds; `null` for none.
 * `except`: held accounts, whose messages are not delivered now.
 */
export const earliest = read(
  'messagesCensus.earliest',
  function* (args: {
    readonly except: readonly string[]
  }): Transaction<{ readonly message: number | null; readonly schedule: number | null }> {
    const message = args.except.length === 0 ? yield* first(earliestMessage, {}) : yield* first(earliestExcept, args)
    return { message: message?.at ?? null, schedule: (yield* only(earliestSchedule, {})).at }
  },
)
