import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { RunPaused } from './run-history.js'
import { ms, runId } from './runs.js'

/** The wire of pause and resume of runs. */

const params = Type.Object({ workflowRunId: runId })
const run = { service: 'queue', topic: 'Workflow runs', auth: 'bearer', access: 'write', scopes: [] } as const

const PauseBody = Type.Object(
  {
    clock: Type.Optional(
      Type.Enum(['keep', 'hold'], {
        description:
          'What happens to sleeps, delays, retries and timeouts of waits. `keep` (default): they keep their times; those that have passed are due at the resume. `hold`: the resume moves them later by the time for which the run was paused.',
      }),
    ),
    reason: Type.Optional(
      Type.String({ maxLength: 500, description: 'The reason; the run and the audit log show it.' }),
    ),
  },
  { additionalProperties: false },
)

/** Pauses a run. */
export const pauseRun = endpoint({
  ...run,
  id: 'pauseWorkflowRun',
  method: 'POST',
  path: '/v2/workflows/runs/{workflowRunId}/pause',
  summary: 'Pause a run',
  description:
    'After the response, no node sends a request of the run until it is resumed. A request in flight continues, and its outcome is stored: step results are kept, and the next steps wait. Events and the results of invoked runs and of calls are stored too. The run stays `RUN_STARTED`; its log says since when, by whom and why it is paused. A run that ends meanwhile, because a request in flight returned or failed for good, is no longer paused. Runs that it invoked are not paused. If the run is already paused, nothing changes.',
  params,
  body: { kind: 'json', schema: PauseBody, optional: true },
  success: {
    status: 200,
    description: 'The run is paused, or was already.',
    body: Type.Object({ workflowRunId: Type.String(), paused: RunPaused }),
  },
  errors: ['invalid_request', 'run_not_found', 'run_not_pausable'],
})

/** Resumes a paused run. */
export const unpauseRun = endpoint({
  ...run,
  id: 'resumePausedWorkflowRun',
  method: 'POST',
  path: '/v2/workflows/runs/{workflowRunId}/resume',
  summary: 'Resume a paused run',
  description:
    'The run continues where it was paused. The request can be repeated: if the run is not paused, nothing changes and the response has no `pausedAt`.',
  params,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The run is not paused.',
    body: Type.Object({
      workflowRunId: Type.String(),
      pausedAt: Type.Optional(ms('When the pause began that this request ended')),
    }),
  },
  errors: ['run_not_found', 'run_not_pausable'],
})
