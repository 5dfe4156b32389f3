import { sql } from 'kysely'
import { HomeportError } from '../../contract/errors/errors.js'
import { query } from '../../store/query.js'
import { only, refuse, type Transaction } from '../../store/statement.js'

/** Most messages that an account may publish a day. */
export interface DailyQuota {
  readonly accountId: string
  readonly limit: number
}

const DAY_MS = 86_400_000

// A request that began before midnight may be stored after one that began later, and the clock may be set back across
// midnight. In both cases the stored day goes on. A stored day further ahead comes from a wrong clock and is replaced.
const countOn = query<{ accountId: string; day: number; count: number }, { published: number }>(({ db, p }) =>
  db
    .insertInto('published_days')
    .values({ account_id: p.accountId, day: p.day, published: p.count })
    .onConflict((conflict) =>
      conflict.columns(['account_id']).doUpdateSet({
        published: sql<number>`case when published_days.day - excluded.day between 0 and 1
          then published_days.published + excluded.published else excluded.published end`,
        day: sql<number>`case when published_days.day - excluded.day = 1 then published_days.day else excluded.day end`,
      }),
    )
    .returning('published'),
)

/** The messages that one request stores for an account with a daily limit. */
export interface Counted {
  readonly quota: DailyQuota
  readonly count: number
  /** When the request came, Unix milliseconds. */
  readonly now: number
}

/**
 * Counts the messages of several requests of one account, in order. Successive requests of the same day with the same limit
 * are counted together, because a refusal of one rolls back all of them anyway.
 */
export function* countDailyEach(requests: readonly Counted[]): Transaction<void> {
  let sum: Counted | undefined
  for (const next of requests) {
    if (sum && dayOf(sum.now) === dayOf(next.now) && sum.quota.limit === next.quota.limit) {
      sum = { ...sum, count: sum.count + next.count }
      continue
    }
    if (sum) yield* countDaily(sum.quota, sum.count, sum.now)
    sum = next
  }
  if (sum) yield* countDaily(sum.quota, sum.count, sum.now)
}

const dayOf = (now: number): number => Math.floor(now / DAY_MS)

/**
 * Counts messages of an account with a limit, within the transaction that stores them, so the count
 * stays exact after a crash. A day begins at midnight, UTC. Rolls the transaction back with
 * `daily_limit` when the messages exceed the limit.
 */
export function* countDaily({ accountId, limit }: DailyQuota, count: number, now: number): Transaction<void> {
  if (count === 0) return
  const day = dayOf(now)
  const { published } = yield* only(countOn, { accountId, day, count })
  if (published <= limit) return
  const resetAt = (day + 1) * DAY_MS
  refuse(
    new HomeportError('daily_limit', {
      limit,
      wanted: count,
      remaining: Math.max(0, limit - (published - count)),
      resetAtSeconds: resetAt / 1_000,
      retryAfterSeconds: Math.max(1, Math.ceil((resetAt - now) / 1_000)),
    }),
  )
}
