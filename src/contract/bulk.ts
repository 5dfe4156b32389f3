import Type from 'typebox'
import { endpoint } from './endpoint.js'

/**
 * The wire of bulk cancel: what may stand in a selector, and what is answered. The rules that a schema cannot say are
 * kept by `bulk/selector.ts`, which also writes the texts of refusals.
 */

const texts = (description: string) =>
  Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }), { minItems: 1 })], {
    description,
  })

const instant = (description: string) => Type.Integer({ minimum: 0, description })

/** The selector of a bulk cancel, in the JSON body or as query parameters of the same names. */
export const CancelSelector = Type.Partial(
  Type.Object(
    {
      workflowRunIds: Type.Union([Type.String({ minLength: 1 }), Type.Array(Type.String({ minLength: 1 }))], {
        description: 'Only these runs; the filters below are ignored. An empty list selects nothing.',
      }),
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
    },
    { additionalProperties: false },
  ),
)

const count = (description: string) => Type.Integer({ minimum: 0, description })

/** How many items had which outcome. */
export const OutcomeCounts = Type.Object({
  cancelled: count('Cancelled by this action.'),
  alreadyFinished: count('Had ended before their turn came, by finishing, failing or an earlier cancel.'),
  notFound: count('Ids that name no run.'),
  failed: count('Could not be cancelled because of a fault; repeat the request.'),
})

/** What an item of a bulk action came to. */
export const Outcome = Type.Enum(['pending', 'cancelled', 'alreadyFinished', 'notFound', 'failed'])

const CancelError = Type.Object({ workflowRunId: Type.String(), error: Type.String() })

const CancelAnswer = Type.Object({
  cancelled: count('Runs that this request moved to cancelled.'),
  failed: Type.Optional(count('Selected runs that exist and could not be cancelled; absent when there are none.')),
  errors: Type.Optional(Type.Array(CancelError, { description: 'The first 100 of them; absent when there are none.' })),
  actionId: Type.Optional(Type.String({ description: 'With `report`.' })),
  outcomes: Type.Optional(OutcomeCounts),
  matched: Type.Optional(count('With `dryRun`: how many runs the selector matches.')),
  sample: Type.Optional(Type.Array(Type.String(), { description: 'With `dryRun`: the first 20 ids.' })),
})

const AcceptedAnswer = Type.Object({
  actionId: Type.String({ description: 'Under which the progress can be followed.' }),
  matched: count('Runs in the fixed set.'),
})

const BulkAction = Type.Object({
  actionId: Type.String(),
  state: Type.Enum(['running', 'finished']),
  selector: Type.Record(Type.String(), Type.Unknown(), {
    description: 'What was asked for. Of a long list of ids the first 100, and `workflowRunIdsTotal`.',
  }),
  createdBy: Type.String({ description: 'E-mail of the account.' }),
  matched: count('Items in the fixed set.'),
  done: count('Items that have their outcome.'),
  cancelled: count('Runs cancelled so far.'),
  failed: count('Selected runs that exist and could not be cancelled.'),
  outcomes: OutcomeCounts,
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  finishedAt: Type.Optional(Type.Integer({ description: 'Unix milliseconds; absent while it runs.' })),
})

const page = {
  cursor: Type.Optional(Type.String({ description: 'The `cursor` of the page before.' })),
  count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Entries of a page. Default 100.' })),
}
const nextCursor = Type.Optional(Type.String({ description: 'Absent on the last page.' }))
const actionParams = Type.Object({ actionId: Type.String() })

const shared = { service: 'queue', auth: 'bearer' } as const

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
  otherAnswers: [{ status: 202, description: 'With `async`: the set is fixed and stored.', body: AcceptedAnswer }],
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
  description: 'Every bulk cancel of the account, newest first, with its progress.',
  query: Type.Object(page, { additionalProperties: false }),
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
    'The state of an action and its counts so far. The sum of `outcomes` is `done`, and `matched` at the end.',
  params: actionParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The action.', body: BulkAction },
  errors: ['bulk_action_not_found'],
})

/** Lists what became of each run of a bulk action. */
export const listBulkOutcomes = endpoint({
  ...shared,
  id: 'listBulkOutcomes',
  method: 'GET',
  path: '/v2/workflows/bulkActions/{actionId}/outcomes',
  access: 'read',
  summary: 'Read the outcomes of a bulk action page by page',
  description:
    'One entry for each item of the fixed set, in the order in which they are worked on: oldest run first, ids that name no run last. `workflowRunId` is absent once the log of the run itself has been removed.',
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
          workflowRunId: Type.Optional(Type.String()),
          outcome: Outcome,
          error: Type.Optional(Type.String({ description: 'Why it was not cancelled.' })),
        }),
      ),
      cursor: nextCursor,
    }),
  },
  errors: ['bulk_action_not_found'],
})
