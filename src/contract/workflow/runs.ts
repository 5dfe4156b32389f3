import Type from 'typebox'
import { endpoint } from '../endpoint.js'

/** The wire of workflow runs: triggering, ending and reading them. Steps come back through the queue's own endpoints. */

/** Where a run stands. */
export const RUN_STATES = ['RUN_STARTED', 'RUN_SUCCESS', 'RUN_FAILED', 'RUN_CANCELED'] as const

/** A time of the wire. */
export const ms = (description: string) => Type.Integer({ description: `${description}, Unix milliseconds.` })
const texts = (description: string) =>
  Type.Optional(Type.Array(Type.String({ minLength: 1 }), { description: `${description} Several mean any of them.` }))
/** The id of a run, as a path parameter. */
export const runId = Type.String({ minLength: 1, description: 'Id of the run.' })

const Triggered = Type.Object({
  workflowRunId: Type.String(),
  workflowCreatedAt: ms('When the run was made'),
  deduplicated: Type.Optional(
    Type.Literal(true, { description: 'A run with this id was there before; nothing was done.' }),
  ),
})

const settings =
  'Settings are headers (or query parameters of the same name in lower case): `Upstash-Workflow-RunId`, `Upstash-Forward-*`, `Upstash-Retries`, `Upstash-Retry-Delay`, `Upstash-Delay`, `Upstash-Not-Before`, `Upstash-Label`, `Upstash-Flow-Control-Key`, `Upstash-Flow-Control-Value`, `Upstash-Failure-Callback`.'

/** Triggers a run over plain HTTP. */
export const triggerRun = endpoint({
  id: 'triggerWorkflow',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'POST',
  path: '/v2/trigger/{+destination}',
  auth: 'bearer',
  access: 'write',
  summary: 'Trigger a workflow run',
  description: `Starts a run of the workflow at the URL that follows in the path, with the request body as its payload. ${settings} Without a run id one is made; an id that is taken starts nothing.`,
  params: Type.Object({ destination: Type.String({ description: 'URL of the workflow, as it is, with its query.' }) }),
  body: { kind: 'raw' },
  success: { status: 200, description: 'The run is stored and will be delivered.', body: Triggered },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden', 'body_too_large', 'run_fenced'],
})

const TriggerItem = Type.Object({
  destination: Type.String({ minLength: 1, description: 'URL of the workflow.' }),
  body: Type.Optional(Type.String({ description: 'Payload of the run.' })),
  headers: Type.Optional(Type.Record(Type.String(), Type.String(), { description: settings })),
})

/** Triggers many runs at once. */
export const triggerRuns = endpoint({
  id: 'triggerWorkflows',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'POST',
  path: '/v2/batch/trigger',
  auth: 'bearer',
  access: 'write',
  summary: 'Trigger many workflow runs',
  description: 'Starts a run for each element, all or none of them. The answers have the order of the elements.',
  body: { kind: 'json', schema: Type.Array(TriggerItem, { maxItems: 10_000 }), texts: 'long' },
  success: { status: 201, description: 'The runs are stored and will be delivered.', body: Type.Array(Triggered) },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden', 'body_too_large', 'run_fenced'],
})

const RawStep = Type.Object({
  messageId: Type.String(),
  body: Type.String({
    description: 'Base64; of the first element the payload, of the others the step as it was sent.',
  }),
  callType: Type.Enum(['step', 'toCallback', 'fromCallback', 'failureCall']),
})

/** Reads the list of a run that is going on. */
export const getRunSteps = endpoint({
  id: 'getWorkflowRunSteps',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'GET',
  path: '/v2/workflows/runs/{workflowRunId}',
  auth: 'bearer',
  access: 'read',
  summary: 'Steps of a run that is going on',
  description: 'The list that deliveries carry. SDKs ask for it when a list is too large to be sent.',
  params: Type.Object({ workflowRunId: runId }),
  body: { kind: 'none' },
  success: { status: 200, description: 'All elements in order.', body: Type.Array(RawStep) },
  errors: ['run_not_found', 'run_not_going_on'],
})

