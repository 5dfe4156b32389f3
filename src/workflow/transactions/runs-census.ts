import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { first, only, type Transaction } from '../../store/statement.js'

/** Counts of runs and waits for metrics, in bounded slices of an index; see `queue/transactions/messages-census.ts`. */

/** The rows that are counted. */
export type CountedRuns = 'active' | 'dead' | 'waits'

/** A place in the order of the slice's index. `account` and `at` are used where the index has them. */
export interface RunPlace {
  readonly account: string
  readonly at: number
  readonly seq: number
}

/** The place before every run. */
export const RUNS_START: RunPlace = { account: '', at: -1, seq: -1 }

type Args = { account: string; at: number; seq: number; limit: number }
type Place = { account?: string; at?: number; seq: number }
type Count = { count: number }

const activePlace = query<Args, Place>(({ db, p }) =>
  db
    .selectFrom('open_runs')
    .select(['account_id as account', 'seq'])
    .where(sql<boolean>`(account_id, seq) > (${p.account}, ${p.seq})`)
    .orderBy('account_id')
    .orderBy('seq')
    .limit(1)
    .offset(p.limit),
)
const activeRest = query<Args, Count>(({ db, p }) =>
  db
    .selectFrom('open_runs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where(sql<boolean>`(account_id, seq) > (${p.account}, ${p.seq})`),
)
const deadPlace = query<Args, Place>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['account_id as account', sql<number>`died_at`.as('at'), 'seq'])
    .where('dlq_id', 'is not', null)
    .where(sql<boolean>`(account_id, died_at, seq) > (${p.account}, ${p.at}, ${p.seq})`)
    .orderBy('account_id')
    .orderBy('died_at')
    .orderBy('seq')
    .limit(1)
    .offset(p.limit),
)
const deadRest = query<Args, Count>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('dlq_id', 'is not', null)
    .where(sql<boolean>`(account_id, died_at, seq) > (${p.account}, ${p.at}, ${p.seq})`),
)
const waitsPlace = query<Args, Place>(({ db, p }) =>
  db.selectFrom('run_waits').select(['seq']).where('seq', '>', p.seq).orderBy('seq').limit(1).offset(p.limit),
)
const waitsRest = query<Args, Count>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('seq', '>', p.seq),
)

const PLACES = { active: activePlace, dead: deadPlace, waits: waitsPlace }
const RESTS = { active: activeRest, dead: deadRest, waits: waitsRest }

function* sliceOf(args: {
  readonly what: CountedRuns
  readonly after: RunPlace
  readonly size: number
}): Transaction<{ readonly count: number; readonly next?: RunPlace }> {
  const { what, after, size } = args
  const last = yield* first<Args, Place>(PLACES[what], { ...after, limit: size - 1 })
  if (last) return { count: size, next: { account: '', at: -1, ...last } }
  return yield* only(RESTS[what], { ...after, limit: size })
}

/** Counts the runs or waits of one kind behind a place, `size` of them at most. */
export const slice = read('runsCensus.slice', sliceOf, { turn: 'background' })
