import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_FILTER_VALUES, MAX_IDS } from '../request-limits.js'
import { searchedTo, searchFilter } from '../search.js'
import { DESTINATION_FILTERS, EVENT_STATES, Event, FILTERS, Message, MessageLog } from './fields.js'
import { itemHeaders, PUBLISH_HEADERS } from './setting-headers.js'

/** The operations on messages: publish, read, cancel, logs, signing keys. */

const queue = { service: 'queue', topic: 'Messages', auth: 'bearer' } as const
const destination = Type.String({ description: 'Destination URL, unencoded, or the name of a URL group.' })

const PublishReply = Type.Object({
  messageId: Type.String(),
  url: Type.Optional(Type.String()),
  deduplicated: Type.Optional(Type.Boolean()),
  replaced: Type.Optional(
    Type.String({
      description: 'Id of the cancelled message with the same debounce or singleton key, which this one replaces.',
    }),
  ),
  because: Type.Optional(
    Type.String({
      description: 'Why the message was skipped because of its singleton key, or has replaced another one.',
    }),
  ),
  workflowRunId: Type.Optional(Type.String()),
  workflowCreatedAt: Type.Optional(Type.Integer()),
})

const ItemReply = Type.Union([
  PublishReply,
  Type.Array(PublishReply, { description: 'For a URL group: one entry for each endpoint.' }),
])

/** Errors of publishing a message, with or without a queue. */
const PUBLISH_ERRORS = [
  'invalid_request',
  'daily_limit',
  'setting_limit',
  'destination_forbidden',
  'url_group_not_found',
  'run_ended',
  'run_unknown',
  'step_refused',
  'run_fenced',
] as const

/** Publishes one message. */
export const publishMessage = endpoint({
  ...queue,
  id: 'publishMessage',
  method: 'POST',
  path: '/v2/publish/{+destination}',
  access: 'write',
  scopes: ['publish', 'queue', 'flow_control'],
  summary: 'Publish a message to a URL',
  description:
    'Send the destination unencoded after `/v2/publish/`, with its query. The body is delivered unchanged. ' +
    'Settings are headers (`Upstash-Method`, `-Delay`, `-Not-Before`, `-Retries`, `-Retry-Delay`, `-Timeout`, ' +
    '`-Callback`, `-Failure-Callback`, `-Forward-<Name>`, `-Header-Forward`, `-Label`, `-Deduplication-Id`, ' +
    '`-Content-Based-Deduplication`, `-Redact-Fields`, `-Flow-Control-Key`, `-Flow-Control-Value`; `Homeport-Debounce`, `Homeport-Singleton` and their options) or query parameters ' +
    'of the same names in lower case; a header takes precedence. A destination that is not a URL names a URL group: ' +
    'each of its endpoints gets a message, and the response is a list. ' +
    'The response is sent when the message is on disk. A duplicate gets 202 with the id of the first message.',
  params: Type.Object({ destination }),
  headers: PUBLISH_HEADERS,
  body: { kind: 'raw' },
  success: { status: 200, description: 'The message is stored and will be delivered.', body: ItemReply },
  otherAnswers: [
    {
      status: 202,
      description: 'A duplicate, or skipped for its singleton key: the id of the first message.',
      body: PublishReply,
    },
  ],
  errors: PUBLISH_ERRORS,
})

/** Publishes one message into a queue. */
export const enqueueMessage = endpoint({
  ...queue,
  id: 'enqueueMessage',
  method: 'POST',
  path: '/v2/enqueue/{queueName}/{+destination}',
  access: 'write',
  scopes: ['publish', 'queue', 'flow_control'],
  summary: 'Publish a message into a queue',
  description:
    'Like publishing, but the message waits for its turn: a queue delivers its messages in the order of their arrival, ' +
    'and as many at once as its parallelism allows. The queue is created with parallelism 1 if it does not exist. A ' +
    'message with a delay takes its place at once, and its turn lasts at least until the delay is over.',
  params: Type.Object({
    queueName: Type.String({ description: 'The queue. Created if it does not exist.' }),
    destination,
  }),
  headers: PUBLISH_HEADERS,
  body: { kind: 'raw' },
  success: { status: 200, description: 'The message is stored and will be delivered.', body: ItemReply },
  otherAnswers: [
    {
      status: 202,
      description: 'A duplicate, or skipped for its singleton key: the id of the first message.',
      body: PublishReply,
    },
  ],
  errors: PUBLISH_ERRORS,
})