/** Ends one run. */
export const endRun = endpoint({
  id: 'endWorkflowRun',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'DELETE',
  path: '/v2/workflows/runs/{workflowRunId}',
  auth: 'bearer',
  access: 'write',
  summary: 'Cancel a run, or finish it',
  description:
    'Cancels the run forever: nothing of it is delivered again, a request in flight is aborted, its failure function is not called. With `cancel=false`, which only SDKs send, the run has returned: the body is its result. Both may be repeated.',
  params: Type.Object({ workflowRunId: runId }),
  // A misspelt `cancel` must not turn a return into a cancellation.
  query: Type.Object(
    { cancel: Type.Optional(Type.Boolean({ description: 'false: finish with success. Default true.' })) },
    { additionalProperties: false },
  ),
  body: { kind: 'raw' },
  success: {
    status: 200,
    description: 'The run has ended: now, or before in the same way.',
    body: Type.Object({ workflowRunId: Type.String(), workflowState: Type.Enum([...RUN_STATES]) }),
  },
  errors: ['run_not_found', 'run_not_cancelable', 'step_refused'],
})

const AttemptError = Type.Object({
  error: Type.String({
    description: 'Why there was no answer; else what the program threw, what the answer says, or its status.',
  }),
  status: Type.Integer({ description: '0 when there was no answer.' }),
  headers: Type.Record(Type.String(), Type.Array(Type.String())),
  body: Type.String(),
  time: ms('When the attempt began'),
})

/** A step as run logs show it; which members there are depends on its type and state. */
export const RunStep = Type.Partial(
  Type.Object({
    stepId: Type.Integer(),
    stepName: Type.String(),
    stepType: Type.String(),
    callType: Type.String(),
    messageId: Type.String(),
    out: Type.Unknown({ description: 'What the step came to, as text.' }),
    concurrent: Type.Integer(),
    state: Type.Enum(['STEP_PROGRESS', 'STEP_SUCCESS', 'STEP_RETRY', 'STEP_FAILED', 'STEP_CANCELED']),
    createdAt: ms('When the step came'),
    retries: Type.Integer({ description: 'How many retries the delivery has.' }),
    retryDelay: Type.String(),
    headers: Type.Record(Type.String(), Type.Array(Type.String())),
    sleepFor: Type.Unknown(),
    sleepUntil: ms('When the run goes on'),
    callUrl: Type.String(),
    callMethod: Type.String(),
    callBody: Type.Unknown(),
    callHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    callResponseStatus: Type.Integer(),
    callResponseBody: Type.Unknown(),
    callResponseHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    invokedWorkflowRunId: Type.String(),
    invokedWorkflowUrl: Type.String(),
    invokedWorkflowCreatedAt: ms('When the invoked run was made'),
    invokedWorkflowRunBody: Type.Unknown({ description: 'The first 4 KiB of its payload, as text.' }),
    invokedWorkflowRunHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    waitEventId: Type.String(),
    waitTimeoutDuration: Type.String({ description: 'After which the wait is given up, such as 90s.' }),
    waitTimeoutDeadline: ms('When the wait is given up'),
    waitTimeout: Type.Boolean({ description: 'The wait was given up.' }),
    errors: Type.Array(AttemptError),
    nextDeliveryTime: ms('When the next attempt is due'),
  }),
)

const StepGroup = Type.Object({
  type: Type.Enum(['sequential', 'parallel', 'next']),
  steps: Type.Array(RunStep),
})

const FailureFunction = Type.Partial(
  Type.Object({
    messageId: Type.String(),
    url: Type.String(),
    state: Type.Enum(['CALLBACK_INPROGRESS', 'CALLBACK_SUCCESS', 'CALLBACK_FAIL', 'CALLBACK_CANCELED']),
    failStatus: Type.Integer(),
    failResponse: Type.String(),
    failHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    dlqId: Type.String(),
    errors: Type.Array(AttemptError),
    responseStatus: Type.Integer(),
    responseBody: Type.String(),
    responseHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    maxRetries: Type.Integer(),
    nextDeliveryTime: ms('When the failure function is called next'),
  }),
)

