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
          'What becomes of sleeps, delays, retries and timeouts of waits. `keep` (default): they stay, and what has passed by then is due at the resume. `hold`: the resume moves them later by the time that the run was paused.',
      }),
    ),
    reason: Type.Optional(Type.String({ maxLength: 500, description: 'Why; shown by the run and the audit log.' })),
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
    'After the answer, nothing of the run is sent, by whichever node, until it is resumed. A request in flight ends, and its outcome is kept: results of its steps are stored, and what follows is held. Events, results of invoked runs and of calls are stored too. The run stays `RUN_STARTED`; its log says since when, by whom and why it is paused. A run that ends meanwhile, because a request in flight returned or failed for good, is no longer paused. Runs that it invoked are not paused. A run that is paused already stays as it is.',
  params,
  body: { kind: 'json', schema: PauseBody, optional: true },
  success: {
    status: 200,
    description: 'The run is paused, now or before.',
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
    'The run goes on where it stood. It can be repeated: a run that is not paused stays as it is, and the answer has no `pausedAt`.',
  params,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The run is not paused.',
    body: Type.Object({
      workflowRunId: Type.String(),
      pausedAt: Type.Optional(ms('When the pause that this request ended had begun')),
    }),
  },
  errors: ['run_not_found', 'run_not_pausable'],
})
