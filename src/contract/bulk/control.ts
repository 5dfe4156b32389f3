import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { actionParams, BulkAction, shared } from './actions.js'

/** The wire of pausing, resuming, aborting and changing a bulk action. */

const controlErrors = ['bulk_action_not_found', 'bulk_action_refused', 'store_full', 'store_unavailable'] as const
const why = {
  kind: 'json',
  optional: true,
  schema: Type.Object(
    {
      reason: Type.Optional(
        Type.String({ minLength: 1, maxLength: 500, description: 'Why. Written to the audit log.' }),
      ),
    },
    { additionalProperties: false },
  ),
} as const
const changed = { status: 200, description: 'The action after the change.', body: BulkAction }

/** Pauses a bulk action. */
export const pauseBulkAction = endpoint({
  ...shared,
  id: 'pauseBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions/{actionId}/pause',
  access: 'write',
  scopes: [],
  summary: 'Pause a bulk action',
  description:
    'Stops a running action after the items that it is processing. The action stays paused until it is resumed or aborted, even if the server restarts. A request that waits for the end of the action gets 202.',
  params: actionParams,
  body: why,
  success: changed,
  errors: controlErrors,
})

/** Resumes a paused bulk action. */
export const resumeBulkAction = endpoint({
  ...shared,
  id: 'resumeBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions/{actionId}/resume',
  access: 'write',
  scopes: [],
  summary: 'Resume a paused bulk action',
  description: 'Continues with the items that have no outcome yet.',
  params: actionParams,
  body: why,
  success: changed,
  errors: controlErrors,
})

/** Aborts a bulk action. */
export const abortBulkAction = endpoint({
  ...shared,
  id: 'abortBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions/{actionId}/abort',
  access: 'write',
  scopes: [],
  summary: 'Abort a bulk action',
  description:
    'Ends a running or paused action. It cannot be resumed. Items that have an outcome keep it; all others become `skipped`, so that the outcomes add up to the set. The fence of the action is lifted. A request that waits for the end of the action gets 200 with `"state": "aborted"`.',
  params: actionParams,
  body: why,
  success: changed,
  errors: controlErrors,
})

/** Changes the rate of a bulk action. */
export const changeBulkAction = endpoint({
  ...shared,
  id: 'changeBulkAction',
  method: 'PATCH',
  path: '/v2/workflows/bulkActions/{actionId}',
  access: 'write',
  scopes: [],
  summary: 'Change the rate of a bulk action',
  description: 'Changes the rate limit of a running or paused action at once.',
  params: actionParams,
  body: {
    kind: 'json',
    schema: Type.Object(
      {
        ratePerSecond: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
          description: 'Most items per second; null for no limit.',
        }),
      },
      { additionalProperties: false },
    ),
  },
  success: changed,
  errors: controlErrors,
})

/** Lifts the fence of a bulk cancel. */
export const liftBulkFence = endpoint({
  ...shared,
  id: 'liftBulkFence',
  method: 'DELETE',
  path: '/v2/workflows/bulkActions/{actionId}/fence',
  access: 'write',
  scopes: [],
  summary: 'Lift the fence of a bulk cancel',
  description:
    'Ends the fence before `fenceUntil`: runs that match the selector may start again. Does nothing when there is no fence.',
  params: actionParams,
  body: { kind: 'none' },
  success: changed,
  errors: controlErrors,
})
