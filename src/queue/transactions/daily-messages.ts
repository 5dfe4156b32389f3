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

// A request that began before midnight may be stored after one that began later, and the clock may be set back over
// midnight: neither begins the new day again. A day further ahead is that of a clock that was wrong.
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

/** Messages of an account with a limit that one request stores. */
export interface Counted {
  readonly quota: DailyQuota
  readonly count: number
  /** When the request came, Unix milliseconds. */
  readonly now: number
}

/**
 * Counts the messages of several requests of one account in order, as `countDaily` does one after the other. Requests of
 * one day with one limit are counted at once: if one of them is refused, all are.
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
 * Counts messages of an account with a limit, within the transaction that stores them: what is counted is what is stored,
 * whatever crashes. A day begins at midnight, UTC. Rolls the transaction back with `daily_limit` when they exceed the limit.
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
