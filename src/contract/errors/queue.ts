import { define } from './entry.js'

/** Errors of the queue. */
export const queueErrors = {
  setting_limit: define<{ setting: string; found: string; limit: string }>({
    status: 412,
    text: ({ setting, found, limit }) =>
      `${setting} is "${found}", which exceeds the limit of this server. Send at most ${limit}.`,
  }),
  daily_limit: define<{
    limit: number
    wanted: number
    remaining: number
    resetAtSeconds: number
    retryAfterSeconds: number
  }>({
    status: 429,
    retry: 'later',
    text: ({ limit, wanted, remaining, resetAtSeconds }) =>
      `Exceeded daily rate limit: this account may publish ${limit} messages a day, ${remaining} of them are left, and this request has ${wanted}. The next day begins at ${new Date(resetAtSeconds * 1_000).toISOString()}. The operator of the server can raise the limit.`,
  }),
  destination_forbidden: define<{ url: string; problem: string }>({
    status: 403,
    text: ({ url, problem }) =>
      `"${url}" leads to ${problem}, and this server delivers to public addresses only. Send a public URL, or have the operator change the option deliveryTargets.`,
  }),
  url_group_not_found: define<{ name: string }>({
    status: 404,
    text: ({ name }) =>
      `There is no URL group "${name}". Add endpoints to it with POST /v2/topics/${name}/endpoints, or send a destination that begins with http:// or https://.`,
  }),
  queue_not_found: define<{ name: string }>({
    status: 404,
    text: ({ name }) =>
      `There is no queue "${name}". POST /v2/queues creates it, and so does the first message that is enqueued in it.`,
  }),
  schedule_not_found: define<{ scheduleId: string }>({
    status: 404,
    text: ({ scheduleId }) => `There is no schedule "${scheduleId}". GET /v2/schedules lists all of them.`,
  }),
  too_many_schedules: define<{ most: number }>({
    status: 412,
    text: ({ most }) =>
      `The account has ${most} schedules, which is the limit. Delete some of them first, or ask the operator to raise accountSchedules.`,
  }),
  flow_key_not_found: define<{ key: string }>({
    status: 404,
    text: ({ key }) => `There is no flow-control key "${key}". The first message that uses it creates it.`,
  }),
  message_not_found: define<{ messageId: string }>({
    status: 404,
    text: ({ messageId }) =>
      `There is no pending message "${messageId}". GET /v2/events shows what happened to finished messages.`,
  }),
  dead_letter_not_found: define<{ dlqId: string }>({
    status: 404,
    text: ({ dlqId }) => `There is no dead letter "${dlqId}". GET /v2/dlq lists all of them.`,
  }),
} as const
