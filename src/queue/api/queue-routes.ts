import { HomeportError } from '../../contract/errors/errors.js'
import {
  deleteQueue,
  getQueue,
  listQueues,
  MAX_PARALLEL,
  pauseQueue,
  putQueue,
  resumeQueue,
} from '../../contract/queue/queues.js'
import { type Route, route } from '../../http/index.js'
import { refuseOtherName } from '../publish/scope.js'
import { refuseSetting } from '../publish/setting-values.js'
import { NAME } from '../publish/settings.js'
import { ANY_MESSAGE } from '../transactions/messages-filter.js'
import type { CountBatch, QueueRow } from '../transactions/queues.js'
import * as queuesTransactions from '../transactions/queues.js'
import type { ApiDeps } from './deps.js'
import { longList, PAGE } from './long-list.js'
import { cancelAll } from './message-routes.js'

const view = (row: QueueRow, lag: number) => ({
  name: row.name,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  parallelism: row.parallelism,
  lag,
  paused: row.paused === 1,
})

/** Messages counted in one read. */
const COUNTED_AT_ONCE = 20_000

/** Queues counted in parallel. Other reads wait for at most this many counts. */
const LAGS_AT_ONCE = 50

/** Messages of a queue that have not ended. */
async function lagOf({ store }: ApiDeps, { account_id: accountId, name }: QueueRow): Promise<number> {
  let lag = 0
  for (let after: CountBatch['next'] = 0; after !== undefined; ) {
    const limit = COUNTED_AT_ONCE
    const batch: CountBatch = await store.run(queuesTransactions.countWaiting, { accountId, name, after, limit })
    lag += batch.count
    after = batch.next
  }
  return lag
}

/** The queues of an account, in pages. */
async function* allQueues(deps: ApiDeps, accountId: string) {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const args = { accountId, after, limit: PAGE.items }
    const rows: readonly QueueRow[] = await deps.store.run(queuesTransactions.list, args)
    const views: ReturnType<typeof view>[] = []
    for (let start = 0; start < rows.length; start += LAGS_AT_ONCE) {
      const some = rows.slice(start, start + LAGS_AT_ONCE)
      views.push(...(await Promise.all(some.map(async (row) => view(row, await lagOf(deps, row))))))
    }
    yield views
    after = rows.length === PAGE.items ? rows.at(-1)?.name : undefined
  }
}

async function setPaused({ store, clock, offer }: ApiDeps, accountId: string, name: string, paused: 0 | 1) {
  const offers = await store.run(queuesTransactions.setPaused, { accountId, name, paused, now: clock.now() })
  if (!offers) throw new HomeportError('queue_not_found', { name })
  offer(offers)
  return {}
}

/** The most messages that are cancelled in the transaction that deletes their queue. */
const MAX_CANCELLED_WITH_QUEUE = 1_000

/** Cancels the messages of a queue, including those that are published meanwhile, and deletes the queue. */
async function removeQueue(deps: ApiDeps, accountId: string, name: string): Promise<number> {
  const { store, clock } = deps
  for (let cancelled = 0; ; ) {
    const filter = { ...ANY_MESSAGE, queues: [name] }
    cancelled += await cancelAll(deps, { accountId, filter, most: Number.MAX_SAFE_INTEGER, scope: 'all' })
    if (await store.run(queuesTransactions.removeEmpty, { accountId, name })) return cancelled
    // Publishers may keep adding messages, so the rest is cancelled in the transaction that deletes the queue.
    const rest = { accountId, name, most: MAX_CANCELLED_WITH_QUEUE, at: clock.now() }
    const seqs = await store.run(queuesTransactions.removeWithRest, rest)
    if (seqs === undefined) continue
    if (seqs.length > 0) await deps.dropEverywhere({ seqs })
    return cancelled + seqs.length
  }
}

/** Queues: their settings, pause and resume. */
export function queueRoutes(deps: ApiDeps): Route[] {
  const { store, clock, offer } = deps
  return [
    route(putQueue, async ({ caller: { accountId }, body: { queueName: name, parallelism = 1, paused = false } }) => {
      if (!NAME.test(name)) refuseSetting('queueName', name, 'use letters, digits, - _ and . only')
      if (parallelism > MAX_PARALLEL)
        throw new HomeportError('setting_limit', {
          setting: 'parallelism',
          found: String(parallelism),
          limit: String(MAX_PARALLEL),
        })
      const args = { accountId, name, parallelism, paused: paused ? 1 : 0, now: clock.now() }
      offer(await store.run(queuesTransactions.upsert, args))
      return {}
    }),
    route(listQueues, ({ caller }) => longList(deps.clock, allQueues(deps, caller.accountId))),
    route(getQueue, async ({ caller: { accountId, scope }, params: { name } }) => {
      refuseOtherName(scope, 'queue', name)
      const row = await store.run(queuesTransactions.get, { accountId, name })
      if (!row) throw new HomeportError('queue_not_found', { name })
      return view(row, await lagOf(deps, row))
    }),
    route(deleteQueue, async ({ caller: { accountId }, params: { name } }) => ({
      cancelled: await removeQueue(deps, accountId, name),
    })),
    route(pauseQueue, ({ caller, params }) => setPaused(deps, caller.accountId, params.name, 1)),
    route(resumeQueue, ({ caller, params }) => setPaused(deps, caller.accountId, params.name, 0)),
  ]
}
