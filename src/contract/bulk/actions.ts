import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_FILTER_VALUES, MAX_IDS } from '../request-limits.js'
import {
  AcceptedAnswer,
  BulkPreview,
  CancelAnswer,
  count,
  Outcome,
  OutcomeCounts,
  PauseClock,
  UndoClock,
  undoPath,
  unreadable,
} from './answers.js'
import { CONDITIONS, RUN_STANDINGS } from './conditions.js'

/** What a bulk action does to each item of its set. */
export const BULK_KINDS = [
  'cancelRuns',
  'cancelMessages',
  'resumeRuns',
  'restartRuns',
  'retryFailureCallbacks',
  'deleteDeadRuns',
  'deleteDeadLetters',
  'retryDeadLetters',
  'undoCancelRuns',
  'undoCancelMessages',
  'pauseRuns',
  'unpauseRuns',
] as const

/** The states of a bulk action. */
export const BULK_STATES = ['running', 'paused', 'finished', 'aborted'] as const

/**
 * The wire of bulk actions: selectors and responses. Rules that a schema cannot express are in
 * `bulk/selector/selector.ts`, which also writes their error texts.
 */

const texts = (description: string) =>
  Type.Union(
    [
      Type.String({ minLength: 1 }),
      Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: MAX_FILTER_VALUES }),
    ],
    {
      description,
    },
  )

const instant = (description: string) => Type.Integer({ minimum: 0, description })

const REASON = 'Why, in 1 to 500 characters. Stored with the action, in its audit entry and in the log of each run.'
/** The description of `ratePerSecond`. */
export const RATE = 'Most items per second. Absent: as fast as other traffic allows.'

/** The selector of a bulk cancel, in the JSON body or as query parameters of the same names. */
export const CancelSelector = Type.Partial(
  Type.Object(
    {
      workflowRunIds: Type.Union(
        [Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }), { maxItems: MAX_IDS })],
        {
          description:
            'Only these runs, at most 100,000 in one request; the filters below are ignored. An empty list selects nothing.',
        },
      ),
      workflowUrl: texts(
        'Runs whose workflow URL begins with this text, case-sensitive. A list matches any of its values.',
      ),
      workflowUrlExactMatch: Type.Boolean({ description: '`workflowUrl` is the whole URL, not its beginning.' }),
      label: texts('Runs with this label. A list matches any of its values.'),
      host: texts('Runs whose workflow URL has this host, with its port if one is written.'),
      path: texts('Runs whose workflow URL has this path.'),
      callerIp: texts('Runs that were triggered from this address.'),
      flowControlKey: texts('Runs of this flow-control key.'),
      fromDate: instant('Runs created after this time, Unix milliseconds.'),
      toDate: instant('Runs created before this time, Unix milliseconds.'),
      ...CONDITIONS.runs,
      state: Type.Union([Type.Enum([...RUN_STANDINGS]), CONDITIONS.runs.state], {
        description:
          'Runs that wait for this; with parallel branches, at least one branch does. A list matches any of its values.',
      }),
      waitingFor: texts(
        'Runs that wait for the event, webhook or invoked run with this id, or are at the step with this name.',
      ),
      errorContains: texts(
        'Runs whose last failed attempt has this text in its error or in the first 4 KiB of its response, case-sensitive.',
      ),
      count: Type.Integer({ minimum: 0, description: 'At most this many runs, oldest first. Absent: no limit.' }),
      dryRun: Type.Boolean({
        description: 'true: cancel nothing. The response says how many runs match and lists the first ids.',
      }),
      async: Type.Boolean({
        description: 'true: respond with 202 as soon as the set is fixed, and cancel the runs afterwards.',
      }),
      report: Type.Boolean({
        description: 'true: include the counts of each outcome and the id of the action in the response.',
      }),
      reason: Type.String({ description: REASON }),
      ratePerSecond: Type.Integer({ minimum: 1, description: RATE }),
      saved: Type.String({
        description:
          'Name of a saved selector whose fields are added. A field may be in only one of the two selectors.',
      }),
      fenceUntil: instant(
        'Until this time, Unix milliseconds, triggers of runs that match the selector are refused with 409.',
      ),
    },
    { additionalProperties: false },
  ),
)

