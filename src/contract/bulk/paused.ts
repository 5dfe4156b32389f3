import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { RunPaused } from '../workflow/run-history.js'
import { shared } from './actions.js'
import { count } from './answers.js'

/** The wire of pauses of workflows, by their URL. */

/** Most paused workflows of an account. */
export const MOST_PAUSED_WORKFLOWS = 1_000

const workflowUrl = Type.String({
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://.',
  maxLength: 4_096,
  description: 'The whole URL of the workflow, as its runs show it.',
})

/** A workflow with a longer URL cannot be paused: it would not fit into the index of its table. */
export const LONGEST_PAUSED_URL_BYTES = 2_000

const ofWorkflows = { ...shared, topic: 'Workflow runs' } as const

const PausedWorkflow = Type.Object({ workflowUrl: Type.String(), paused: RunPaused })

const action = {
  actionId: Type.String({ description: 'The bulk action that changes the active runs.' }),
  matched: count('Active runs that it changes.'),
}

const errors = ['invalid_request', 'invalid_json', 'store_full', 'store_unavailable', 'node_answer_lost'] as const

/** Pauses a workflow. */
export const pauseWorkflow = endpoint({
  ...ofWorkflows,
  id: 'pauseWorkflow',
  method: 'POST',
  path: '/v2/workflows/pause',
  access: 'write',
  scopes: [],
  summary: 'Pause a workflow',
  description:
    'Pauses the active runs of the workflow, by a bulk action, and every run of it that begins until the workflow is resumed: triggered, invoked, resumed, restarted or brought back. Triggers are accepted as before, and their runs wait. It can be repeated: a workflow that is paused already stays as it is, and the action pauses what is not paused yet.',
  body: {
    kind: 'json',
    schema: Type.Object(
      {
        workflowUrl,
        clock: Type.Optional(
          Type.Enum(['keep', 'hold'], { description: 'As in the pause of a run. Default: `keep`.' }),
        ),
        reason: Type.Optional(
          Type.String({ minLength: 1, maxLength: 500, description: 'Why; shown by the runs and the audit log.' }),
        ),
      },
      {
        additionalProperties: false,
        examples: [{ workflowUrl: 'https://example.com/api/order', reason: 'maintenance' }],
      },
    ),
  },
  success: {
    status: 202,
    description: 'The workflow is paused, now or before. New runs wait; the action pauses the active ones.',
    body: Type.Object({ ...PausedWorkflow.properties, ...action }),
  },
  errors,
})

/** Resumes a paused workflow. */
export const resumeWorkflow = endpoint({
  ...ofWorkflows,
  id: 'resumeWorkflow',
  method: 'POST',
  path: '/v2/workflows/resume',
  access: 'write',
  scopes: [],
  summary: 'Resume a paused workflow',
  description:
    'New runs begin as usual, and the runs that the pause of the workflow holds go on, by a bulk action. Runs that were paused alone or by another bulk action stay paused. It can be repeated.',
  body: {
    kind: 'json',
    schema: Type.Object(
      { workflowUrl },
      { additionalProperties: false, examples: [{ workflowUrl: 'https://example.com/api/order' }] },
    ),
  },
  success: {
    status: 202,
    description: 'The workflow is not paused. The action lets its runs go on.',
    body: Type.Object({
      workflowUrl: Type.String(),
      pausedAt: Type.Optional(
        Type.Integer({ description: 'When the pause that this request ended had begun, Unix milliseconds.' }),
      ),
      ...action,
    }),
  },
  errors,
})

/** Lists paused workflows. */
export const listPausedWorkflows = endpoint({
  ...ofWorkflows,
  id: 'listPausedWorkflows',
  method: 'GET',
  path: '/v2/workflows/paused',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List paused workflows',
  description: `The paused workflows of the account, by URL. An account has at most ${MOST_PAUSED_WORKFLOWS}.`,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The paused workflows.',
    body: Type.Object({ workflows: Type.Array(PausedWorkflow) }),
  },
  errors: [],
})
