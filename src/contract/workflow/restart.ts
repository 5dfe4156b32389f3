import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_PAGE_IDS } from '../request-limits.js'
import { ms, runId } from './runs.js'

/** The wire of restarts: a new run from any step of another one. */

const RestartBody = Type.Object(
  {
    fromStep: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'The `stepId` of the first step that the new run executes. 1: from the beginning.',
    }),
    payload: Type.Optional(Type.String({ description: 'Replaces the payload of the run.' })),
    results: Type.Optional(
      Type.Record(Type.String({ pattern: '^[1-9][0-9]{0,14}$' }), Type.Unknown(), {
        additionalProperties: false,
        maxProperties: MAX_PAGE_IDS,
        description: 'JSON values that replace results of earlier steps, by `stepId`.',
      }),
    ),
    siblings: Type.Optional(
      Type.Enum(['keep', 'again'], {
        description:
          'If the step is a parallel branch: `keep` (default) keeps the results of the other branches and executes only branches without a result; `again` executes all branches.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** Restarts a run from one of its steps. */
export const restartRun = endpoint({
  id: 'restartWorkflowRun',
  service: 'queue',
  topic: 'Workflow runs',
  method: 'POST',
  path: '/v2/workflows/runs/{workflowRunId}/restart',
  auth: 'bearer',
  access: 'write',
  scopes: [],
  summary: 'Restart a run from any of its steps',
  description:
    'Starts a new run that keeps the results of all steps before `fromStep`, edited where given, and executes the others. The run may be active or have ended; it is not changed, and neither are its dead letter and the runs that it invoked. The new run has no invoking run; its log names the original run and the step from which it was restarted. `Upstash-Retries`, `-Retry-Delay`, `-Delay`, `-Flow-Control-Key`, `-Flow-Control-Value`, `-Label` and `-Failure-Callback` in the headers replace settings of the run. To repeat a request safely, send `Upstash-Workflow-RunId`: if a run with this id exists, no run is started.',
  params: Type.Object({ workflowRunId: runId }),
  body: { kind: 'json', schema: RestartBody, texts: 'long' },
  success: {
    status: 200,
    description: 'The new run is stored and will be delivered.',
    body: Type.Object({
      workflowRunId: Type.String(),
      workflowCreatedAt: ms('When the run was created'),
      deduplicated: Type.Optional(
        Type.Literal(true, { description: 'A run with this id already exists; no run was started.' }),
      ),
    }),
  },
  errors: [
    'invalid_request',
    'run_not_found',
    'restart_refused',
    'setting_limit',
    'destination_forbidden',
    'body_too_large',
    'run_fenced',
    'daily_limit',
  ],
})
