import { sql } from 'kysely'
import { only, read, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'

type Count = { count: number }
type CountParams = { accountId: string; most: number }

// States are literals in the SQL text, because a partial index is used only when the text names its condition. Pending
// messages are read in the order of the index that holds nothing else.

const waitingMessages = query<CountParams, Count>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('messages')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('state', '=', sql.lit('pending'))
        .where('kind', '=', 'http')
        .orderBy('next_at')
        .limit(p.most)
        .as('counted'),
    )
    .select(({ fn }) => fn.countAll<number>().as('count')),
)
const deadMessages = query<CountParams, Count>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('messages')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('dlq_id', 'is not', null)
        .where('kind', '=', 'http')
        .limit(p.most)
        .as('counted'),
    )
    .select(({ fn }) => fn.countAll<number>().as('count')),
)
const unfinishedRuns = query<CountParams, Count>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('runs')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('state', '=', sql.lit('RUN_STARTED'))
        .limit(p.most)
        .as('counted'),
    )
    .select(({ fn }) => fn.countAll<number>().as('count')),
)
const deadRuns = query<CountParams, Count>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('runs')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('dlq_id', 'is not', null)
        .limit(p.most)
        .as('counted'),
    )
    .select(({ fn }) => fn.countAll<number>().as('count')),
)
const unfinishedActions = query<{ accountId: string }, Count>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('account_id', '=', p.accountId)
    .where('finished_at', 'is', null),
)
/** Counts of an account, for Home. */
export interface Counts {
  readonly waitingMessages: number
  readonly deadMessages: number
  readonly unfinishedRuns: number
  readonly deadRuns: number
  readonly unfinishedActions: number
}

/**
 * Counts messages, runs, dead letters and actions of an account in one snapshot.
 * @param args.most counting stops here, which bounds the cost.
 */
export const ofAccount = read('consoleCounts.ofAccount', function* (args: CountParams): Transaction<Counts> {
  const { accountId } = args
  return {
    waitingMessages: (yield* only(waitingMessages, args)).count,
    deadMessages: (yield* only(deadMessages, args)).count,
    unfinishedRuns: (yield* only(unfinishedRuns, args)).count,
    deadRuns: (yield* only(deadRuns, args)).count,
    unfinishedActions: (yield* only(unfinishedActions, { accountId })).count,
  }
})
