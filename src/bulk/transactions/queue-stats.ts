/** Statistics of the queue of an account, counted from the messages and runs that are kept. */
import { sql } from 'kysely'
import { idsFrom } from '../../base/index.js'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'

/** Equal intervals of time. */
export interface StatsWindow {
  /** Unix milliseconds. */
  readonly from: number
  readonly stepMs: number
}

/** Messages of one interval that are of one kind and in one state. */
export interface MessageCount {
  /** Number of the interval, from 0. */
  readonly step: number
  readonly kind: string
  readonly state: string
  readonly count: number
  /** Bytes of their bodies. */
  readonly bytes: number
}

type Scope = StatsWindow & { accountId: string; fromId: string; most: number }

/** Cast because SQLite would divide with a fraction. */
const stepOf = (from: unknown, stepMs: unknown) => sql<number>`cast((created_at - ${from}) / ${stepMs} as bigint)`

const messages = query<Scope, MessageCount>(({ db, p }) => {
  const newest = db
    .selectFrom('messages')
    .select(['kind', 'state', stepOf(p.from, p.stepMs).as('step'), sql<number>`coalesce(length(body), 0)`.as('size')])
    .where('account_id', '=', p.accountId)
    .where('message_id', '>=', p.fromId)
    .where('created_at', '>=', p.from)
    .orderBy('message_id', 'desc')
    .limit(p.most)
    .as('newest')
  return db
    .selectFrom(newest)
    .select(['step', 'kind', 'state', ({ fn }) => fn.countAll<number>().as('count')])
    .select(sql<number>`cast(sum(size) as bigint)`.as('bytes'))
    .groupBy(['step', 'kind', 'state'])
})

const runs = query<Scope, { step: number; count: number }>(({ db, p }) => {
  const newest = db
    .selectFrom('runs')
    .select(['created_at', stepOf(p.from, p.stepMs).as('step')])
    .where('account_id', '=', p.accountId)
    .orderBy('seq', 'desc')
    .limit(p.most)
    .as('newest')
  return db
    .selectFrom(newest)
    .select(['step', ({ fn }) => fn.countAll<number>().as('count')])
    .where('created_at', '>=', p.from)
    .groupBy('step')
})

/** The result of `counts`. */
export interface QueueCounts {
  readonly messages: readonly MessageCount[]
  readonly runs: readonly { readonly step: number; readonly count: number }[]
}

/**
 * Counts messages and runs by interval.
 * @param args.most only this many of the newest messages, and of the newest runs, are counted, which bounds the cost.
 */
export const counts = read(
  'queueStats.counts',
  function* (args: StatsWindow & { accountId: string; most: number }): Transaction<QueueCounts> {
    // Ids begin with their time, so the existing index on ids also selects by time.
    const scope = { ...args, fromId: idsFrom('msg_', args.from) }
    // PostgreSQL answers sums and counts as texts where they are large.
    const counted = (yield* all(messages, scope)).map((row) => ({
      ...row,
      step: Number(row.step),
      count: Number(row.count),
      bytes: Number(row.bytes),
    }))
    const started = (yield* all(runs, scope)).map(({ step, count }) => ({ step: Number(step), count: Number(count) }))
    return { messages: counted, runs: started }
  },
)
