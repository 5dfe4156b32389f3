import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { itemHeaders, TRIGGER_HEADERS } from '../queue/setting-headers.js'
import { searchedTo, searchFilter } from '../search.js'
import { Because } from './because.js'
import { BroughtBack, CancelledBy, ReplacedBy, RunOrigin, RunPaused } from './run-history.js'
import { MAX_SORTED, RUN_SORTS } from './run-order.js'
import { RUN_STATES, STEP_STATES } from './run-states.js'

/** The wire of workflow runs: trigger, cancel, read. SDKs return steps through the endpoints of the queue. */

/** A time of the wire. */
export const ms = (description: string) => Type.Integer({ description: `${description}, Unix milliseconds.` })
const texts = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), { description: `${description} Several values match any of them.` }),
  )
/** The id of a run, as a path parameter. */
export const runId = Type.String({ minLength: 1, description: 'Id of the run.' })

const Triggered = Type.Object({
  workflowRunId: Type.String(),
  workflowCreatedAt: ms('When the run was created'),
  deduplicated: Type.Optional(
    Type.Literal(true, {
      description: 'A run with this id already exists, or another one holds the singleton key; no run was started.',
    }),
  ),
  replaced: Type.Optional(
    Type.String({
      description: 'Id of the cancelled run with the same debounce or singleton key, which this one replaces.',
    }),
  ),
  because: Type.Optional(
    Type.String({ description: 'Why no run was started because of its key, or why another run was cancelled.' }),
  ),
})

const settings =
  'Settings are headers (or query parameters of the same name in lower case): `Upstash-Workflow-RunId`, `Upstash-Forward-*`, `Upstash-Retries`, `Upstash-Retry-Delay`, `Upstash-Delay`, `Upstash-Not-Before`, `Upstash-Label`, `Upstash-Flow-Control-Key`, `Upstash-Flow-Control-Value`, `Upstash-Failure-Callback`; `Homeport-Debounce`, `Homeport-Singleton` and their options.'

/** Triggers a run over plain HTTP. */
export const triggerRun = endpoint({
  id: 'triggerWorkflow',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'POST',
  path: '/v2/trigger/{+destination}',
  auth: 'bearer',
  access: 'write',
  scopes: ['publish'],
  summary: 'Trigger a workflow run',
  description: `Starts a run of the workflow at the URL that follows in the path, with the request body as its payload. ${settings} Without a run id the server creates one. If a run with the id already exists, no run is started.`,
  params: Type.Object({ destination: Type.String({ description: 'URL of the workflow, unencoded, with its query.' }) }),
  headers: TRIGGER_HEADERS,
  body: { kind: 'raw' },
  success: { status: 200, description: 'The run is stored and will be delivered.', body: Triggered },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden', 'body_too_large', 'run_fenced', 'daily_limit'],
})

const TriggerItem = Type.Object({
  destination: Type.String({ minLength: 1, description: 'URL of the workflow.' }),
  body: Type.Optional(Type.String({ description: 'Payload of the run.' })),
  headers: itemHeaders(settings),
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
  scopes: ['publish'],
  summary: 'Trigger many workflow runs',
  description: 'Starts one run for each element: all runs or none. The response has the order of the elements.',
  body: { kind: 'json', schema: Type.Array(TriggerItem, { maxItems: 10_000 }), texts: 'long' },
  success: { status: 201, description: 'The runs are stored and will be delivered.', body: Type.Array(Triggered) },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden', 'body_too_large', 'run_fenced', 'daily_limit'],
})

const RawStep = Type.Object({
  messageId: Type.String(),
  body: Type.String({
    description: 'Base64. The payload in the first element, the step as it was sent in all others.',
  }),
  callType: Type.Enum(['step', 'toCallback', 'fromCallback', 'failureCall']),
})

/** Reads the list of elements of an active run. */
export const getRunSteps = endpoint({
  id: 'getWorkflowRunSteps',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'GET',
  path: '/v2/workflows/runs/{workflowRunId}',
  auth: 'bearer',
  access: 'read',
  scopes: ['read'],
  cost: 'heavy',
  summary: 'List the steps of an active run',
  description: 'The list of steps that deliveries contain. SDKs request it when it is too large for a delivery.',
  params: Type.Object({ workflowRunId: runId }),
  body: { kind: 'none' },
  success: { status: 200, description: 'All elements in order.', body: Type.Array(RawStep) },
  errors: ['run_not_found', 'run_not_active'],
})

/** Cancels or finishes one run. */
export const endRun = endpoint({
  id: 'endWorkflowRun',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'DELETE',
  path: '/v2/workflows/runs/{workflowRunId}',
  auth: 'bearer',
  access: 'write',
  scopes: [],
  summary: 'Cancel a run, or finish it',
  description:
    'Cancels the run: nothing more is delivered, a request in flight is aborted, and the failure function is not called. With `cancel=false`, which only SDKs send, the run has returned and the body is its result. Both requests can be repeated.',
  params: Type.Object({ workflowRunId: runId }),
  // A misspelt `cancel` must not turn a return into a cancellation.
  query: Type.Object(
    { cancel: Type.Optional(Type.Boolean({ description: 'false: finish with success. Default true.' })) },
    { additionalProperties: false },
  ),
  body: { kind: 'raw' },
  success: {
    status: 200,
    description: 'The run has ended in this way, or had already.',
    body: Type.Object({ workflowRunId: Type.String(), workflowState: Type.Enum([...RUN_STATES]) }),
  },
  errors: ['run_not_found', 'run_already_ended', 'step_refused'],
})

