import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { Headers, Message } from './fields.js'

/** Schedules: the same message, published again and again. */

const queue = { service: 'queue', topic: 'Schedules', auth: 'bearer' } as const
const params = Type.Object({ scheduleId: Type.String({ description: 'Id of the schedule.' }) })
const fields = Message.properties

/** A schedule. */
const Schedule = Type.Object({
  scheduleId: Type.String(),
  cron: Type.String({ description: 'As it was sent, time zone included.' }),
  destination: Type.String({ description: 'A URL, or the name of a URL group.' }),
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  method: Type.String(),
  header: Headers,
  body: fields.body,
  bodyBase64: fields.bodyBase64,
  retries: Type.Integer(),
  delay: Type.Optional(Type.Integer({ description: 'Seconds by which each message is put off.' })),
  timeout: Type.Optional(Type.Integer({ description: 'How long an attempt may take, in milliseconds.' })),
  callback: fields.callback,
  failureCallback: fields.failureCallback,
  callerIP: fields.callerIP,
  callerIp: fields.callerIP,
  isPaused: Type.Boolean(),
  queueName: fields.queueName,
  flowControlKey: fields.flowControlKey,
  parallelism: fields.parallelism,
  rate: fields.rate,
  period: fields.period,
  retryDelayExpression: fields.retryDelayExpression,
  label: fields.label,
  labels: fields.labels,
  lastScheduleTime: Type.Optional(Type.Integer({ description: 'When it fired last, Unix milliseconds.' })),
  nextScheduleTime: Type.Optional(
    Type.Integer({ description: 'When it fires next, Unix milliseconds; absent while it is paused.' }),
  ),
  lastScheduleStates: Type.Optional(
    Type.Record(Type.String(), Type.Enum(['IN_PROGRESS', 'SUCCESS', 'FAIL']), {
      description: 'What became of the messages of the last fires, by message id, as long as they are kept.',
    }),
  ),
  error: Type.Optional(Type.String({ description: 'Why the last fire brought no message.' })),
})

/** Make or replace a schedule. */
export const createSchedule = endpoint({
  ...queue,
  id: 'createSchedule',
  method: 'POST',
  path: '/v2/schedules/{+destination}',
  access: 'write',
  summary: 'Make or replace a schedule',
  description:
    'As publishing, with `Upstash-Cron`: five fields in UTC, or in the zone that `CRON_TZ=<zone> ` before them names. ' +
    '`Upstash-Schedule-Id` names the schedule; one that is there already is replaced as a whole. Each fire publishes ' +
    'exactly one message (to a URL group: one for each endpoint). Of fires that fell into a time when the server was ' +
    'away or its clock jumped, one is made up for. `Upstash-Not-Before` is refused. `POST /v2/schedules/{id}/pause` and ' +
    '`/resume` are understood here too.',
  params: Type.Object({
    destination: Type.String({ description: 'URL or URL group that every message goes to, unencoded.' }),
  }),
  body: { kind: 'raw' },
  success: {
    status: 200,
    description: 'The schedule is stored.',
    body: Type.Object({ scheduleId: Type.Optional(Type.String()) }),
  },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden', 'schedule_not_found'],
})

/** List schedules. */
export const listSchedules = endpoint({
  ...queue,
  id: 'listSchedules',
  method: 'GET',
  path: '/v2/schedules',
  access: 'read',
  summary: 'List schedules',
  description: 'All schedules of the account, oldest first.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedules.', body: Type.Array(Schedule) },
  errors: [],
})

/** Read a schedule. */
export const getSchedule = endpoint({
  ...queue,
  id: 'getSchedule',
  method: 'GET',
  path: '/v2/schedules/{scheduleId}',
  access: 'read',
  summary: 'Read a schedule',
  description: 'Shows its settings, its last and its next fire.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule.', body: Schedule },
  errors: ['schedule_not_found'],
})

/** Delete a schedule. */
export const deleteSchedule = endpoint({
  ...queue,
  id: 'deleteSchedule',
  method: 'DELETE',
  path: '/v2/schedules/{scheduleId}',
  access: 'write',
  summary: 'Delete a schedule',
  description: 'It does not fire again. Messages that it has published are delivered.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'There is no such schedule any more.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})

/** Pause a schedule. */
export const pauseSchedule = endpoint({
  ...queue,
  id: 'pauseSchedule',
  method: 'PATCH',
  path: '/v2/schedules/{scheduleId}/pause',
  access: 'write',
  summary: 'Pause a schedule',
  description: 'It does not fire until it is resumed; what it misses is not made up for.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule is paused.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})

/** Let a schedule go on. */
export const resumeSchedule = endpoint({
  ...queue,
  id: 'resumeSchedule',
  method: 'PATCH',
  path: '/v2/schedules/{scheduleId}/resume',
  access: 'write',
  summary: 'Resume a schedule',
  description: 'It fires next at the next time of its cron expression from now on.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule goes on.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})
