import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { actionParams, BulkAction, shared } from './actions.js'

/** The wire of what is done to a bulk action that exists. */

const controlErrors = ['bulk_action_not_found', 'bulk_action_refused', 'store_full', 'store_unavailable'] as const
const why = {
  kind: 'json',
  optional: true,
  schema: Type.Object(
    {
      reason: Type.Optional(
        Type.String({ minLength: 1, maxLength: 500, description: 'Why; goes into the audit log.' }),
      ),
    },
    { additionalProperties: false },
  ),
} as const
const afterwards = { status: 200, description: 'The action as it stands now.', body: BulkAction }

/** Stops a bulk action for a while. */
export const pauseBulkAction = endpoint({
  ...shared,
  id: 'pauseBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions/{actionId}/pause',
  access: 'write',
  summary: 'Pause a bulk action',
  description:
    'Stops a running action after the few items that are under way. It stays paused, over restarts of the server, until it is resumed or aborted. A request that waits for its end is answered 202.',
  params: actionParams,
  body: why,
  success: afterwards,
  errors: controlErrors,
})

/** Lets a paused bulk action go on. */
export const resumeBulkAction = endpoint({
  ...shared,
  id: 'resumeBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions/{actionId}/resume',
  access: 'write',
  summary: 'Resume a paused bulk action',
  description: 'Goes on with the items that have no outcome yet.',
  params: actionParams,
  body: why,
  success: afterwards,
  errors: controlErrors,
})

/** Ends a bulk action. */
export const abortBulkAction = endpoint({
  ...shared,
  id: 'abortBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions/{actionId}/abort',
  access: 'write',
  summary: 'Abort a bulk action',
  description:
    'Ends a running or paused action forever. What it has done stays done; every item without an outcome is `skipped`, so that the sum of the outcomes is the set. Its fence is lifted. A request that waits for its end is answered 200 with `"state": "aborted"`.',
  params: actionParams,
  body: why,
  success: afterwards,
  errors: controlErrors,
})

/** Changes a bulk action. */
export const changeBulkAction = endpoint({
  ...shared,
  id: 'changeBulkAction',
  method: 'PATCH',
  path: '/v2/workflows/bulkActions/{actionId}',
  access: 'write',
  summary: 'Change the rate of a bulk action',
  description: 'Changes how fast a running or paused action may go, at once.',
  params: actionParams,
  body: {
    kind: 'json',
    schema: Type.Object(
      {
        ratePerSecond: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
          description: 'At most so many items a second; null for no limit.',
        }),
      },
      { additionalProperties: false },
    ),
  },
  success: afterwards,
  errors: controlErrors,
})

/** Lifts the fence of a bulk cancel. */
export const liftBulkFence = endpoint({
  ...shared,
  id: 'liftBulkFence',
  method: 'DELETE',
  path: '/v2/workflows/bulkActions/{actionId}/fence',
  access: 'write',
  summary: 'Lift the fence of a bulk cancel',
  description: 'Lets runs that match the selector start again before `fenceUntil`. Without a fence nothing happens.',
  params: actionParams,
  body: { kind: 'none' },
  success: afterwards,
  errors: controlErrors,
})
