import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { RunPaused } from '../workflow/run-history.js'
import { shared } from './actions.js'
import { count } from './answers.js'

/** The wire of pauses of workflows, by their URL. */

/** Most paused workflows of an account. */
export const MAX_PAUSED_WORKFLOWS = 1_000

const workflowUrl = Type.String({
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://.',
  maxLength: 4_096,
  description: 'The whole URL of the workflow, as its runs show it.',
})

/** Longest URL of a workflow that can be paused: a longer one would not fit into the index of its table. */
export const MAX_PAUSED_URL_BYTES = 2_000

const ofWorkflows = { ...shared, topic: 'Workflow runs' } as const

const PausedWorkflow = Type.Object({ workflowUrl: Type.String(), paused: RunPaused })

const action = {
  actionId: Type.String({ description: 'Id of the bulk action that changes the active runs.' }),
  matched: count('Active runs that the action changes.'),
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
    'Pauses the active runs of the workflow with a bulk action, and every run that begins (is triggered, invoked, resumed, restarted or brought back) until the workflow is resumed. Triggers are still accepted; their runs wait. The request can be repeated: a paused workflow stays paused, and the action pauses the runs that are not paused yet.',
  body: {
    kind: 'json',
    schema: Type.Object(
      {
        workflowUrl,
        clock: Type.Optional(
          Type.Enum(['keep', 'hold'], { description: 'As for the pause of a single run. Default: `keep`.' }),
        ),
        reason: Type.Optional(
          Type.String({ minLength: 1, maxLength: 500, description: 'The reason; runs and the audit log show it.' }),
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
    description: 'The workflow is paused, or was already. New runs wait; the action pauses the active ones.',
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
    'New runs begin as usual. A bulk action resumes the runs that the pause of the workflow has paused. Runs that were paused individually or by another bulk action stay paused. The request can be repeated.',
  body: {
    kind: 'json',
    schema: Type.Object(
      { workflowUrl },
      { additionalProperties: false, examples: [{ workflowUrl: 'https://example.com/api/order' }] },
    ),
  },
  success: {
    status: 202,
    description: 'The workflow is not paused any more. The action resumes its runs.',
    body: Type.Object({
      workflowUrl: Type.String(),
      pausedAt: Type.Optional(
        Type.Integer({ description: 'When the pause began that this request ended, Unix milliseconds.' }),
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
  description: `The paused workflows of the account, by URL. An account has at most ${MAX_PAUSED_WORKFLOWS}.`,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The paused workflows.',
    body: Type.Object({ workflows: Type.Array(PausedWorkflow) }),
  },
  errors: [],
})