/** An optional text. The SDK for Python sends null instead of leaving out a member. */
const textOrNull = (description: string) => Type.Optional(Type.Union([Type.String(), Type.Null()], { description }))

const BatchItem = Type.Object({
  destination: Type.String({ description: 'A URL, or the name of a URL group.' }),
  headers: itemHeaders('The headers of a publish request.'),
  body: textOrNull('The body as text.'),
  queue: textOrNull('The queue of the message.'),
})

/** Publishes many messages. */
export const publishBatch = endpoint({
  ...queue,
  id: 'publishBatch',
  method: 'POST',
  path: '/v2/batch',
  access: 'write',
  scopes: ['publish', 'queue', 'flow_control'],
  summary: 'Publish many messages in one request',
  description:
    'The response has one entry for each item, in order. A refused item gets an `error`; the other items are ' +
    'published. All accepted items are on disk when the response is sent.',
  body: { kind: 'json', schema: Type.Array(BatchItem), texts: 'long' },
  // The error for a refused step of a run depends on the contents of the item.
  checkedBy: 'handler',
  success: {
    status: 200,
    description: 'The result of each item.',
    body: Type.Array(Type.Union([ItemReply, Type.Object({ error: Type.String() })])),
  },
  errors: [
    'invalid_request',
    'destination_forbidden',
    'run_ended',
    'run_unknown',
    'step_refused',
    'run_fenced',
    'daily_limit',
  ],
})

const messageParams = Type.Object({
  messageId: Type.String({ description: 'Id of the message, from the response to publishing it.' }),
})

/** Reads one message. */
export const getMessage = endpoint({
  ...queue,
  id: 'getMessage',
  method: 'GET',
  path: '/v2/messages/{messageId}',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'Read a message',
  description:
    'Shows a pending message, or a finished one that is still kept. A cancelled message is found only with `cancelled`.',
  params: messageParams,
  query: Type.Object({
    cancelled: Type.Optional(
      Type.Boolean({ description: 'true: also a cancelled message, as long as it is kept. Default: false.' }),
    ),
  }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The message.', body: Message },
  errors: ['message_not_found'],
})

const Cancelled = Type.Object({ cancelled: Type.Integer({ description: 'How many messages were cancelled.' }) })

/** Cancels one message. */
export const cancelMessage = endpoint({
  ...queue,
  id: 'cancelMessage',
  method: 'DELETE',
  path: '/v2/messages/{messageId}',
  access: 'write',
  scopes: [],
  summary: 'Cancel a message',
  description:
    'Cancels a pending message: it is not sent again, a request in flight is aborted and its outcome ignored.',
  params: messageParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The message is cancelled.', body: Cancelled },
  errors: ['message_not_found'],
})

const idList = (description: string) => Type.Optional(Type.Array(Type.String(), { maxItems: MAX_IDS, description }))

const cancelCount = Type.Optional(
  Type.Integer({ minimum: 1, description: 'Most messages, in the order in which they are due. Absent: no limit.' }),
)

const cancelFilters = {
  messageIds: idList('Only these messages. All other filters are ignored.'),
  ...FILTERS,
  ...DESTINATION_FILTERS,
  count: cancelCount,
}

const oneOrMore = Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: MAX_FILTER_VALUES })]))

/** In a body, a filter may be one text instead of a list. */
const cancelBody = {
  messageIds: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: MAX_IDS })])),
  url: oneOrMore,
  host: oneOrMore,
  path: oneOrMore,
  label: oneOrMore,
  flowControlKey: oneOrMore,
  callerIp: oneOrMore,
  callerIP: oneOrMore,
  topicName: oneOrMore,
  queueName: oneOrMore,
  scheduleId: oneOrMore,
  fromDate: FILTERS.fromDate,
  toDate: FILTERS.toDate,
  count: cancelCount,
}

/** Cancels many messages. */
export const cancelMessages = endpoint({
  ...queue,
  id: 'cancelMessages',
  method: 'DELETE',
  path: '/v2/messages',
  access: 'write',
  scopes: [],
  summary: 'Cancel messages in bulk',
  description:
    'Selects by ids or by filters, in the query or in the JSON body. Without ids and filters, all pending messages ' +
    'are cancelled. Date filters apply to the time of publishing. An unknown filter is refused, and nothing is cancelled.',
  query: Type.Object(cancelFilters, { additionalProperties: false }),
  body: { kind: 'json', schema: Type.Object(cancelBody, { additionalProperties: false }), optional: true },
  success: { status: 200, description: 'How many were cancelled.', body: Cancelled },
  errors: ['invalid_request', 'bulk_action_interrupted'],
})

