import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'

/**
 * The kinds of activity that are counted for an account, minute by minute. The store keeps counts by their position in this
 * list: new kinds go to the end, and none is ever removed.
 */
export const ACTIVITY = {
  published: 'Messages that were published, also by schedules.',
  delivered: 'Messages that their destination accepted.',
  failed_attempts:
    'Attempts to deliver a message that the destination did not accept, whether or not a retry followed.',
  failed_messages: 'Messages whose last attempt failed.',
  started_runs: 'Runs that were triggered, resumed or restarted.',
  succeeded_runs: 'Runs that succeeded.',
  failed_runs: 'Runs that failed.',
  cancelled_runs: 'Runs that were cancelled.',
  failed_step_attempts:
    'Requests to the programs of runs, and requests of `context.call`, that did not get a status 2xx.',
  commands: 'Commands that were sent to engines.',
  refused_commands: 'Commands and clients that were refused because a limit of the database was reached.',
} as const

/** A kind of activity. */
export type ActivityKind = keyof typeof ACTIVITY

/** All kinds, in the order of stored counts. */
// Safe: the keys of an object literal.
export const ACTIVITY_KINDS = Object.keys(ACTIVITY) as readonly ActivityKind[]

/** The periods of activity, each with its length and that of a step, seconds. Each ends with the current step. */
export const ACTIVITY_PERIODS = {
  '1h': { seconds: 3_600, step: 60 },
  '1d': { seconds: 86_400, step: 900 },
} as const

/** A period of activity. */
export type ActivityPeriod = keyof typeof ACTIVITY_PERIODS

const counts = (description: string) => Type.Array(Type.Integer({ minimum: 0 }), { description })

// Safe: one entry for each key of `ACTIVITY`.
const Series = Type.Object(
  Object.fromEntries(Object.entries(ACTIVITY).map(([kind, meaning]) => [kind, counts(meaning)])) as Record<
    ActivityKind,
    ReturnType<typeof counts>
  >,
  { description: 'Counts by step, oldest first. The last step is not over yet.' },
)

const ActivitySchema = Type.Object({
  from: Type.Integer({ description: 'When the first step began, Unix seconds.' }),
  step_seconds: Type.Integer({ description: 'Length of a step: 60 for `1h`, 900 for `1d`.' }),
  series: Series,
})

/** Recent activity of an account. */
export type Activity = Static<typeof ActivitySchema>

/** Reads the recent activity of the account. */
export const getActivity = endpoint({
  id: 'getActivity',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/activity',
  auth: 'basic',
  access: 'read',
  cost: 'heavy',
  summary: 'Read what happened in the last hour or day',
  description:
    'Counts of messages, runs and commands of the account: by minute for the last hour, by quarter of an hour for the last day. They survive a restart; a crash loses the last minute. Counts of other nodes of a cluster arrive up to a minute later.',
  query: Type.Object({
    period: Type.Optional(Type.Enum(['1h', '1d'], { description: 'Default: `1h`.' })),
  }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The counts.', body: ActivitySchema },
  errors: ['store_unavailable'],
})
