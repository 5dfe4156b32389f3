import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { Headers, Message } from './fields.js'
import { SCHEDULE_HEADERS } from './setting-headers.js'

/** Schedules: messages published at the times of a cron expression. */

const queue = { service: 'queue', topic: 'Schedules', auth: 'bearer' } as const
const params = Type.Object({ scheduleId: Type.String({ description: 'Id of the schedule.' }) })
const fields = Message.properties

/** A schedule. */
const Schedule = Type.Object({
  scheduleId: Type.String(),
  cron: Type.String({ description: 'The cron expression as it was sent, with its time zone.' }),
  destination: Type.String({ description: 'A URL, or the name of a URL group.' }),
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  method: Type.String(),
  header: Headers,
  body: fields.body,
  bodyBase64: fields.bodyBase64,
  retries: Type.Integer(),
  delay: Type.Optional(Type.Integer({ description: 'Delay of each message, seconds.' })),
  timeout: Type.Optional(Type.Integer({ description: 'Timeout of an attempt, milliseconds.' })),
  callback: fields.callback,
  failureCallback: fields.failureCallback,
  callerIP: fields.callerIP,
  callerIp: fields.callerIp,
  isPaused: Type.Boolean(),
  queueName: fields.queueName,
  flowControlKey: fields.flowControlKey,
  parallelism: fields.parallelism,
  rate: fields.rate,
  period: fields.period,
  retryDelayExpression: fields.retryDelayExpression,
  priority: fields.priority,
  debounceKey: fields.debounceKey,
  debounceDelay: Type.Optional(Type.Number({ description: 'How long a message waits for a newer one, seconds.' })),
  debounceMaxDelay: Type.Optional(
    Type.Number({ description: 'The longest wait since the first message that was replaced, seconds.' }),
  ),
  singletonKey: fields.singletonKey,
  singletonMode: Type.Optional(Type.Enum(['skip', 'cancel'])),
  label: fields.label,
  labels: fields.labels,
  lastScheduleTime: Type.Optional(Type.Integer({ description: 'When it last fired, Unix milliseconds.' })),
  nextScheduleTime: Type.Optional(
    Type.Integer({ description: 'When it fires next, Unix milliseconds. Absent while the schedule is paused.' }),
  ),
  lastScheduleStates: Type.Optional(
    Type.Record(Type.String(), Type.Enum(['IN_PROGRESS', 'SUCCESS', 'FAIL']), {
      description: 'States of the last messages, by message id, as long as the messages are kept.',
    }),
  ),
  error: Type.Optional(Type.String({ description: 'Why the schedule published no message when it last fired.' })),
})

/** Pauses a schedule, by the method that some clients use. */
export const pauseScheduleByPost = endpoint({
  ...queue,
  id: 'pauseScheduleByPost',
  method: 'POST',
  path: '/v2/schedules/{scheduleId}/pause',
  access: 'write',
  scopes: [],
  summary: 'Pause a schedule (POST)',
  description: 'The same as PATCH.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule is paused.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})

/** Resumes a schedule, by the method that some clients use. */
export const resumeScheduleByPost = endpoint({
  ...queue,
  id: 'resumeScheduleByPost',
  method: 'POST',
  path: '/v2/schedules/{scheduleId}/resume',
  access: 'write',
  scopes: [],
  summary: 'Resume a schedule (POST)',
  description: 'The same as PATCH.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule is active.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})

/** Creates or replaces a schedule. */
export const createSchedule = endpoint({
  ...queue,
  id: 'createSchedule',
  method: 'POST',
  path: '/v2/schedules/{+destination}',
  access: 'write',
  scopes: [],
  summary: 'Create or replace a schedule',
  description:
    'Takes the settings of a publish request, and `Upstash-Cron`: five fields in UTC, or in another time zone when ' +
    '`CRON_TZ=<zone> ` comes before them. `Upstash-Schedule-Id` sets the id; an existing schedule with this id is ' +
    'replaced as a whole. Each time the schedule fires, it publishes exactly one message (to a URL group: one for each ' +
    'endpoint). If the server was off or its clock jumped, one missed message is published afterwards. ' +
    '`Upstash-Not-Before` is refused. `POST /v2/schedules/{id}/pause` and `/resume` work here, too.',
  params: Type.Object({
    destination: Type.String({ description: 'URL (unencoded) or URL group of each message.' }),
  }),
  headers: SCHEDULE_HEADERS,
  aliases: [pauseScheduleByPost, resumeScheduleByPost],
  body: { kind: 'raw' },
  success: {
    status: 200,
    description: 'The schedule is stored.',
    body: Type.Object({ scheduleId: Type.Optional(Type.String()) }),
  },
  errors: ['invalid_request', 'setting_limit', 'too_many_schedules', 'destination_forbidden', 'schedule_not_found'],
})

/** Lists schedules. */
export const listSchedules = endpoint({
  ...queue,
  id: 'listSchedules',
  method: 'GET',
  path: '/v2/schedules',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List schedules',
  description: 'All schedules of the account, oldest first.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedules.', body: Type.Array(Schedule) },
  errors: [],
})

/** Reads a schedule. */
export const getSchedule = endpoint({
  ...queue,
  id: 'getSchedule',
  method: 'GET',
  path: '/v2/schedules/{scheduleId}',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'Read a schedule',
  description: 'Shows the settings of the schedule, and when it last fired and fires next.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule.', body: Schedule },
  errors: ['schedule_not_found'],
})

/** Deletes a schedule. */
export const deleteSchedule = endpoint({
  ...queue,
  id: 'deleteSchedule',
  method: 'DELETE',
  path: '/v2/schedules/{scheduleId}',
  access: 'write',
  scopes: [],
  summary: 'Delete a schedule',
  description: 'The schedule does not fire again. Messages it has published are still delivered.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule does not exist any more.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})

/** Pauses a schedule. */
export const pauseSchedule = endpoint({
  ...queue,
  id: 'pauseSchedule',
  method: 'PATCH',
  path: '/v2/schedules/{scheduleId}/pause',
  access: 'write',
  scopes: [],
  summary: 'Pause a schedule',
  description: 'The schedule does not fire until it is resumed. Missed messages are not published afterwards.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule is paused.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})

/** Resumes a schedule. */
export const resumeSchedule = endpoint({
  ...queue,
  id: 'resumeSchedule',
  method: 'PATCH',
  path: '/v2/schedules/{scheduleId}/resume',
  access: 'write',
  scopes: [],
  summary: 'Resume a schedule',
  description: 'The schedule fires at the next time of its cron expression.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The schedule is active.', body: Type.Object({}) },
  errors: ['schedule_not_found'],
})
