/**
 * The queue of an account in the management API: its tokens, its settings and its statistics. It is in `server/` because
 * it needs accounts, messages and runs.
 */
import { networkInterfaces } from 'node:os'
import type { Accounts } from '../accounts/index.js'
import { goTime } from '../base/index.js'
import * as consoleCounts from '../bulk/transactions/console-counts.js'
import * as queueStats from '../bulk/transactions/queue-stats.js'
import type { Config } from '../config/index.js'
import { MAX_COUNTED } from '../contract/console/console.js'
import { DEFAULT_STATS_PERIOD, STATS_POINTS, type StatsPeriod } from '../contract/databases/stats.js'
import { HomeportError } from '../contract/errors/errors.js'
import {
  disableQueueProductionPack,
  enableQueueProductionPack,
  getOwnQueueAccount,
  getQueueAccount,
  getQueueAddresses,
  getQueueStats,
  listQueueAccounts,
  moveQueueToTeam,
  QUEUE_REGIONS,
  type QueueAccount,
  type QueueStats,
  rotateQueueToken,
  setQueuePlan,
  updateQueueBudget,
} from '../contract/queue/administration.js'
import { type Caller, ok, type Route, route } from '../http/index.js'
import { MAX_DELAY_MS, MAX_RETRIES } from '../queue/index.js'
import type { Store } from '../store/index.js'

/** Collaborators and settings of the operations on queues. */
export interface QueueAdministrationDeps {
  readonly config: Pick<Config, 'queueBodyLimitBytes' | 'retentionMs' | 'deliveryConcurrency' | 'deliveryTimeoutMs'>
  readonly accounts: Pick<Accounts, 'queues' | 'dailyMessagesOf'>
  readonly store: Store
  /** Unix milliseconds. */
  readonly now: () => number
}

const SMALLEST_BUDGET = 20
const NO_LIMIT = Number.MAX_SAFE_INTEGER
const MAX_MESSAGES = 200_000
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** Minutes of an interval of each period. */
const STEP_MINUTES: Readonly<Record<StatsPeriod, number>> = {
  '1h': 1,
  '3h': 3,
  '12h': 12,
  '1d': 24,
  '3d': 72,
  '7d': 168,
  '30d': 180,
}

/** The operations of the management API on queues. */
export function queueAdministrationRoutes(deps: QueueAdministrationDeps): Route[] {
  const { queues } = deps.accounts
  const own = async (caller: Caller) => render(deps, caller, await queues.own(caller))
  return [
    route(getOwnQueueAccount, ({ caller }) => own(caller)),
    route(listQueueAccounts, async ({ caller }) => {
      const queue = await own(caller)
      return QUEUE_REGIONS.map((region) => ({ ...queue, region }))
    }),
    route(getQueueAccount, async ({ caller, params }) => render(deps, caller, await queues.find(caller, params.id))),
    route(rotateQueueToken, async ({ caller, params }) => render(deps, caller, await queues.rotate(caller, params.id))),
    route(setQueuePlan, ({ caller, params, body }) =>
      ok(queues.set(caller, params.id, { queue_plan: body.plan_name })),
    ),
    route(updateQueueBudget, ({ caller, params, body }) =>
      ok(queues.set(caller, params.id, { queue_budget: budgetOf(body.budget) })),
    ),
    route(enableQueueProductionPack, ({ caller, params }) =>
      ok(queues.set(caller, params.id, { queue_production_pack: 1 })),
    ),
    route(disableQueueProductionPack, ({ caller, params }) =>
      ok(queues.set(caller, params.id, { queue_production_pack: 0 })),
    ),
    route(moveQueueToTeam, ({ caller, body }) => ok(queues.moveToTeam(caller, body.qstash_id, body.target_team_id))),
    route(getQueueStats, async ({ caller, params, query }) => {
      await queues.find(caller, params.id)
      return statsOf(deps, caller.accountId, query.period ?? DEFAULT_STATS_PERIOD)
    }),
    route(getQueueAddresses, async () => addresses()),
  ]
}

function budgetOf(budget: number): number {
  if (budget === 0 || budget >= SMALLEST_BUDGET) return budget
  const problem = `\`budget\` must be 0 (none) or at least ${SMALLEST_BUDGET}; found ${budget}.`
  throw new HomeportError('invalid_request', { problem })
}

type QueueOfAccount = Awaited<ReturnType<Accounts['queues']['own']>>

