import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MOST_FILTER_VALUES, MOST_IDS } from '../request-limits.js'

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
] as const

/** Where a bulk action may stand. */
export const BULK_STATES = ['running', 'paused', 'finished', 'aborted'] as const

/**
 * The wire of bulk actions: what may stand in a selector, and what is answered. The rules that a schema cannot say are
 * kept by `bulk/selector/selector.ts`, which also writes the texts of refusals.
 */

const texts = (description: string) =>
  Type.Union(
    [
      Type.String({ minLength: 1 }),
      Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: MOST_FILTER_VALUES }),
    ],
    {
      description,
    },
  )

const instant = (description: string) => Type.Integer({ minimum: 0, description })

const REASON = 'Why, in 1 to 500 characters: kept with the action, in its audit entry and in the log of each run.'
/** What a rate means. */
export const RATE = 'At most so many items a second. Absent: as fast as other traffic allows.'

/** The selector of a bulk cancel, in the JSON body or as query parameters of the same names. */
export const CancelSelector = Type.Partial(
  Type.Object(
    {
      workflowRunIds: Type.Union(
        [Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }), { maxItems: MOST_IDS })],
        {
          description:
            'Only these runs, at most 100,000 in one request; the filters below are ignored. An empty list selects nothing.',
        },
      ),
      workflowUrl: texts('Runs whose workflow URL begins with this text, case-sensitive; any of a list.'),
      workflowUrlExactMatch: Type.Boolean({ description: '`workflowUrl` is the whole URL, not its beginning.' }),
      label: texts('Runs that carry this label; any of a list.'),
      host: texts('Runs whose workflow URL has this host, with its port if one is written.'),
      path: texts('Runs whose workflow URL has this path.'),
      callerIp: texts('Runs that were triggered from this address.'),
      flowControlKey: texts('Runs of this flow-control key.'),
      fromDate: instant('Runs created after this time, Unix milliseconds.'),
      toDate: instant('Runs created before this time, Unix milliseconds.'),
      count: Type.Integer({ minimum: 0, description: 'At most this many runs, oldest first. Absent: no limit.' }),
      dryRun: Type.Boolean({ description: 'Cancel nothing; answer how many runs match, and the first of their ids.' }),
      async: Type.Boolean({ description: 'Answer 202 as soon as the set is fixed, and work on it afterwards.' }),
      report: Type.Boolean({ description: 'Answer also the outcomes as counts, and the id of the action.' }),
      reason: Type.String({ description: REASON }),
      ratePerSecond: Type.Integer({ minimum: 1, description: RATE }),
      fenceUntil: instant(
        'Until then, Unix milliseconds, a trigger of a run that matches the selector is refused with 409.',
      ),
    },
    { additionalProperties: false },
  ),
)

const count = (description: string) => Type.Integer({ minimum: 0, description })

const SHARED_COUNTS = {
  alreadyFinished: count('Had ended, or left the dead letters, before their turn came; by an earlier cancel too.'),
  notFound: count('Ids that name nothing.'),
  failed: count('Could not be worked on because of a fault; repeat the request.'),
  skipped: Type.Optional(count('Had no outcome when the action was aborted; absent when there are none.')),
}
const done = (description: string) => Type.Optional(count(`${description} by this action; absent for other kinds.`))

/** How many items had which outcome. */
export const OutcomeCounts = Type.Object({
  cancelled: done('Cancelled'),
  resumed: done('Resumed'),
  restarted: done('Restarted'),
  deleted: done('Deleted'),
  retried: done('Sent again'),
  ...SHARED_COUNTS,
})

/** What an item of a bulk action came to. */
export const Outcome = Type.Enum([
  'pending',
  'cancelled',
  'resumed',
  'restarted',
  'deleted',
  'retried',
  'alreadyFinished',
  'notFound',
  'failed',
  'skipped',
])

const CancelError = Type.Object({ workflowRunId: Type.String(), error: Type.String() })

