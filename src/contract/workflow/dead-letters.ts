import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { CURSOR, RunDeadLetter } from '../queue/fields.js'
import { MAX_FILTER_VALUES, MAX_PAGE_IDS } from '../request-limits.js'
import { searchedTo } from '../search.js'

/** The wire of dead letters of runs: list, read, delete, resume, restart (reference workflow 4.13). */

const queue = { service: 'queue', topic: 'Failed runs', auth: 'bearer' } as const

/** The states of the call of a failure function. */
export const FAILURE_STATES = ['CALLBACK_INPROGRESS', 'CALLBACK_SUCCESS', 'CALLBACK_FAIL', 'CALLBACK_CANCELED'] as const

const ms = (description: string) => Type.Integer({ description: `${description}, Unix milliseconds.` })
const texts = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: MAX_FILTER_VALUES,
      description: `${description} Several values match any of them.`,
    }),
  )

/** Filters of dead letters of runs; `GET /v2/dlq?source=workflow` takes them, too. */
export const RUN_DEAD_FILTERS = {
  workflowRunId: texts('Runs whose id begins with this text.'),
  workflowUrl: texts('Runs of exactly this URL.'),
  workflowCreatedAt: Type.Optional(ms('Runs created at exactly this time')),
  failureFunctionState: Type.Optional(
    Type.Array(Type.Enum([...FAILURE_STATES]), {
      maxItems: MAX_FILTER_VALUES,
      description: 'Runs whose failure function is in this state.',
    }),
  ),
}

const FILTER_FIELDS = {
  dlqIds: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: MAX_PAGE_IDS,
      description: 'Only these dead letters. All other filters are ignored.',
    }),
  ),
  ...RUN_DEAD_FILTERS,
  url: texts('The same as `workflowUrl`.'),
  label: texts('Runs with this label.'),
  callerIp: texts('Runs triggered from this address.'),
  flowControlKey: texts('Runs of this flow-control key.'),
  responseStatus: Type.Optional(
    Type.Array(Type.Integer(), {
      maxItems: MAX_FILTER_VALUES,
      description: 'Status of the response that failed the run.',
    }),
  ),
  fromDate: Type.Optional(ms('Failed at or after this time')),
  toDate: Type.Optional(ms('Failed at or before this time')),
  order: Type.Optional(
    Type.Enum(['earliestFirst', 'latestFirst'], { description: 'Order by time of failure. Default earliestFirst.' }),
  ),
  count: Type.Optional(Type.Integer({ minimum: 1, description: 'Dead letters per page, at most 100. Default 100.' })),
  cursor: CURSOR,
}

/** The filters of changes. Unknown ones are refused: a misspelt filter must not select everything. */
const filters = Type.Object(FILTER_FIELDS, { additionalProperties: false })

/** Parameters that only the lists of dead letters accept. */
export const RUN_DEAD_LISTING = {
  failureCallbackState: Type.Optional(
    Type.Array(Type.Enum([...FAILURE_STATES]), {
      maxItems: MAX_FILTER_VALUES,
      description: 'Older spelling of `failureFunctionState`.',
    }),
  ),
  trimBody: Type.Optional(Type.Integer({ minimum: 0, description: 'Bodies are cut to this many characters.' })),
}

/** Unknown parameters of a read are ignored: clients that are newer than this server send some. */
const listing = Type.Object({
  ...FILTER_FIELDS,
  ...RUN_DEAD_LISTING,
  callerIP: texts('Older spelling of `callerIp`.'),
})

const idsInBody = {
  kind: 'json',
  optional: true,
  schema: Type.Object(
    {
      dlqIds: Type.Optional(
        Type.Array(Type.String(), { maxItems: MAX_PAGE_IDS, description: 'Only these dead letters.' }),
      ),
    },
    { additionalProperties: false },
  ),
} as const

const nextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }))
const params = Type.Object({ dlqId: Type.String({ description: 'Id of the dead letter.' }) })
const Run = Type.Object({ workflowRunId: Type.String(), workflowCreatedAt: ms('When the run was created') })
const page =
  'Handles one page; repeat with `cursor` until it is absent. An unknown filter is refused, and nothing is changed.'
const overrides =
  'Settings in the headers of this request (`Upstash-Retries`, `-Retry-Delay`, `-Delay`, `-Flow-Control-Key`, `-Flow-Control-Value`, `-Label`, `-Failure-Callback`) replace those of the run.'

/** Lists failed runs. */
export const listDeadRuns = endpoint({
  ...queue,
  id: 'listDeadWorkflowRuns',
  method: 'GET',
  path: '/v2/workflows/dlq',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List failed runs',
  description: 'The dead letters of workflow runs, as `GET /v2/dlq?source=workflow` lists them.',
  query: listing,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page.',
    body: Type.Object({ messages: Type.Array(RunDeadLetter), cursor: nextCursor, searchedTo }),
  },
  errors: ['invalid_request'],
})