function render({ config, accounts }: QueueAdministrationDeps, caller: Caller, queue: QueueOfAccount): QueueAccount {
  const { row, token, readToken } = queue
  const { queue_plan: plan } = row
  const perDay = accounts.dailyMessagesOf(row.account_id) ?? NO_LIMIT
  return {
    id: row.queue_user_id,
    customer_id: row.email,
    ...(token !== undefined && caller.access === 'write' && { token }),
    ...(readToken !== undefined && { read_only_token: readToken }),
    active: true,
    state: 'active',
    last_plan_upgrade_time: 0,
    max_message_size: config.queueBodyLimitBytes,
    max_requests_per_day: perDay,
    max_requests_per_day_hard: perDay,
    max_requests_per_second: NO_LIMIT,
    max_endpoints_per_topic: NO_LIMIT,
    max_topics: NO_LIMIT,
    max_schedules: NO_LIMIT,
    max_queues: NO_LIMIT,
    max_dlq_size: NO_LIMIT,
    max_events_size: NO_LIMIT,
    max_bandwidth_per_second: NO_LIMIT,
    max_retries: MAX_RETRIES,
    max_dlq_retention_time_milis: config.retentionMs,
    max_delay: MAX_DELAY_MS / 1000,
    max_parallelism: config.deliveryConcurrency,
    max_global_parallelism: config.deliveryConcurrency,
    timeout: Math.floor(config.deliveryTimeoutMs / 1000),
    prod_pack_enabled: row.queue_production_pack === 1,
    prometheus_enabled: 'false',
    type: plan === '' ? row.type : 'paid',
    region: QUEUE_REGIONS[0],
    reserved_type: plan.startsWith('qstash_fixed') ? plan : '',
    reserved_price: 0,
    created_by: row.email,
    creation_time: Math.floor(row.created_at / 1000),
    deletion_time: 0,
    budget: row.queue_budget,
  }
}

interface Series extends queueStats.StatsWindow, queueStats.QueueCounts {
  readonly length: number
}

type Point = QueueStats['daily_used'][number]

/** One point for each interval: the sum of `read` over the counts that `which` selects. */
function points(
  of: Series,
  read: (count: queueStats.MessageCount) => number,
  which: (count: queueStats.MessageCount) => boolean = () => true,
): Point[] {
  const sums = new Array<number>(of.length).fill(0)
  for (const count of of.messages) if (which(count)) sums[count.step] = (sums[count.step] ?? 0) + read(count)
  return sums.slice(0, of.length).map((y, index) => ({ x: goTime(of.from + index * of.stepMs), y }))
}

const isPlain = ({ kind }: queueStats.MessageCount): boolean => kind === 'http'
const isOfWorkflow = (count: queueStats.MessageCount): boolean => !isPlain(count)
const countOf = ({ count }: queueStats.MessageCount): number => count
const bytesOf = ({ bytes }: queueStats.MessageCount): number => bytes

async function statsOf(deps: QueueAdministrationDeps, accountId: string, period: StatsPeriod): Promise<QueueStats> {
  const now = deps.now()
  const [month, recent, totals] = await Promise.all([
    countedIn(deps, accountId, monthOf(now)),
    countedIn(deps, accountId, windowOf(period, now)),
    deps.store.run(consoleCounts.ofAccount, { accountId, most: MAX_COUNTED }),
  ])
  return { ...daysOf(month), ...recentOf(recent), dlq_message_count: totals.deadMessages, total_monthly_billing: 0 }
}

type Window = queueStats.StatsWindow & { readonly length: number }

async function countedIn({ store }: QueueAdministrationDeps, accountId: string, window: Window): Promise<Series> {
  const { from, stepMs } = window
  return { ...window, ...(await store.run(queueStats.counts, { accountId, from, stepMs, most: MAX_MESSAGES })) }
}

/** All days of the present month, UTC. */
function monthOf(now: number): Window {
  const date = new Date(now)
  const from = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1)
  const end = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
  return { from, stepMs: DAY_MS, length: (end - from) / DAY_MS }
}

/** The intervals of a period; the last one contains the present. */
function windowOf(period: StatsPeriod, now: number): Window {
  const stepMs = STEP_MINUTES[period] * MINUTE_MS
  const length = period === '30d' ? 4 * STATS_POINTS : STATS_POINTS
  return { from: now - (now % stepMs) - (length - 1) * stepMs, stepMs, length }
}

const WEEKDAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'] as const

function daysOf(month: Series) {
  const ofWorkflows = points(month, countOf, isOfWorkflow)
  const runs = new Map(month.runs.map(({ step, count }) => [step, count]))
  const requests = points(month, countOf)
  return {
    days: requests.map((_, day) => WEEKDAYS[new Date(month.from + day * DAY_MS).getUTCDay()] ?? ''),
    daily_requests: requests.map((point, day) => ({
      ...point,
      workflow_message: ofWorkflows[day]?.y ?? 0,
      workflow_run: runs.get(day) ?? 0,
    })),
    daily_billings: points(month, () => 0),
    daily_bandwidths: points(month, bytesOf),
  }
}

function recentOf(recent: Series) {
  return {
    daily_used: points(recent, countOf, isPlain),
    daily_used_workflow: points(recent, countOf, isOfWorkflow),
    daily_qstash_messages: byState(recent, isPlain),
    daily_workflow_messages: byState(recent, isOfWorkflow),
    daily_bandwidth_used: points(recent, bytesOf),
  }
}

/** Stored states of messages with their names on the wire. */
const STATES = { held: 'waiting', pending: 'pending', delivered: 'delivered', failed: 'failed', canceled: 'canceled' }

function byState(of: Series, which: (count: queueStats.MessageCount) => boolean): QueueStats['daily_qstash_messages'] {
  return Object.entries(STATES).map(([state, id]) => ({
    id,
    data_points: points(of, countOf, (count) => count.state === state && which(count)),
  }))
}

/** This machine's IPv4 addresses, without loopback. */
function addresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  return all.filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => `${address}/32`)
}