const optionalText = Type.Optional(Type.String())

/** Why a run that has not ended stands where it does; which members there are depends on `kind`. */
export const Because = Type.Object({
  kind: Type.Enum([
    'bulk-cancel',
    'event',
    'webhook',
    'invoked-run',
    'delayed',
    'sleeping',
    'retry',
    'in-flight',
    'flow-control',
    'queued',
    'discarded-branch',
    'no-step',
  ]),
  text: Type.String({ description: 'The same in words.' }),
  since: Type.Optional(ms('Since when')),
  until: Type.Optional(ms('When the wait, sleep, delay or period of the key ends by itself')),
  at: Type.Optional(ms('When the retry is due')),
  retry: Type.Optional(Type.Integer({ description: 'The retry that comes next, beginning with 1.' })),
  of: Type.Optional(Type.Integer({ description: 'How many retries there are.' })),
  status: Type.Optional(Type.Integer({ description: 'Of the attempt before; 0 when there was no answer.' })),
  error: Type.Optional(Type.String({ description: 'Why there was no answer, or the `message` of the answer.' })),
  stepName: Type.Optional(Type.String({ description: 'The step that it is about, where that is known.' })),
  url: optionalText,
  messageId: optionalText,
  eventId: optionalText,
  flowControlKey: optionalText,
  actionId: Type.Optional(Type.String({ description: 'The bulk action that is going to cancel the run.' })),
  reason: Type.Optional(Type.String({ description: 'Why it does, in the words of who has started it.' })),
  ratePerSecond: Type.Optional(Type.Integer({ description: 'How many runs it may cancel a second.' })),
  paused: Type.Optional(Type.Boolean({ description: 'The flow-control key, or the bulk action, is paused.' })),
  parallelism: Type.Optional(Type.Integer({ description: 'So many calls of the key may be open at once, and are.' })),
  rate: Type.Optional(Type.Integer({ description: 'So many calls of the key may begin in a period, and have.' })),
  periodMs: Type.Optional(Type.Integer({ description: 'How long a period of the key is, milliseconds.' })),
  place: Type.Optional(
    Type.Integer({
      description:
        'In the line of the flow-control key, from 1, counting what is under way; or among the runs that the bulk action still has before it.',
    }),
  ),
  branches: Type.Optional(
    Type.Array(Type.String(), { description: 'Parallel branches whose deliveries were answered without a result.' }),
  ),
  workflowRunId: optionalText,
  workflowUrl: optionalText,
})

/** A run with its steps, as run logs show it. */
export const RunLog = Type.Object({
  workflowRunId: Type.String(),
  workflowUrl: Type.String(),
  workflowState: Type.Enum([...RUN_STATES]),
  workflowRunCreatedAt: ms('When the run was made'),
  workflowRunCompletedAt: Type.Optional(ms('When it ended')),
  workflowRunCallerIp: optionalText,
  workflowRunResponse: optionalText,
  dlqId: optionalText,
  label: optionalText,
  labels: Type.Optional(Type.Array(Type.String())),
  flowControlKey: optionalText,
  invoker: Type.Optional(
    Type.Object({
      workflowRunId: Type.String(),
      workflowUrl: Type.String(),
      workflowRunCreatedAt: ms('When the invoking run was made'),
    }),
  ),
  failureFunction: Type.Optional(FailureFunction),
  canceledBy: Type.Optional(
    Type.Object(
      { actionId: Type.String(), actor: Type.String(), reason: optionalText },
      { description: 'The bulk action that cancelled the run, while that is kept: who, and why if they said so.' },
    ),
  ),
  because: Type.Optional(
    Type.Array(Because, {
      description: 'Why the run waits, one entry for each branch. Only of runs that have not ended.',
    }),
  ),
  steps: Type.Array(StepGroup),
})