/** Unknown parameters of a read are ignored: clients that are newer than this server send some. */
const eventFilters = Type.Object({
  state: Type.Optional(
    Type.Array(Type.Enum([...EVENT_STATES, 'CANCELLED', 'IN_PROGRESS']), {
      description: 'Entries in this state. IN_PROGRESS means ACTIVE, RETRY and ERROR.',
    }),
  ),
  messageId: idList('Entries of this message.'),
  messageIds: idList('Entries of these messages.'),
  ...FILTERS,
  ...DESTINATION_FILTERS,
  search: searchFilter('Messages whose id, URL, label, queue, URL group or error contains this text'),
  order: Type.Optional(
    Type.Enum(['earliestFirst', 'latestFirst'], {
      description: 'Order by message, then by time. Default latestFirst.',
    }),
  ),
  count: Type.Optional(Type.Integer({ minimum: 1, description: 'Entries per page, at most 1000. Default 100.' })),
  cursor: Type.Optional(
    Type.String({
      description: 'Where the page begins: the `cursor` of the previous page, or a time in Unix milliseconds.',
    }),
  ),
  trimBody: Type.Optional(Type.Integer({ minimum: 0, description: 'Truncate bodies to this many bytes.' })),
  groupBy: Type.Optional(Type.Enum(['messageId'], { description: 'Group the entries by message, as `messages`.' })),
})

const EventPage = Type.Object({
  events: Type.Array(Event, { description: 'The entries; empty with `groupBy`.' }),
  logs: Type.Array(Event, { description: 'The same entries under their newer name.' }),
  messages: Type.Optional(
    Type.Array(MessageLog, {
      description: 'The entries by message. Present with `groupBy`, and when `messageId` is a single id.',
    }),
  ),
  cursor: Type.Optional(Type.String()),
  searchedTo,
})

const eventsDescription =
  'What happened to messages: published, attempted, retried, ended. Entries are ordered by message (newest first), ' +
  'then by time. Date filters apply to the time of the entry. `count` counts entries, also when they are grouped. With filters, a request looks at a limited number of messages: a page may have fewer entries, or none, and still a `cursor`: send it with the next request to continue.'

const logAt = (id: string, path: string, summary: string) =>
  endpoint({
    ...queue,
    id,
    method: 'GET',
    path,
    access: 'read',
    cost: 'heavy',
    scopes: ['read'],
    summary,
    description: eventsDescription,
    query: eventFilters,
    body: { kind: 'none' },
    success: { status: 200, description: 'A page. `cursor` is absent on the last page.', body: EventPage },
    errors: ['invalid_request'],
  })

/** Reads the log. */
export const listEvents = logAt('listEvents', '/v2/events', 'Read the log of messages')
/** Reads the log by its newer path. */
export const listLogs = logAt('listLogs', '/v2/logs', 'Read the log of messages, by its newer path')

const Keys = Type.Object({
  current: Type.String({ description: 'The key that signs deliveries now.' }),
  next: Type.String({
    description: 'The key that signs deliveries after the next rotation. Receivers accept it, too.',
  }),
})

/** Reads the signing keys. */
export const getSigningKeys = endpoint({
  ...queue,
  id: 'getSigningKeys',
  topic: 'Signing keys',
  method: 'GET',
  path: '/v2/keys',
  access: 'read',
  scopes: [],
  summary: 'Read the signing keys',
  description: 'Deliveries are signed with the current key. A receiver accepts both.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The keys.', body: Keys },
  errors: [],
})

const rotateKeys = (id: string, method: 'GET' | 'POST', summary: string) =>
  endpoint({
    ...queue,
    id,
    topic: 'Signing keys',
    method,
    path: '/v2/keys/rotate',
    access: 'write',
    scopes: [],
    summary,
    description: 'The next key becomes the current key and signs deliveries from now on. A new next key is created.',
    body: { kind: 'none' },
    success: { status: 200, description: 'The new keys.', body: Keys },
    errors: [],
  })

/** Rotates the signing keys. */
export const rotateSigningKeys = rotateKeys('rotateSigningKeys', 'POST', 'Rotate the signing keys')
/** Rotates the signing keys, by the method of older clients. */
export const rotateSigningKeysByGet = rotateKeys(
  'rotateSigningKeysByGet',
  'GET',
  'Rotate the signing keys, by the method of older clients',
)
