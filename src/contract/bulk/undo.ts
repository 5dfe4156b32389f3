import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { actionParams, RATE, shared } from './actions.js'
import { AcceptedAnswer, BulkPreview, UndoClock } from './answers.js'

/** The wire of undoing a cancel. */

const reason = Type.Optional(
  Type.String({ minLength: 1, maxLength: 500, description: 'Why. Stored with the action and in its audit entry.' }),
)
const clock = Type.Optional(UndoClock)

/** The body of the undo of one run or message. */
const howToUndo = {
  kind: 'json',
  optional: true,
  schema: Type.Object({ clock, reason }, { additionalProperties: false }),
} as const
const actionId = Type.String({ description: 'Id of the bulk action that brought it back.' })

/** Undoes a bulk cancel. */
export const undoBulkAction = endpoint({
  ...shared,
  id: 'undoBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions/{actionId}/undo',
  access: 'write',
  scopes: [],
  summary: 'Undo a bulk cancel',
  description:
    'Brings back the runs or messages that a `cancelRuns` or `cancelMessages` action has cancelled, with a bulk action of the kind `undoCancelRuns` or `undoCancelMessages`. Each continues where it was cancelled: runs keep their id and their steps, and requests that were in flight are sent again. The cancel must have ended. An undo is possible as long as the cancelled runs and messages are kept.',
  params: actionParams,
  body: {
    kind: 'json',
    optional: true,
    schema: Type.Object(
      {
        clock,
        reason,
        ratePerSecond: Type.Optional(Type.Integer({ minimum: 1, description: RATE })),
        dryRun: Type.Optional(
          Type.Boolean({
            description: 'true: change nothing. The response says how many items would be brought back.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
  },
  success: { status: 202, description: 'The set is fixed and stored.', body: AcceptedAnswer },
  otherAnswers: [{ status: 200, description: 'With `dryRun`.', body: BulkPreview }],
  errors: ['invalid_request', 'bulk_action_not_found', 'bulk_action_refused', 'store_full', 'store_unavailable'],
})

/** Brings one cancelled message back. */
export const undoCancelOfMessage = endpoint({
  ...shared,
  id: 'undoCancelOfMessage',
  method: 'POST',
  path: '/v2/messages/{messageId}/undo',
  access: 'write',
  scopes: [],
  summary: 'Undo the cancel of a message',
  description:
    'Brings a cancelled message back with its body, settings and failed attempts, also if a bulk action cancelled it. A message of a queue waits in its queue again.',
  params: Type.Object({ messageId: Type.String({ description: 'Id of the cancelled message.' }) }),
  body: howToUndo,
  success: {
    status: 200,
    description: 'The message is pending again.',
    body: Type.Object({
      messageId: Type.String(),
      actionId,
    }),
  },
  errors: ['message_not_found', 'undo_refused', 'bulk_action_interrupted', 'store_full', 'store_unavailable'],
})

/** Brings one cancelled run back. */
export const undoCancelOfRun = endpoint({
  ...shared,
  id: 'undoCancelOfRun',
  method: 'POST',
  path: '/v2/workflows/runs/{workflowRunId}/undo',
  access: 'write',
  scopes: [],
  summary: 'Undo the cancel of a run',
  description:
    'Brings a cancelled run back, also if a bulk action cancelled it. The run continues where it was cancelled: it keeps its id and its steps, and requests that were in flight are sent again.',
  params: Type.Object({ workflowRunId: Type.String({ description: 'Id of the cancelled run.' }) }),
  body: howToUndo,
  success: {
    status: 200,
    description: 'The run is active again.',
    body: Type.Object({
      workflowRunId: Type.String(),
      workflowState: Type.Literal('RUN_STARTED'),
      actionId,
    }),
  },
  errors: ['run_not_found', 'undo_refused', 'bulk_action_interrupted', 'store_full', 'store_unavailable'],
})