const AttemptError = Type.Object({
  error: Type.String({
    description:
      'Why there was no response; otherwise the error that the program threw, the message of the response, or its status.',
  }),
  status: Type.Integer({ description: '0 when there was no response.' }),
  headers: Type.Record(Type.String(), Type.Array(Type.String())),
  body: Type.String(),
  time: ms('When the attempt began'),
})

/** The phases into which the time of a step is divided. */
export const STEP_PHASES = ['flow-control', 'line', 'endpoint', 'call', 'back-off', 'overhead'] as const

const StepTime = Type.Object(
  {
    from: ms('When the step could begin'),
    phases: Type.Array(
      Type.Object({
        phase: Type.Enum([...STEP_PHASES], {
          description:
            '`flow-control`: the step waited for its flow-control key. `line`: it waited for its turn among all messages. `endpoint`: the program of the run processed the request. `call`: a third party processed the request of `context.call`. `back-off`: it waited between a failed attempt and its retry. `overhead`: time of the server itself.',
        }),
        ms: Type.Integer({ minimum: 1, description: 'Milliseconds.' }),
      }),
    ),
  },
  {
    description:
      'How the step spent its time until its result arrived: phases in order, without empty ones. Absent when unknown: for waits and invocations, for steps whose result another node of a cluster received, and after a restart of the server.',
  },
)

/** A step in a run log. Which fields are present depends on its type and state. */
export const RunStep = Type.Partial(
  Type.Object({
    stepId: Type.Integer(),
    stepName: Type.String(),
    stepType: Type.String(),
    callType: Type.String(),
    messageId: Type.String(),
    out: Type.Unknown({ description: 'The result of the step, as text.' }),
    concurrent: Type.Integer(),
    state: Type.Enum([...STEP_STATES]),
    createdAt: ms('When the step was received'),
    retries: Type.Integer({ description: 'Maximum number of retries of the delivery.' }),
    retryDelay: Type.String(),
    headers: Type.Record(Type.String(), Type.Array(Type.String())),
    sleepFor: Type.Unknown(),
    sleepUntil: ms('When the run continues'),
    callUrl: Type.String(),
    callMethod: Type.String(),
    callBody: Type.Unknown(),
    callHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    callResponseStatus: Type.Integer(),
    callResponseBody: Type.Unknown(),
    callResponseHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    invokedWorkflowRunId: Type.String(),
    invokedWorkflowUrl: Type.String(),
    invokedWorkflowCreatedAt: ms('When the invoked run was created'),
    invokedWorkflowRunBody: Type.Unknown({ description: 'The first 4 KiB of its payload, as text.' }),
    invokedWorkflowRunHeaders: Type.Record(Type.String(), Type.Array(Type.String())),
    waitEventId: Type.String(),
    waitTimeoutDuration: Type.String({ description: 'Timeout of the wait, such as 90s.' }),
    waitTimeoutDeadline: ms('When the wait times out'),
    waitTimeout: Type.Boolean({ description: 'The wait timed out.' }),
    errors: Type.Array(AttemptError),
    nextDeliveryTime: ms('When the next attempt is due'),
    time: StepTime,
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

/** A run with its steps in the run log. */
export const RunLog = Type.Object({
  workflowRunId: Type.String(),
  workflowUrl: Type.String(),
  workflowState: Type.Enum([...RUN_STATES]),
  workflowRunCreatedAt: ms('When the run was created'),
  workflowRunCompletedAt: Type.Optional(ms('When it ended')),
  workflowRunCallerIp: optionalText,
  workflowRunResponse: optionalText,
  dlqId: optionalText,
  label: optionalText,
  labels: Type.Optional(Type.Array(Type.String())),
  flowControlKey: optionalText,
  priority: Type.Optional(Type.Integer({ description: 'Seconds by which its deliveries count as due earlier.' })),
  debounceKey: Type.Optional(Type.String({ description: 'The debounce key of the trigger.' })),
  singletonKey: Type.Optional(Type.String({ description: 'The singleton key of the trigger.' })),
  invoker: Type.Optional(
    Type.Object({
      workflowRunId: Type.String(),
      workflowUrl: Type.String(),
      workflowRunCreatedAt: ms('When the invoking run was created'),
    }),
  ),
  origin: Type.Optional(RunOrigin),
  failureFunction: Type.Optional(FailureFunction),
  canceledBy: Type.Optional(CancelledBy),
  replacedBy: Type.Optional(ReplacedBy),
  broughtBack: Type.Optional(BroughtBack),
  paused: Type.Optional(RunPaused),
  because: Type.Optional(
    Type.Array(Because, {
      description: 'What the run waits for, one entry for each branch. Only for active runs.',
    }),
  ),
  steps: Type.Array(StepGroup),
})

const logQuery = Type.Object({
  cursor: Type.Optional(Type.String({ description: 'The `cursor` of the previous page.' })),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'Runs per page. Default 10.' })),
  state: texts('Runs in this state.'),
  paused: Type.Optional(Type.Boolean({ description: 'true: only paused runs. false: only runs that are not paused.' })),
  workflowRunId: texts('These runs.'),
  workflowRuns: texts('These runs, each with the time of its creation: `<id>@<Unix milliseconds>`.'),
  workflowUrl: texts('Runs of exactly this URL.'),
  workflowCreatedAt: Type.Optional(ms('Runs created at exactly this time')),
  messageId: Type.Optional(Type.String({ description: 'The run to which this message belongs.' })),
  label: texts('Runs with this label.'),
  host: texts('Runs whose URL has this host.'),
  path: texts('Runs whose URL has this path.'),
  callerIp: texts('Runs triggered from this address.'),
  flowControlKey: texts('Runs of this flow-control key.'),
  search: searchFilter('Runs whose id, URL, label or error contains this text'),
  fromDate: Type.Optional(ms('Runs created at or after this time')),
  toDate: Type.Optional(ms('Runs created at or before this time')),
  endedFromDate: Type.Optional(ms('Runs that ended at or after this time')),
  endedToDate: Type.Optional(ms('Runs that ended at or before this time')),
  minDuration: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Runs that took at least this long, or have been active for at least this long, milliseconds.',
    }),
  ),
  sort: Type.Optional(
    Type.Enum([...RUN_SORTS], {
      description: `What to sort by. \`created\` sorts all runs; every other order sorts the newest ${MAX_SORTED} runs between \`fromDate\` and \`toDate\`. With \`ended\`, runs that have not ended come last. Equal runs are sorted newest first. Default created.`,
    }),
  ),
  direction: Type.Optional(
    Type.Enum(['asc', 'desc'], { description: 'Default desc for `created`, `ended` and `duration`, otherwise asc.' }),
  ),
  groupBy: Type.Optional(Type.Enum(['workflowRunId'], { description: 'Leave out the flat list of events.' })),
  trimBody: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Truncate bodies and results to this many characters.' }),
  ),
})

const nextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }))

/** An event of a run. */
export const RunEvent = Type.Object({
  time: ms('When it happened'),
  state: Type.Enum([...RUN_STATES, ...STEP_STATES, 'WAITER_ADDED', 'INVOKED']),
  workflowRunId: Type.String(),
  workflowUrl: Type.String(),
  workflowCreatedAt: ms('When the run was created'),
  messageId: Type.Optional(Type.String()),
  stepInfo: Type.Optional(RunStep),
  error: Type.Optional(Type.String()),
  responseStatus: Type.Optional(
    Type.Integer({ description: 'Status of a failed attempt; 0 when there was no response.' }),
  ),
  nextDeliveryTime: Type.Optional(ms('When the next attempt is due')),
})

const logsAnswer = Type.Object({
  cursor: nextCursor,
  searchedTo,
  sortedFrom: Type.Optional(
    Type.Integer({
      description:
        'Present when there were too many runs to sort all: only runs created since this time were sorted, Unix milliseconds. Send an earlier `toDate` to sort older runs.',
    }),
  ),
  runs: Type.Array(RunLog),
  events: Type.Optional(
    Type.Array(RunEvent, {
      description: 'The events of these runs as a flat list. Only under `/v2/workflows/events` without `groupBy`.',
    }),
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
    cost: 'heavy',
    scopes: ['read'],
    summary,
    description:
      'Runs with their steps: finished steps in sequential or parallel groups, and steps that are running, retried or failed under `next`. With filters, a request looks at a limited number of runs: a page may have fewer runs than `count`, or none, and still a `cursor`: send it with the next request to continue.',
    query: logQuery,
    body: { kind: 'none' },
    success: { status: 200, description: 'A page of runs.', body: logsAnswer },
    errors: ['invalid_request'],
  })

/** Reads run logs, by the REST path. */
export const listRuns = logs('listWorkflowRuns', '/v2/workflows/logs', 'Read the logs of runs')
/** Reads run logs, by the path of SDKs. */
export const listRunEvents = logs(
  'listWorkflowEvents',
  '/v2/workflows/events',
  'Read the logs of runs, by the path of SDKs',
)

/** Reads the events of runs as a flat list, the older form of run logs. */
export const listRunMessageLogs = endpoint({
  id: 'listWorkflowMessageLogs',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'GET',
  path: '/v2/workflows/messageLogs',
  auth: 'bearer',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'Read the events of runs as a flat list',
  description:
    'The run logs as a flat list. A page holds all events of its runs: `count` and `cursor` count runs, not events.',
  query: logQuery,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page of events.',
    body: Type.Object({ cursor: nextCursor, searchedTo, events: Type.Array(RunEvent) }),
  },
  errors: ['invalid_request'],
})
