import { type Static, Type } from 'typebox'
import { DEFAULT_STATS_PERIOD, STATS_PERIODS } from '../databases/stats.js'
import { endpoint, noFields, ok } from '../endpoint.js'

/** The queue of an account as the management API shows and changes it (upstream OpenAPI, `/qstash/...`). */

/** Names of plans that a queue may have. Homeport bills nothing and gives all of them the same limits. */
export const QUEUE_PLANS = ['paid', 'qstash_fixed_1m', 'qstash_fixed_10m', 'qstash_fixed_100m'] as const

/** Region names under which clients look for their queue. An account has one queue, which is listed under both names. */
export const QUEUE_REGIONS = ['eu-central-1', 'us-east-1'] as const

/** Largest monthly budget of a queue, US dollars. */
export const MAX_QUEUE_BUDGET = 10_000

const text = (description: string) => Type.String({ description })
const integer = (description: string) => Type.Integer({ description })
const unlimited = (what: string) => integer(`${what} 9007199254740991: no limit.`)

/** A queue as the management API shows it. */
export const QueueAccountSchema = Type.Object({
  id: text('Identifier of the queue, the `UserID` inside its tokens.'),
  customer_id: text('E-mail of the account, or the id of the team.'),
  token: Type.Optional(
    text(
      'Token for the queue API. Absent for a read-only API key, and when the server knows only its hash: then rotate it.',
    ),
  ),
  read_only_token: Type.Optional(text('Token that may only read.')),
  active: Type.Boolean({ description: 'Always `true`.' }),
  state: Type.Literal('active', { description: 'Always `active`.' }),
  last_plan_upgrade_time: integer('Always 0: plans of queues have no effect here.'),
  max_message_size: integer('Largest body of a request, bytes.'),
  max_requests_per_day: unlimited('Requests in a day.'),
  max_requests_per_day_hard: unlimited('Requests in a day.'),
  max_requests_per_second: unlimited('Requests in a second.'),
  max_endpoints_per_topic: unlimited('Endpoints of a URL group.'),
  max_dlq_size: unlimited('Dead letters.'),
  max_retries: integer('Most retries that a message may have.'),
  max_topics: unlimited('URL groups.'),
  max_schedules: unlimited('Schedules.'),
  max_events_size: unlimited('Entries of the log.'),
  max_dlq_retention_time_milis: integer(
    'How long dead letters are kept, milliseconds. The field is misspelt on the wire.',
  ),
  max_delay: integer('Longest delay, seconds.'),
  max_parallelism: integer('Deliveries in flight at once.'),
  max_global_parallelism: integer('Deliveries in flight at once, on the whole server.'),
  max_queues: unlimited('Queues.'),
  max_bandwidth_per_second: unlimited('Bytes in a second.'),
  prod_pack_enabled: Type.Boolean({ description: 'Whether the production pack was enabled. It has no effect here.' }),
  prometheus_enabled: Type.Literal('false', { description: 'Always `false`: `/metrics` serves the whole server.' }),
  timeout: integer('Longest time of a delivery, seconds.'),
  type: Type.Enum(['free', 'paid']),
  region: Type.Enum([...QUEUE_REGIONS], { description: 'The name under which the client looks for it.' }),
  reserved_type: text('The fixed plan that was set; empty for none.'),
  reserved_price: integer('Always 0.'),
  created_by: text('E-mail of the account, or the id of the team.'),
  creation_time: integer('When the account was created, Unix seconds.'),
  deletion_time: integer('Always 0.'),
  budget: integer(
    'The monthly budget that was set, US dollars; 0 means none. It has no effect, because nothing is billed.',
  ),
})

/** A queue as the management API shows it. */
export type QueueAccount = Static<typeof QueueAccountSchema>

const Point = Type.Object({
  x: text('Time, such as `2025-08-31 15:12:00 +0000 UTC`.'),
  y: Type.Number(),
})
const series = (description: string) => Type.Array(Point, { description })
const byState = (description: string) =>
  Type.Array(Type.Object({ id: text('The state.'), data_points: Type.Array(Point) }), { description })

