import Type from 'typebox'
import { type Endpoint, endpoint } from '../endpoint.js'
import { ms, runId } from './runs.js'

/** The wire of events: runs wait for them, others notify, webhooks turn requests into them. */

/** Senders of webhooks are strangers: what they send is kept, so it has to be small. */
const MOST_WEBHOOK_BYTES = 2 ** 20

const eventId = Type.String({ description: 'Name of the event.' })

const Waiter = Type.Object({
  url: Type.String(),
  deadline: Type.Integer({ description: 'Unix seconds.' }),
  headers: Type.Record(Type.String(), Type.Array(Type.String())),
  timeoutUrl: Type.String(),
  timeoutBody: Type.Null(),
  timeoutHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
})

/** Registers that a run waits for an event. */
export const waitForEvent = endpoint({
  id: 'waitForEvent',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'POST',
  path: '/v2/wait/{+eventId}',
  auth: 'bearer',
  access: 'write',
  summary: 'Let a run wait for an event',
  description: 'Sent by SDKs. The run goes on when the event comes or the timeout has passed.',
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
  // What is wrong must not be answered with 400, by which SDKs know that a run has ended.
  checkedBy: 'handler',
  success: { status: 200, description: 'The wait is stored.', body: Type.Object({ messageId: Type.String() }) },
  errors: ['step_refused', 'run_ended', 'run_unknown'],
})

/** Lets the runs that wait for an event go on. */
export const notifyEvent = endpoint({
  id: 'notifyEvent',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'POST',
  path: '/v2/notify/{+event}',
  auth: 'bearer',
  access: 'write',
  summary: 'Notify runs of an event',
  description:
    'Every run that waits for the event goes on, with the request body as the data of the event. `/v2/notify/{workflowRunId}/{eventId}` means one run only, and the event is kept until that run waits for it.',
  params: Type.Object({ event: Type.String({ description: '`{eventId}` or `{workflowRunId}/{eventId}`.' }) }),
  body: { kind: 'raw' },
  success: {
    status: 201,
    description: 'The waits that have ended; empty when nobody waited.',
    body: Type.Array(
      Type.Object({
        waiter: Waiter,
        messageId: Type.String(),
        deduplicated: Type.Boolean(),
        workflowRunId: Type.String(),
        workflowCreatedAt: ms('When the run was made'),
      }),
    ),
  },
  errors: ['run_events_full'],
})

/** Who waits for an event. */
export const listWaiters = endpoint({
  id: 'listWaiters',
  service: 'queue',
  topic: 'Events and webhooks',
  method: 'GET',
  path: '/v2/waiters/{+eventId}',
  auth: 'bearer',
  access: 'read',
  summary: 'Runs that wait for an event',
  description: 'The waits for an event, oldest first.',
  params: Type.Object({ eventId }),
  body: { kind: 'none' },
  success: { status: 200, description: 'Who waits.', body: Type.Array(Waiter) },
  errors: [],
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
      'The address that `context.createWebhook` makes. The whole request goes to the run that waits for it, or is kept until the run waits. Needs no credentials: whoever knows the address may call it, and only addresses that the run has made are known. A body has at most 1 MiB.',
    params: Type.Object({ userId: Type.String({ description: 'Id of the account.' }), workflowRunId: runId, eventId }),
    body: { kind: 'raw', mostBytes: MOST_WEBHOOK_BYTES },
    success: {
      status: 200,
      description: 'The run has the request, or will get it.',
      body: Type.Object({ received: Type.Literal(true) }),
    },
    errors: ['run_not_found', 'run_events_full'],
  })

/**
 * Webhooks take any method: some senders make sure of an address with HEAD before they use it. HEAD stands first, or the
 * router would take it for a GET without a body.
 */
export const webhooks = (['HEAD', 'GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const).map(hook)
