import { DEFAULT_STATS_PERIOD, getDatabaseStats, getMetrics } from '../../contract/databases/stats.js'
import { type Route, reply, route } from '../../http/index.js'
import { METRICS_CONTENT_TYPE, processMetrics, renderMetrics } from '../../telemetry/index.js'
import { databaseMetrics } from './metrics.js'
import { readStats } from './stats.js'
import type { Usage } from './usage.js'

/** What the routes need besides the usage. */
export interface UsageRouteParts {
  readonly usage: Usage
  /** Whether the engines of a database run or are about to. */
  readonly isAwake: (databaseId: string) => boolean
}

/** The operations of the management API on usage (reference redis 1.8). */
export function usageRoutes({ usage, isAwake }: UsageRouteParts): Route[] {
  return [
    route(getMetrics, async ({ caller }) => {
      const own = usage.books.filter(({ row }) => row.account_id === caller.accountId)
      const metered = own.map((book) => ({ book, isAwake: isAwake(book.row.database_id) }))
      const text = await renderMetrics([...processMetrics(), ...databaseMetrics(metered, usage.nowMs)])
      return reply(200, Buffer.from(text), { 'content-type': METRICS_CONTENT_TYPE })
    }),
    route(getDatabaseStats, ({ caller, params, query }) =>
      readStats(usage, { accountId: caller.accountId, databaseId: params.id }, query.period ?? DEFAULT_STATS_PERIOD),
    ),
  ]
}
