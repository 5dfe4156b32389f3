import Type from 'typebox'
import { type Endpoint, endpoint } from '../endpoint.js'
import { whole } from '../words/figures.js'
import { NOTIFIED_OUTCOMES } from './event-outcomes.js'
import { ms, runId } from './runs.js'

/** The wire of events: runs wait for events, programs notify them, webhooks turn requests into events. */

/** Senders of webhooks need no credentials and the server stores their requests, so the limit is small. */
const MAX_WEBHOOK_BYTES = 2 ** 20

const eventId = Type.String({ description: 'Name of the event.' })

const Waiter = Type.Object({
  url: Type.String(),
  deadline: Type.Integer({ description: 'Unix seconds.' }),
  headers: Type.Record(Type.String(), Type.Array(Type.String())),
  timeoutUrl: Type.String(),
  timeoutBody: Type.Null(),
  timeoutHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
})

/** Makes a run wait for an event. */
export const waitForEvent = endpoint({
  id: 'waitForEvent',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'POST',
  path: '/v2/wait/{+eventId}',
  auth: 'bearer',
  access: 'write',
  scopes: ['publish'],
  summary: 'Make a run wait for an event',
  description: 'Sent by SDKs. The run continues when the event is notified or the timeout has passed.',
  params: Type.Object({ eventId }),
  body: {
    kind: 'json',
    schema: Type.Object({
      url: Type.String({ minLength: 1 }),
      timeout: Type.Optional(Type.String({ description: 'A duration such as 7d. Default 7d.' })),
      timeoutUrl: Type.Optional(Type.String()),
      timeoutHeaders: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
      step: Type.Record(Type.String(), Type.Unknown(), { description: 'The step that the event completes.' }),
    }),
  },
  // An invalid request must not get 400: SDKs would consider the run ended.
  checkedBy: 'handler',
  success: { status: 200, description: 'The wait is stored.', body: Type.Object({ messageId: Type.String() }) },
  errors: ['step_refused', 'run_ended', 'run_unknown'],
})

const Notified = Type.Array(
  Type.Object({
    waiter: Waiter,
    messageId: Type.String(),
    deduplicated: Type.Boolean(),
    error: Type.String({ description: 'Always empty. SDKs expect it.' }),
    workflowRunId: Type.String(),
    workflowCreatedAt: ms('When the run was created'),
  }),
)

/** Notifies one run of an event. */
export const notifyRun = endpoint({
  id: 'notifyRun',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'POST',
  path: '/v2/notify/{workflowRunId}/{eventId}',
  auth: 'bearer',
  access: 'write',
  scopes: ['publish'],
  summary: 'Notify one run of an event',
  description:
    'The run continues with the request body as the data of the event. If the run does not wait for the event yet, the event is stored until it does.',
  params: Type.Object({ workflowRunId: runId, eventId }),
  body: { kind: 'raw' },
  success: { status: 201, description: 'The waits that have ended; empty when the run did not wait.', body: Notified },
  errors: ['run_events_full', 'step_refused'],
})

/** Notifies the runs that wait for an event. */
export const notifyEvent = endpoint({
  id: 'notifyEvent',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'POST',
  path: '/v2/notify/{+event}',
  auth: 'bearer',
  access: 'write',
  scopes: ['publish'],
  summary: 'Notify runs of an event',
  description:
    'All runs that wait for the event continue, with the request body as the data of the event. `/v2/notify/{workflowRunId}/{eventId}` notifies one run only, and the event is stored until that run waits for it.',
  params: Type.Object({ event: Type.String({ description: '`{eventId}` or `{workflowRunId}/{eventId}`.' }) }),
  aliases: [notifyRun],
  body: { kind: 'raw' },
  success: {
    status: 201,
    description: 'The waits that have ended; empty when no run waited.',
    body: Notified,
  },
  errors: ['run_events_full', 'step_refused'],
})

/** Most waits in a response to a request without `Homeport-Count`, as in the reference; further ones need a cursor. */
export const MAX_WAITERS = 10_000
/** Most waits on a page, the largest `Homeport-Count`. */
export const MAX_WAITERS_OF_PAGE = 1_000
/** The header that asks for pages. It is not a query parameter, because a question mark would be part of the event id. */
export const WAITERS_COUNT = 'Homeport-Count'
/** The header with the cursor: in a response that is not the last page, and in the request for the next page. */
export const WAITERS_CURSOR = 'Homeport-Cursor'

/** Lists the waits for an event. */
export const listWaiters = endpoint({
  id: 'listWaiters',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'GET',
  path: '/v2/waiters/{+eventId}',
  auth: 'bearer',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List the runs that wait for an event',
  description: `The waits for an event, oldest first: up to ${whole(MAX_WAITERS)}, or as many as the header \`${WAITERS_COUNT}\` says; fewer if they take more than 16 MiB. If there are more, the response has the header \`${WAITERS_CURSOR}\`: send it with the next request.`,
  params: Type.Object({ eventId }),
  headers: Type.Object({
    [WAITERS_COUNT]: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_WAITERS_OF_PAGE, description: 'Waits per page.' }),
    ),
    [WAITERS_CURSOR]: Type.Optional(
      Type.String({ description: 'The cursor from the response with the previous page.' }),
    ),
  }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The waits.', body: Type.Array(Waiter) },
  errors: ['invalid_request'],
})