const CancelAnswer = Type.Object({
  cancelled: count('Runs that this request cancelled.'),
  failed: Type.Optional(count('Selected runs that exist and could not be cancelled; absent when there are none.')),
  errors: Type.Optional(Type.Array(CancelError, { description: 'The first 100 of them; absent when there are none.' })),
  actionId: Type.Optional(Type.String({ description: 'With `report`, and when the action was aborted.' })),
  outcomes: Type.Optional(
    Type.Object({ cancelled: count('Cancelled by this action.'), ...SHARED_COUNTS }, { description: 'With `report`.' }),
  ),
  matched: Type.Optional(count('With `dryRun`: how many runs the selector matches.')),
  sample: Type.Optional(Type.Array(Type.String(), { description: 'With `dryRun`: the first 20 ids.' })),
  state: Type.Optional(Type.Literal('aborted', { description: 'When somebody has aborted the action meanwhile.' })),
  skipped: Type.Optional(count('Then: how many of the set were not worked on any more.')),
})

/** What is answered when the work goes on after the answer. */
export const AcceptedAnswer = Type.Object({
  actionId: Type.String({ description: 'Under which the progress can be followed.' }),
  matched: count('Items in the fixed set.'),
  state: Type.Optional(Type.Literal('paused', { description: 'When somebody has paused the action meanwhile.' })),
})

/** What an action would be about, for who only looks. */
export const BulkLook = Type.Object({
  matched: count('Items that something can be done to.'),
  sample: Type.Array(Type.String(), { description: 'The first 20 ids: of runs, or of messages.' }),
  preview: Type.Array(
    Type.Object({
      workflowRunId: Type.Optional(Type.String({ description: 'Of actions on runs.' })),
      messageId: Type.Optional(Type.String({ description: 'Of actions on messages.' })),
      dlqId: Type.Optional(Type.String({ description: 'Of dead letters.' })),
      url: Type.String({ description: 'The workflow, or where the message goes.' }),
      labels: Type.Optional(Type.Array(Type.String())),
      createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
    }),
    { description: 'The same 20 items with what they are about.' },
  ),
})

/** A bulk action with its counts so far. */
export const BulkAction = Type.Object({
  actionId: Type.String(),
  kind: Type.Enum([...BULK_KINDS]),
  state: Type.Enum([...BULK_STATES]),
  selector: Type.Record(Type.String(), Type.Unknown(), {
    description: 'What was asked for. Of a long list of ids the first 100, and their number in a field of its own.',
  }),
  reason: Type.Optional(Type.String({ description: 'Why, in the words of the caller.' })),
  ratePerSecond: Type.Optional(Type.Integer({ description: 'The limit of items a second; absent for none.' })),
  fenceUntil: Type.Optional(Type.Integer({ description: 'Until when its fence stands, Unix milliseconds.' })),
  createdBy: Type.String({ description: 'E-mail of the account.' }),
  matched: count('Items in the fixed set.'),
  done: count('Items that have their outcome.'),
  cancelled: Type.Optional(count('Items cancelled so far; absent for other kinds.')),
  failed: count('Selected items that exist and that it could not be done to.'),
  outcomes: OutcomeCounts,
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  pausedAt: Type.Optional(Type.Integer({ description: 'Since when it is paused, Unix milliseconds.' })),
  finishedAt: Type.Optional(Type.Integer({ description: 'Unix milliseconds; absent until its end.' })),
})

const page = {
  cursor: Type.Optional(Type.String({ description: 'The `cursor` of the page before.' })),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Entries of a page. Default 100.' })),
}
const nextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }))
/** The path parameters of what is about one action. */
export const actionParams = Type.Object({
  actionId: Type.String({ description: 'Id of the action, as its start answered it.' }),
})

/** What every endpoint of bulk actions has in common. */
export const shared = { service: 'queue', topic: 'Bulk actions', auth: 'bearer' } as const

/** Cancels many runs at once. */
export const cancelWorkflowRuns = endpoint({
  ...shared,
  id: 'cancelWorkflowRuns',
  method: 'DELETE',
  path: '/v2/workflows/runs',
  access: 'write',
  summary: 'Cancel workflow runs in bulk',
  description:
    'Cancels every unfinished run that the selector matches, and every unfinished run of the account when the selector is empty. The selector stands in the JSON body, in the query (lists repeated or separated by commas), or in both. All filters must hold; of a list, any element. The set is fixed when the request arrives: runs triggered later are never touched. An unknown field, a wrong type or an empty text is refused and nothing is cancelled. The action survives a crash of the server and goes on when the caller disconnects. With `async` the answer is 202 `{"actionId", "matched"}`.',
  query: CancelSelector,
  body: { kind: 'json', optional: true, schema: CancelSelector },
  checkedBy: 'handler',
  success: { status: 200, description: 'How many runs were cancelled.', body: CancelAnswer },
  otherAnswers: [
    {
      status: 202,
      description: 'With `async`: the set is fixed and stored. Also when the action was paused before its end.',
      body: AcceptedAnswer,
    },
  ],
  errors: ['invalid_json', 'bulk_action_interrupted', 'store_full', 'store_unavailable'],
})