/** A bulk action with its current counts. */
export const BulkAction = Type.Object({
  actionId: Type.String(),
  kind: Type.Enum([...BULK_KINDS]),
  state: Type.Enum([...BULK_STATES]),
  selector: Type.Record(Type.String(), Type.Unknown(), {
    description:
      'The selector as it was sent. Long lists are shortened to their first values, at most 100 for each list and 16,384 characters for all lists together; a separate field then has the full number of values.',
  }),
  reason: Type.Optional(Type.String({ description: 'The reason that the caller gave.' })),
  ratePerSecond: Type.Optional(Type.Integer({ description: 'Most items per second. Absent: no limit.' })),
  fenceUntil: Type.Optional(Type.Integer({ description: 'When its fence ends, Unix milliseconds.' })),
  createdBy: Type.String({ description: 'E-mail of the account.' }),
  matched: count('Items in the fixed set.'),
  unreadable,
  done: count('Items that have an outcome.'),
  cancelled: Type.Optional(count('Items cancelled so far. Absent for other kinds.')),
  failed: count('Selected items that exist and could not be changed.'),
  outcomes: OutcomeCounts,
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  pausedAt: Type.Optional(Type.Integer({ description: 'When it was paused, Unix milliseconds.' })),
  finishedAt: Type.Optional(Type.Integer({ description: 'Unix milliseconds. Absent until the action ends.' })),
  undo: undoPath('Present when the action has ended and has cancelled something.'),
})

const page = {
  cursor: Type.Optional(Type.String({ description: 'The `cursor` of the previous page.' })),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Entries per page. Default 100.' })),
}
const nextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }))
/** The path parameters of operations on one action. */
export const actionParams = Type.Object({
  actionId: Type.String({ description: 'Id of the action, from the response to its start.' }),
})

/** What all endpoints of bulk actions have in common. */
export const shared = { service: 'queue', topic: 'Bulk actions', auth: 'bearer' } as const

/** Cancels many runs at once. */
export const cancelWorkflowRuns = endpoint({
  ...shared,
  id: 'cancelWorkflowRuns',
  method: 'DELETE',
  path: '/v2/workflows/runs',
  access: 'write',
  scopes: [],
  summary: 'Cancel workflow runs in bulk',
  description:
    'Cancels all active runs that match the selector. An empty selector matches all active runs of the account. Send the selector in the JSON body, in the query (repeat a parameter or separate values with commas), or in both. A run must match all filters; a list matches any of its values. The set is fixed when the request arrives: runs triggered later are not affected. An unknown field, a wrong type or an empty text is refused, and nothing is cancelled. The action survives a crash of the server and continues when the caller disconnects. With `async` the response is 202 `{"actionId", "matched"}`. The response header `Homeport-Undo` has the path that undoes the cancel.',
  query: CancelSelector,
  body: { kind: 'json', optional: true, schema: CancelSelector },
  checkedBy: 'handler',
  success: { status: 200, description: 'How many runs were cancelled.', body: CancelAnswer },
  otherAnswers: [
    {
      status: 202,
      description:
        'With `async`: the set is fixed and stored. Also returned when the action was paused before it ended.',
      body: AcceptedAnswer,
    },
  ],
  errors: ['invalid_json', 'saved_selector_not_found', 'bulk_action_interrupted', 'store_full', 'store_unavailable'],
})

/** Lists bulk actions. */
export const listBulkActions = endpoint({
  ...shared,
  id: 'listBulkActions',
  method: 'GET',
  path: '/v2/workflows/bulkActions',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List bulk actions',
  description: 'The bulk actions of the account, newest first, with their progress.',
  query: Type.Object(
    {
      ...page,
      state: Type.Optional(
        Type.Array(Type.Enum([...BULK_STATES]), { description: 'Only actions in one of these states.' }),
      ),
      kind: Type.Optional(
        Type.Array(Type.Enum([...BULK_KINDS]), { description: 'Only actions of one of these kinds.' }),
      ),
    },
    { additionalProperties: false },
  ),
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page of actions.',
    body: Type.Object({ bulkActions: Type.Array(BulkAction), cursor: nextCursor }),
  },
  errors: [],
})

/** Shows one bulk action. */
export const getBulkAction = endpoint({
  ...shared,
  id: 'getBulkAction',
  method: 'GET',
  path: '/v2/workflows/bulkActions/{actionId}',
  access: 'read',
  scopes: ['read'],
  summary: 'Show the progress of a bulk action',
  description:
    'The state and current counts of an action. The sum of `outcomes` is `done`, and `matched` at the end. With `Accept: text/event-stream` the response is a stream of server-sent events: `progress` with the action after each change, then one `end` with the action when it is finished or aborted, and the stream closes. A reader that reconnects gets the current state first. A reader whose `Last-Event-ID` is that of the `end` event gets 204, so that an `EventSource` stops reconnecting. An account may have 100 streams open at a node.',
  params: actionParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The action.', body: BulkAction },
  errors: ['bulk_action_not_found', 'too_many_progress_readers'],
})