/** An event that runs wait for. */
export const AwaitedEventSchema = Type.Object({
  eventId,
  waiting: Type.Integer({ description: 'Waits for the event; 1,000 when there are more.' }),
  atLeast: Type.Boolean({ description: 'Whether there are more waits than `waiting`.' }),
  since: ms('When the oldest of them began'),
  firstTimeout: ms('When the first of them times out'),
})

/** Lists the events that runs wait for. */
export const listAwaitedEvents = endpoint({
  id: 'listAwaitedEvents',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'GET',
  path: '/v2/waiters',
  auth: 'bearer',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List the events that runs wait for',
  description:
    'One entry for each event, by its id. A page takes the same time however many runs wait. Upstash has no such operation.',
  query: Type.Object({
    prefix: Type.Optional(Type.String({ description: 'Only events whose id begins with this text.' })),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Events per page. Default 100.' })),
    cursor: Type.Optional(Type.String({ description: 'The `cursor` of the previous page.' })),
  }),
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The events.',
    body: Type.Object({ cursor: Type.Optional(Type.String()), events: Type.Array(AwaitedEventSchema) }),
  },
  errors: [],
})

/** An event that was received. */
export const NotifiedEventSchema = Type.Object({
  eventId,
  at: ms('When it was received'),
  by: Type.Enum(['token', 'webhook'], {
    description: '`token`: a notification request sent it. `webhook`: the call of a webhook sent it.',
  }),
  outcome: Type.Enum([...NOTIFIED_OUTCOMES], {
    description:
      '`woke`: runs that waited for it continue. `kept`: it is stored until the run to which it was sent waits for it. `nobody`: no run waited.',
  }),
  woken: Type.Integer({ description: 'Runs that continue.' }),
  workflowRunIds: Type.Array(Type.String(), {
    description: 'The first 10 runs that continue, or the run for which the event is stored; without deleted runs.',
  }),
  bytes: Type.Integer({ description: 'Size of its data.' }),
})

/** Lists the events that were received. */
export const listNotifiedEvents = endpoint({
  id: 'listNotifiedEvents',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'GET',
  path: '/v2/notify',
  auth: 'bearer',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List the events that were received',
  description:
    'Newest first, including events for which no run waited. The newest 10,000 events of the last 3 days are kept, without their data. Webhook calls for unknown runs and refused events are not listed. Upstash has no such operation.',
  query: Type.Object({
    eventId: Type.Optional(Type.String({ description: 'Only this event.' })),
    prefix: Type.Optional(Type.String({ description: 'Only events whose id begins with this text.' })),
    outcome: Type.Optional(Type.Enum([...NOTIFIED_OUTCOMES], { description: 'Only events with this outcome.' })),
    fromDate: Type.Optional(ms('Events received at or after this time')),
    toDate: Type.Optional(ms('Events received at or before this time')),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Events per page. Default 100.' })),
    cursor: Type.Optional(Type.String({ pattern: '^[0-9]{1,15}$', description: 'The `cursor` of the previous page.' })),
  }),
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The events.',
    body: Type.Object({ cursor: Type.Optional(Type.String()), events: Type.Array(NotifiedEventSchema) }),
  },
  errors: ['invalid_request'],
})

const hook = (method: Endpoint['method']) =>
  endpoint({
    id: `callWebhook${method.charAt(0)}${method.slice(1).toLowerCase()}`,
    service: 'queue',
    topic: 'Events and webhooks',
    method,
    path: '/v2/workflows/hooks/{userId}/{workflowRunId}/{+eventId}',
    auth: 'none',
    access: 'write',
    summary: `Call a webhook of a run with ${method}`,
    description:
      'The URL that `context.createWebhook` creates. The run that waits for the webhook gets the whole request; if it does not wait yet, the request is stored until it does. The call needs no credentials: anyone with the URL may call it. URLs that the run has not created are refused. The body may have at most 1 MiB.',
    params: Type.Object({ userId: Type.String({ description: 'Id of the account.' }), workflowRunId: runId, eventId }),
    body: { kind: 'raw', maxBytes: MAX_WEBHOOK_BYTES },
    success: {
      status: 200,
      description: 'The run has received the request, or will receive it when it waits for it.',
      body: Type.Object({ received: Type.Literal(true) }),
    },
    errors: ['webhook_not_found', 'run_events_full'],
  })

/**
 * The operations that call a webhook, one for each method: some senders check a URL with HEAD before they use it. HEAD must
 * be first, or the router would handle it as a GET without a body.
 */
export const webhooks = (['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const).map(hook)
