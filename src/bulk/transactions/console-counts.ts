import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { only, type Transaction } from '../../store/statement.js'

type Count = { count: number }
type CountParams = { accountId: string; most: number }

// States are literals in the SQL text, because a partial index is used only when the text names its condition. Pending
// messages are read in the order of the index that holds nothing else.

/**
 * Deliveries of runs are pending messages too. So the limit is on the rows that are read, even if few of them are plain
 * messages. Reading the kind from the row costs about a microsecond a row.
 */
const pendingMessages = query<CountParams, Count & { looked: number }>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('messages')
        .select('kind')
        .where('account_id', '=', p.accountId)
        .where('state', '=', sql.lit('pending'))
        .orderBy('next_at')
        .limit(p.most)
        .as('counted'),
    )
    .select(sql<number>`count(*) filter (where kind = 'http')`.as('count'))
    .select(({ fn }) => fn.countAll<number>().as('looked')),
)
/** Needs the index only, not the kind: dead letters of this table are plain messages, because runs have their own. */
const deadMessages = query<CountParams, Count>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('messages')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('dlq_id', 'is not', null)
        .limit(p.most)
        .as('counted'),
    )
    .select(({ fn }) => fn.countAll<number>().as('count')),
)
const activeRuns = query<CountParams, Count>(({ db, p }) =>
  db
    .selectFrom(
      db.selectFrom('open_runs').select('seq').where('account_id', '=', p.accountId).limit(p.most).as('counted'),
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
const activeActions = query<{ accountId: string }, Count>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('account_id', '=', p.accountId)
    .where('finished_at', 'is', null),
)
/** Counts of an account, for Home. */
export interface Counts {
  readonly pendingMessages: number
  /** Set if there may be more than `pendingMessages`. */
  readonly morePending?: true
  readonly deadMessages: number
  readonly activeRuns: number
  readonly deadRuns: number
  readonly activeActions: number
}

/** Pending rows that the first query reads. */
const FIRST_LOOK = 2_000

/** Counts pending messages. Reads no further if most pending rows belong to runs, because it would find few messages. */
function* countPending({ accountId, most }: CountParams): Transaction<Pick<Counts, 'pendingMessages' | 'morePending'>> {
  const some = Math.min(most, FIRST_LOOK)
  const first = yield* only(pendingMessages, { accountId, most: some })
  const isAll = Number(first.looked) < some
  const isOfRuns = Number(first.count) * 2 < Number(first.looked)
  const found = isAll || isOfRuns || some === most ? first : yield* only(pendingMessages, { accountId, most })
  const isMore = !isAll && (found === first || Number(found.looked) >= most)
  return { pendingMessages: Number(found.count), ...(isMore && { morePending: true }) }
}

/**
 * Counts messages, runs, dead letters and actions of an account in one snapshot.
 * @param args.most counting stops here, which bounds the cost.
 */
export const ofAccount = read('consoleCounts.ofAccount', function* (args: CountParams): Transaction<Counts> {
  const { accountId } = args
  return {
    ...(yield* countPending(args)),
    deadMessages: (yield* only(deadMessages, args)).count,
    activeRuns: (yield* only(activeRuns, args)).count,
    deadRuns: (yield* only(deadRuns, args)).count,
    activeActions: (yield* only(activeActions, { accountId })).count,
  }
})
