import Type from 'typebox'
import { MAX_FILTER_VALUES } from '../request-limits.js'

/** Schemas that several operations of the queue share. */

const text = (description: string) => Type.String({ description })
const ms = (description: string) => Type.Integer({ description: `${description}, Unix milliseconds.` })

/** Header names in Title-Case, each with its values. */
export const Headers = Type.Record(Type.String(), Type.Array(Type.String()), {
  description: 'Header names in Title-Case, each with a list of its values. Redacted values read `REDACTED:<SHA256>`.',
})

const FLOW = {
  flowControlKey: Type.Optional(text('The flow-control key that the message names.')),
  parallelism: Type.Optional(Type.Integer({ description: 'As the message set it.' })),
  rate: Type.Optional(Type.Integer({ description: 'As the message set it.' })),
  period: Type.Optional(Type.Integer({ description: 'As the message set it, seconds. Default 1.' })),
}

const LABELS = {
  label: Type.Optional(text('The first label.')),
  labels: Type.Optional(Type.Array(Type.String(), { description: 'All labels.' })),
}

const RULE = {
  priority: Type.Optional(
    Type.Integer({ description: 'Seconds that the message counts as due earlier when it waits with others.' }),
  ),
  debounceKey: Type.Optional(text('The debounce key of the message.')),
  singletonKey: Type.Optional(text('The singleton key of the message.')),
}

const MESSAGE = {
  messageId: text('Identifier of the message, `msg_…`.'),
  url: text('The destination as it was published.'),
  method: text('The HTTP method of the delivery.'),
  header: Headers,
  body: Type.Optional(text('The body, when it is valid UTF-8.')),
  bodyBase64: Type.Optional(text('The body in base64, when it is not valid UTF-8.')),
  maxRetries: Type.Integer({ description: 'Most retries after the first attempt.' }),
  notBefore: ms('When the next attempt is due; for a finished message, when the last one was due'),
  createdAt: ms('When the message was published'),
  topicName: Type.Optional(text('The URL group that the message was published to.')),
  endpointName: Type.Optional(text('The name of the endpoint in its URL group.')),
  queueName: Type.Optional(text('The queue of the message.')),
  scheduleId: Type.Optional(text('The schedule that published the message.')),
  callback: Type.Optional(text('URL that is called after each response.')),
  failureCallback: Type.Optional(text('URL that is called when the message has failed for good.')),
  callerIP: Type.Optional(text('Address of the publisher.')),
  callerIp: Type.Optional(text('The same as `callerIP`, in the spelling of `Message` of `@upstash/qstash`.')),
  retryDelayExpression: Type.Optional(text('`Upstash-Retry-Delay` as it was sent.')),
  timeout: Type.Optional(Type.Integer({ description: 'Timeout of an attempt, milliseconds.' })),
  ...LABELS,
  ...RULE,
  ...FLOW,
}

const Because = Type.Object({
  kind: Type.Enum(['debounced', 'prioritized'], {
    description:
      '`debounced`: the delay of its debounce key has not ended. `prioritized`: it is due, and its priority decides which other messages are sent first.',
  }),
  until: Type.Optional(ms('When the wait ends')),
  text: text('The reason in words.'),
})

/** A message as the reading operations show it. */
export const Message = Type.Object({
  ...MESSAGE,
  because: Type.Optional(
    Type.Array(Because, {
      description: 'Why a pending message waits by its own settings. Absent: none of them delays it.',
    }),
  ),
})

/** A message that could not be delivered. */
export const DeadLetter = Type.Object({
  ...MESSAGE,
  dlqId: text('Identifier of the dead letter, `<milliseconds>-<number>`.'),
  responseStatus: Type.Integer({ description: 'Status of the last response; 0 when there was none.' }),
  responseHeader: Type.Optional(Headers),
  responseBody: Type.Optional(
    text('The beginning of the last response, when it is valid UTF-8. Without a response, the reason.'),
  ),
  responseBodyBase64: Type.Optional(text('The beginning of the last response in base64, when it is not valid UTF-8.')),
})