/** Lists bulk actions. */
export const listBulkActions = endpoint({
  ...shared,
  id: 'listBulkActions',
  method: 'GET',
  path: '/v2/workflows/bulkActions',
  access: 'read',
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
  summary: 'Show the progress of a bulk action',
  description:
    'The state of an action and its counts so far. The sum of `outcomes` is `done`, and `matched` at the end. With `Accept: text/event-stream` the answer is a stream of server-sent events: `progress` with the action after each change, and `end` with it when it is finished or aborted, after which the stream ends. A reader that comes again gets the present state first; one whose `Last-Event-ID` is that of the `end` gets 204, so that an `EventSource` stays away.',
  params: actionParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The action.', body: BulkAction },
  errors: ['bulk_action_not_found'],
})

/** Lists the outcome of each run of a bulk action. */
export const listBulkOutcomes = endpoint({
  ...shared,
  id: 'listBulkOutcomes',
  method: 'GET',
  path: '/v2/workflows/bulkActions/{actionId}/outcomes',
  access: 'read',
  summary: 'Read the outcomes of a bulk action page by page',
  description:
    'One entry for each item of the fixed set, in the order in which they are worked on: oldest first, ids that name nothing last. The id is absent once the log of the item itself has been removed.',
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
          workflowRunId: Type.Optional(Type.String({ description: 'Of kinds whose items are runs.' })),
          messageId: Type.Optional(Type.String({ description: 'Of kinds whose items are messages.' })),
          dlqId: Type.Optional(Type.String({ description: 'Of what was to be a dead letter and is not found.' })),
          outcome: Outcome,
          error: Type.Optional(Type.String({ description: 'Why the action was not done to it.' })),
        }),
      ),
      cursor: nextCursor,
    }),
  },
  errors: ['bulk_action_not_found'],
})

const StartBody = Type.Object(
  {
    kind: Type.Enum([...BULK_KINDS], { description: 'What is done to each item.' }),
    selector: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          'Which items: the fields of `DELETE /v2/workflows/runs` for `cancelRuns`, the filters of `DELETE /v2/messages` for `cancelMessages`, of `/v2/workflows/dlq` for `resumeRuns`, `restartRuns`, `deleteDeadRuns` and `retryFailureCallbacks` (which takes only runs whose failure function has failed), of `/v2/dlq` for `deleteDeadLetters` and `retryDeadLetters`. `count` bounds the set. Empty: everything.',
      }),
    ),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 500, description: REASON })),
    ratePerSecond: Type.Optional(Type.Integer({ minimum: 1, description: RATE })),
    fenceUntil: Type.Optional(instant('For `cancelRuns`: until then a trigger that matches is refused with 409.')),
    dryRun: Type.Optional(
      Type.Boolean({ description: 'Do nothing; answer how many items match, and the first of them.' }),
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
  summary: 'Start a bulk action',
  description:
    'Fixes a set of any size and works on it afterwards: `cancelRuns`, `cancelMessages`, `resumeRuns`, `restartRuns`, `retryFailureCallbacks`, `deleteDeadRuns`, `deleteDeadLetters`, `retryDeadLetters`. For runs and messages that are started or sent again, settings in the headers of this request (`Upstash-Retries`, `-Retry-Delay`, `-Delay`, `-Flow-Control-Key`, `-Flow-Control-Value`, `-Label`, `-Failure-Callback`) replace the stored ones. An unknown field is refused and nothing is done.',
  body: { kind: 'json', schema: StartBody },
  checkedBy: 'handler',
  success: { status: 202, description: 'The set is fixed and stored.', body: AcceptedAnswer },
  otherAnswers: [{ status: 200, description: 'With `dryRun`.', body: BulkLook }],
  errors: [
    'invalid_request',
    'invalid_json',
    'setting_limit',
    'destination_forbidden',
    'store_full',
    'store_unavailable',
  ],
})