/** Reads one failed run. */
export const getDeadRun = endpoint({
  ...queue,
  id: 'getDeadWorkflowRun',
  method: 'GET',
  path: '/v2/workflows/dlq/{dlqId}',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'Read a failed run',
  description: 'Shows the run, the response that failed it, and the state of its failure function.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The dead letter.', body: RunDeadLetter },
  errors: ['dead_letter_not_found'],
})

const deleteOne = (id: string, path: string, summary: string) =>
  endpoint({
    ...queue,
    id,
    method: 'DELETE',
    path,
    access: 'write',
    scopes: [],
    summary,
    description: 'The logs keep the run as failed. It cannot be resumed or restarted any more.',
    params,
    body: { kind: 'none' },
    success: {
      status: 200,
      description: 'The dead letter is deleted.',
      body: Type.Object({ deleted: Type.Integer() }),
    },
    errors: ['dead_letter_not_found'],
  })

/** Deletes one dead letter. */
export const deleteDeadRun = deleteOne(
  'deleteDeadWorkflowRun',
  '/v2/workflows/dlq/{dlqId}',
  'Delete a failed run from the dead letters',
)
/** Deletes one dead letter, by the path that the MCP server of Upstash uses. */
export const deleteDeadRunByVerb = deleteOne(
  'deleteDeadWorkflowRunByVerb',
  '/v2/workflows/dlq/delete/{dlqId}',
  'Delete a failed run from the dead letters, by its other path',
)

/** Deletes many dead letters. */
export const deleteDeadRuns = endpoint({
  ...queue,
  id: 'deleteDeadWorkflowRuns',
  method: 'DELETE',
  path: '/v2/workflows/dlq',
  access: 'write',
  scopes: [],
  summary: 'Delete failed runs from the dead letters in bulk',
  description: `Ids that do not exist are not counted. ${page}`,
  query: filters,
  body: idsInBody,
  success: {
    status: 200,
    description: 'How many were deleted.',
    body: Type.Object({ deleted: Type.Integer(), cursor: nextCursor }),
  },
  errors: ['invalid_request'],
})

const MEANING = {
  resume:
    'Starts a new run for each failed run. The new run keeps the finished steps and continues with the failed step and with pending sleeps, waits and invoked runs.',
  restart: 'Starts a new run for each failed run, with the same payload and headers and no steps.',
} as const

const many = (verb: 'resume' | 'restart') =>
  endpoint({
    ...queue,
    id: `${verb}DeadWorkflowRuns`,
    method: 'POST',
    path: `/v2/workflows/dlq/${verb}`,
    access: 'write',
    scopes: [],
    summary: `${verb === 'resume' ? 'Resume' : 'Restart'} failed runs in bulk`,
    description: `${MEANING[verb]} The dead letters are removed. ${overrides} ${page}`,
    query: filters,
    body: idsInBody,
    success: {
      status: 200,
      description: 'The new runs, in the order of the dead letters.',
      body: Type.Object({ workflowRuns: Type.Array(Run), cursor: nextCursor }),
    },
    errors: ['invalid_request', 'setting_limit', 'destination_forbidden', 'run_fenced'],
  })

const one = (verb: 'resume' | 'restart') =>
  endpoint({
    ...queue,
    id: `${verb}DeadWorkflowRun`,
    method: 'POST',
    path: `/v2/workflows/dlq/${verb}/{dlqId}`,
    access: 'write',
    scopes: [],
    summary: `${verb === 'resume' ? 'Resume' : 'Restart'} a failed run`,
    description: `As the bulk operation, for one run. ${MEANING[verb]} ${overrides}`,
    params,
    body: { kind: 'none' },
    success: { status: 200, description: 'The new run.', body: Run },
    errors: ['dead_letter_not_found', 'setting_limit', 'destination_forbidden', 'run_fenced'],
  })

/** Resumes failed runs at the failed step. */
export const resumeDeadRuns = many('resume')
/** Restarts failed runs from the beginning. */
export const restartDeadRuns = many('restart')
/** Resumes a failed run at the failed step. */
export const resumeDeadRun = one('resume')
/** Restarts a failed run from the beginning. */
export const restartDeadRun = one('restart')

/** Calls the failure function of a run again. */
export const retryRunCallback = endpoint({
  ...queue,
  id: 'retryWorkflowFailureFunction',
  method: 'POST',
  path: '/v2/workflows/dlq/callback/{dlqId}',
  access: 'write',
  scopes: [],
  summary: 'Call the failure function of a failed run again',
  description: 'Only when the call has failed for good (`CALLBACK_FAIL`). The new call has all its retries.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The failure function is being called.', body: Run },
  errors: ['dead_letter_not_found', 'callback_refused'],
})

/** Cancels the call of a failure function. */
export const cancelRunCallback = endpoint({
  ...queue,
  id: 'cancelWorkflowFailureFunction',
  method: 'DELETE',
  path: '/v2/workflows/dlq/callback/{dlqId}',
  access: 'write',
  scopes: [],
  summary: 'Cancel the call of the failure function of a failed run',
  description:
    'Only while the failure function is being called or retried (`CALLBACK_INPROGRESS`). Its state becomes `CALLBACK_CANCELED`.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The failure function is not called again.', body: Run },
  errors: ['dead_letter_not_found', 'callback_refused'],
})