/** A workflow run that has failed, among dead letters (reference queue 4.13). */
export const RunDeadLetter = Type.Object({
  ...DeadLetter.properties,
  workflowRunId: text('Identifier of the run.'),
  workflowUrl: text('The workflow.'),
  workflowCreatedAt: ms('When the run was created'),
  failureCallbackInfo: Type.Optional(
    Type.Object(
      {
        state: Type.Optional(text('State of the call of the failure function.')),
        responseStatus: Type.Optional(Type.Integer()),
        responseBody: Type.Optional(Type.String()),
        responseHeaders: Type.Optional(Headers),
      },
      { description: 'The call of the failure function. Absent when the run has none.' },
    ),
  ),
})

/** States of log entries in the order in which they can happen (reference queue 3.5). */
export const EVENT_STATES = [
  'CREATED',
  'ACTIVE',
  'ERROR',
  'RETRY',
  'DELIVERED',
  'FAILED',
  'CANCEL_REQUESTED',
  'CANCELED',
] as const

/** Whether an entry of the log of a message comes after another one. */
export const isLater = (one: LogPlace, other: LogPlace): boolean =>
  one.time > other.time ||
  (one.time === other.time && EVENT_STATES.indexOf(one.state) > EVENT_STATES.indexOf(other.state))

interface LogPlace {
  readonly time: number
  readonly state: (typeof EVENT_STATES)[number]
}

/** An entry of the log. */
export const Event = Type.Object({
  time: ms('When it happened'),
  messageId: MESSAGE.messageId,
  state: Type.Enum([...EVENT_STATES]),
  url: MESSAGE.url,
  method: MESSAGE.method,
  header: Headers,
  body: text('The body in base64.'),
  maxRetries: MESSAGE.maxRetries,
  error: Type.Optional(text('Why an attempt failed, or which message has replaced a cancelled one.')),
  nextDeliveryTime: Type.Optional(ms('When the next attempt is due')),
  responseStatus: Type.Optional(Type.Integer({ description: 'Status of the response. Absent when there was none.' })),
  responseBody: Type.Optional(text('The beginning of the response in base64.')),
  responseHeaders: Type.Optional(Headers),
  responseHeader: Type.Optional(Headers),
  topicName: MESSAGE.topicName,
  endpointName: MESSAGE.endpointName,
  queueName: MESSAGE.queueName,
  scheduleId: MESSAGE.scheduleId,
  callback: MESSAGE.callback,
  callbackHeaders: Type.Optional(Headers),
  failureCallback: MESSAGE.failureCallback,
  failureCallbackHeaders: Type.Optional(Headers),
  timeout: MESSAGE.timeout,
  retryDelayExpression: MESSAGE.retryDelayExpression,
  retryDelayExpr: MESSAGE.retryDelayExpression,
  ...LABELS,
  ...RULE,
  ...FLOW,
})

const { time, state, error, nextDeliveryTime, responseStatus, responseBody, ...others } = Event.properties
const { responseHeaders, responseHeader, ...ofMessage } = others

/** A message with entries of its log. */
export const MessageLog = Type.Object({
  ...ofMessage,
  events: Type.Array(
    Type.Object({
      time,
      state,
      error,
      nextDeliveryTime,
      responseStatus,
      responseBody,
      responseHeaders,
      responseHeader,
    }),
  ),
})

const list = (description: string) =>
  Type.Optional(
    Type.Array(Type.String(), {
      maxItems: MAX_FILTER_VALUES,
      description: `${description} Several values match any of them.`,
    }),
  )

/** The filters of all selecting operations. An item must match all filters that are given. */
export const FILTERS = {
  url: list('Messages to exactly this URL.'),
  label: list('Messages with this label.'),
  flowControlKey: list('Messages that name this flow-control key.'),
  callerIp: list('Messages published from this address.'),
  callerIP: list('Older spelling of `callerIp`.'),
  topicName: list('Messages of this URL group.'),
  queueName: list('Messages of this queue.'),
  scheduleId: list('Messages of this schedule.'),
  fromDate: Type.Optional(ms('At or after this time')),
  toDate: Type.Optional(ms('At or before this time')),
}

/** Filters by parts of the destination. */
export const DESTINATION_FILTERS = {
  host: list('Messages to this host, with the port if the URL has one.'),
  path: list('Messages to this path.'),
}

/** The query parameter that selects a page. */
export const CURSOR = Type.Optional(text('Where the page begins: the `cursor` of the previous page.'))