/** Statistics of a queue, counted from the messages and runs that the store still has. */
export const QueueStatsSchema = Type.Object({
  days: Type.Array(Type.String(), { description: 'Weekdays of the current month, in the order of the daily series.' }),
  daily_requests: Type.Array(
    Type.Object({ ...Point.properties, workflow_message: Type.Integer(), workflow_run: Type.Integer() }),
    {
      description:
        'Messages of each day of the month. `workflow_message` counts messages of workflows, `workflow_run` counts runs.',
    },
  ),
  daily_billings: series('0 for each day: nothing is billed.'),
  daily_bandwidths: series('Bytes of the bodies of the messages of each day.'),
  daily_used: series('Messages, without those of workflows, in each interval of the period.'),
  daily_used_workflow: series('Messages of workflows in each interval.'),
  daily_qstash_messages: byState('Messages, without those of workflows, in each interval, by their current state.'),
  daily_workflow_messages: byState('Messages of workflows in each interval, by their current state.'),
  daily_bandwidth_used: series('Bytes of the bodies of messages in each interval.'),
  dlq_message_count: integer('Dead letters, counted to 100,000.'),
  total_monthly_billing: Type.Number({ description: 'Always 0.' }),
})

/** Statistics of a queue. */
export type QueueStats = Static<typeof QueueStatsSchema>

const management = { service: 'management', topic: 'Queue accounts', auth: 'basic' } as const
const IdParams = Type.Object({ id: text('`id` of the queue.') })
const theQueue = { status: 200, description: 'The queue.', body: QueueAccountSchema } as const

/** Reads the queue of the caller. */
export const getOwnQueueAccount = endpoint({
  ...management,
  id: 'getOwnQueueAccount',
  method: 'GET',
  path: '/v2/qstash/user',
  access: 'read',
  summary: 'Get the queue of the account',
  description: 'The queue of the account or team that the API key acts for, with its tokens.',
  body: { kind: 'none' },
  success: theQueue,
  errors: [],
})

/** Lists the queue of the caller under each region name. */
export const listQueueAccounts = endpoint({
  ...management,
  id: 'listQueueAccounts',
  method: 'GET',
  path: '/v2/qstash/users',
  access: 'read',
  summary: 'List the queues of the account',
  description:
    'An account has one queue. It is listed once for each region name that clients look for; both entries are the same queue with the same tokens.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The queue under each name.', body: Type.Array(QueueAccountSchema) },
  errors: [],
})

/** Reads a queue by its id. */
export const getQueueAccount = endpoint({
  ...management,
  id: 'getQueueAccount',
  method: 'GET',
  path: '/v2/qstash/user/{id}',
  access: 'read',
  summary: 'Get a queue',
  description: 'The queue of the account, by its id.',
  params: IdParams,
  body: { kind: 'none' },
  success: theQueue,
  errors: ['queue_account_not_found'],
})

/** Replaces the two tokens of a queue. */
export const rotateQueueToken = endpoint({
  ...management,
  id: 'rotateQueueToken',
  method: 'POST',
  path: '/v2/qstash/rotate-token/{id}',
  access: 'write',
  summary: 'Rotate the queue token',
  description:
    'Creates a new token and a new read-only token. The old ones are invalid as soon as the response is sent. The URLs of webhooks and the signing keys do not change. In a team, only the owner and admins may do this.',
  params: IdParams,
  body: noFields,
  success: theQueue,
  errors: ['queue_account_not_found', 'team_forbidden', 'store_unavailable'],
})