const logQuery = Type.Object({
  cursor: Type.Optional(Type.String({ description: 'Of the page before.' })),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Runs of a page. Default 10.' })),
  state: texts('Runs in this state.'),
  workflowRunId: texts('These runs.'),
  workflowRuns: texts('These runs, each with the time of its creation: `<id>@<Unix milliseconds>`.'),
  workflowUrl: texts('Runs of this exact URL.'),
  workflowCreatedAt: Type.Optional(ms('Runs made at this very time')),
  messageId: Type.Optional(Type.String({ description: 'The run to which this message belongs.' })),
  label: texts('Runs that carry this label.'),
  host: texts('Runs whose URL has this host.'),
  path: texts('Runs whose URL has this path.'),
  callerIp: texts('Runs triggered from this address.'),
  flowControlKey: texts('Runs of this flow-control key.'),
  fromDate: Type.Optional(ms('Runs made at or after this time')),
  toDate: Type.Optional(ms('Runs made at or before this time')),
  groupBy: Type.Optional(Type.Enum(['workflowRunId'], { description: 'Runs only, without the flat list of events.' })),
  trimBody: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Bodies and results are cut to this many characters.' }),
  ),
})

const nextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }))

/** Something that has happened to a run. */
export const RunEvent = Type.Object({
  time: ms('When it happened'),
  state: Type.Enum([
    ...RUN_STATES,
    'STEP_PROGRESS',
    'STEP_SUCCESS',
    'STEP_RETRY',
    'STEP_FAILED',
    'STEP_CANCELED',
    'WAITER_ADDED',
    'INVOKED',
  ]),
  workflowRunId: Type.String(),
  workflowUrl: Type.String(),
  workflowCreatedAt: ms('When the run was made'),
  messageId: Type.Optional(Type.String()),
  stepInfo: Type.Optional(RunStep),
  error: Type.Optional(Type.String()),
  responseStatus: Type.Optional(Type.Integer({ description: 'Of a failed attempt; 0 when there was no answer.' })),
  nextDeliveryTime: Type.Optional(ms('When the next attempt is due')),
})

const logsAnswer = Type.Object({
  cursor: nextCursor,
  runs: Type.Array(RunLog),
  events: Type.Optional(
    Type.Array(RunEvent, { description: 'Under `/v2/workflows/events` without `groupBy`: the same runs, flat.' }),
  ),
})

const logs = (id: string, path: string, summary: string) =>
  endpoint({
    id,
    service: 'queue',
    topic: 'Workflow runs',
    method: 'GET',
    path,
    auth: 'bearer',
    access: 'read',
    summary,
    description:
      'Runs with their steps: finished ones in groups that were sequential or parallel, and under `next` what is going on, being retried, or failed.',
    query: logQuery,
    body: { kind: 'none' },
    success: { status: 200, description: 'A page of runs.', body: logsAnswer },
    errors: ['invalid_request'],
  })

/** Run logs under their REST name and under the name that SDKs use. */
export const listRuns = logs('listWorkflowRuns', '/v2/workflows/logs', 'Read the logs of runs')
export const listRunEvents = logs(
  'listWorkflowEvents',
  '/v2/workflows/events',
  'Read the logs of runs, by the path of SDKs',
)

/** What has happened to runs, flat: the older form of run logs. */
export const listRunMessageLogs = endpoint({
  id: 'listWorkflowMessageLogs',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'GET',
  path: '/v2/workflows/messageLogs',
  auth: 'bearer',
  access: 'read',
  summary: 'Read what has happened to runs, as a flat list',
  description:
    'The run logs as a flat list. A page holds all events of its runs: `count` and `cursor` count runs, not events.',
  query: logQuery,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page of events.',
    body: Type.Object({ cursor: nextCursor, events: Type.Array(RunEvent) }),
  },
  errors: ['invalid_request'],
})