/** Lists the outcome of each item of a bulk action. */
export const listBulkOutcomes = endpoint({
  ...shared,
  id: 'listBulkOutcomes',
  method: 'GET',
  path: '/v2/workflows/bulkActions/{actionId}/outcomes',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List the outcomes of a bulk action',
  description:
    'One entry for each item of the fixed set, in the order of processing: oldest first, then ids that do not exist. The id is absent when the item itself is no longer kept.',
  params: actionParams,
  query: Type.Object(
    { ...page, outcome: Type.Optional(Type.Array(Outcome, { description: 'Only items with one of these outcomes.' })) },
    { additionalProperties: false },
  ),
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page of outcomes.',
    body: Type.Object({
      outcomes: Type.Array(
        Type.Object({
          workflowRunId: Type.Optional(Type.String({ description: 'For kinds whose items are runs.' })),
          messageId: Type.Optional(Type.String({ description: 'For kinds whose items are messages.' })),
          dlqId: Type.Optional(Type.String({ description: 'For a dead letter that was not found.' })),
          outcome: Outcome,
          error: Type.Optional(Type.String({ description: 'Why the item was not changed.' })),
        }),
      ),
      cursor: nextCursor,
    }),
  },
  errors: ['bulk_action_not_found'],
})

const StartBody = Type.Object(
  {
    kind: Type.Enum([...BULK_KINDS], { description: 'What the action does with each item.' }),
    selector: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          'The items of the set. `cancelRuns` takes the fields of `DELETE /v2/workflows/runs`; `cancelMessages` the filters of `DELETE /v2/messages`; `resumeRuns`, `restartRuns`, `deleteDeadRuns` and `retryFailureCallbacks` (only runs whose failure function has failed) the filters of `/v2/workflows/dlq`; `deleteDeadLetters` and `retryDeadLetters` the filters of `/v2/dlq`; `undoCancelRuns` and `undoCancelMessages` take `actionId`, the id of a finished cancel, or `workflowRunIds` or `messageIds`; `pauseRuns` and `unpauseRuns` the filters of `cancelRuns`. `saved` adds the fields of a saved selector. `count` limits the size of the set. Empty: all items.',
      }),
    ),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500, description: REASON })),
    ratePerSecond: Type.Optional(Type.Integer({ minimum: 1, description: RATE })),
    fenceUntil: Type.Optional(
      instant('For `cancelRuns`: until this time, Unix milliseconds, triggers that match are refused with 409.'),
    ),
    clock: Type.Optional(UndoClock),
    pauseClock: Type.Optional(PauseClock),
    dryRun: Type.Optional(
      Type.Boolean({
        description: 'true: change nothing. The response says how many items match and lists the first ones.',
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ kind: 'cancelRuns', selector: { label: 'nightly' }, dryRun: true }],
  },
)

/** Starts a bulk action of any kind. */
export const startBulkAction = endpoint({
  ...shared,
  id: 'startBulkAction',
  method: 'POST',
  path: '/v2/workflows/bulkActions',
  access: 'write',
  scopes: [],
  summary: 'Start a bulk action',
  description:
    'Fixes a set of any size and processes it in the background: `cancelRuns`, `cancelMessages`, `resumeRuns`, `restartRuns`, `retryFailureCallbacks`, `deleteDeadRuns`, `deleteDeadLetters`, `retryDeadLetters`, `undoCancelRuns`, `undoCancelMessages`, `pauseRuns`, `unpauseRuns`. When runs are started or messages sent again, settings in the headers of this request (`Upstash-Retries`, `-Retry-Delay`, `-Delay`, `-Flow-Control-Key`, `-Flow-Control-Value`, `-Label`, `-Failure-Callback`) replace the stored ones. An unknown field is refused, and nothing is changed.',
  body: { kind: 'json', schema: StartBody },
  checkedBy: 'handler',
  success: { status: 202, description: 'The set is fixed and stored.', body: AcceptedAnswer },
  otherAnswers: [{ status: 200, description: 'With `dryRun`.', body: BulkPreview }],
  errors: [
    'invalid_request',
    'invalid_json',
    'setting_limit',
    'destination_forbidden',
    'saved_selector_not_found',
    'bulk_action_not_found',
    'bulk_action_refused',
    'store_full',
    'store_unavailable',
  ],
})