/** Sets the plan of a queue. */
export const setQueuePlan = endpoint({
  ...management,
  id: 'setQueuePlan',
  method: 'POST',
  path: '/v2/qstash/set-plan/{id}',
  access: 'write',
  summary: 'Set the plan of the queue',
  description: 'Stored and shown. Homeport bills nothing, and its limits are the same on every plan.',
  params: IdParams,
  body: { kind: 'json', schema: Type.Object({ plan_name: Type.Enum([...QUEUE_PLANS]) }) },
  success: ok,
  errors: ['queue_account_not_found', 'store_unavailable'],
})

/** Sets the budget of a queue. */
export const updateQueueBudget = endpoint({
  ...management,
  id: 'updateQueueBudget',
  method: 'PATCH',
  path: '/v2/qstash/update-budget/{id}',
  access: 'write',
  summary: 'Set the budget of the queue',
  description: 'Stored and shown. Nothing is billed, so it is never reached.',
  params: IdParams,
  body: {
    kind: 'json',
    schema: Type.Object({
      budget: Type.Integer({
        minimum: 0,
        maximum: MAX_QUEUE_BUDGET,
        description: 'US dollars a month: 20 or more, or 0 for none.',
      }),
    }),
  },
  success: ok,
  errors: ['queue_account_not_found', 'store_unavailable'],
})

const productionPack = (state: 'enable' | 'disable') =>
  endpoint({
    ...management,
    id: `${state}QueueProductionPack`,
    method: 'POST',
    path: `/v2/qstash/${state}-prodpack/{id}`,
    access: 'write',
    summary: `${state === 'enable' ? 'Enable' : 'Disable'} the production pack of the queue`,
    description: 'Stored and shown, without further effect. Repeating the request changes nothing.',
    params: IdParams,
    body: noFields,
    success: ok,
    errors: ['queue_account_not_found', 'store_unavailable'],
  })

/** Adds the production pack to a queue. */
export const enableQueueProductionPack = productionPack('enable')

/** Removes the production pack from a queue. */
export const disableQueueProductionPack = productionPack('disable')

/** Moves a queue to a team, which Homeport refuses. */
export const moveQueueToTeam = endpoint({
  ...management,
  id: 'moveQueueToTeam',
  method: 'POST',
  path: '/v2/qstash/move-to-team',
  access: 'write',
  summary: 'Move the queue to a team',
  description:
    'Always refused with 409, unless the target is the team that already has the queue: every account and team has its own queue, which cannot be moved.',
  body: {
    kind: 'json',
    schema: Type.Object({
      qstash_id: text('`id` of the queue.'),
      target_team_id: text('`team_id` of the team.'),
    }),
  },
  success: ok,
  errors: ['queue_account_not_found', 'team_not_found', 'queue_not_movable'],
})

/** Reads the statistics of a queue. */
export const getQueueStats = endpoint({
  ...management,
  id: 'getQueueStats',
  method: 'GET',
  path: '/v2/qstash/stats/{id}',
  access: 'read',
  cost: 'heavy',
  summary: 'Get statistics of the queue',
  description:
    'Counted from the messages and runs that are still kept (option `retentionMs`): 60 intervals of the period, for 30 days 240. Of more than 200,000 messages only the newest 200,000 count.',
  params: IdParams,
  query: Type.Object({
    period: Type.Optional(Type.Enum([...STATS_PERIODS], { description: `Default: ${DEFAULT_STATS_PERIOD}.` })),
  }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The statistics.', body: QueueStatsSchema },
  errors: ['queue_account_not_found', 'store_unavailable'],
})

/** Lists the addresses from which deliveries are sent. */
export const getQueueAddresses = endpoint({
  ...management,
  id: 'getQueueAddresses',
  method: 'GET',
  path: '/v2/qstash/ipv4',
  access: 'read',
  summary: 'List the addresses that deliveries come from',
  description:
    'The IPv4 addresses of this machine as networks. Behind address translation, receivers see the address of the router instead.',
  body: { kind: 'none' },
  success: { status: 200, description: 'Networks such as `192.0.2.7/32`.', body: Type.Array(Type.String()) },
  errors: [],
})
