import Type from 'typebox'

/** The wire of the responses of bulk actions: counts, outcomes and dry runs. */

/** A number of items. */
export const count = (description: string) => Type.Integer({ minimum: 0, description })

const SHARED_COUNTS = {
  alreadyFinished: count('Items that had already ended, or were no longer dead letters, when the action reached them.'),
  notFound: count('Ids that do not exist.'),
  failed: count('Items that were not changed because of an error in the server. Repeat the request.'),
  skipped: Type.Optional(count('Items without an outcome when the action was aborted. Absent when there are none.')),
}
const done = (description: string) => Type.Optional(count(`${description} by this action. Absent for other kinds.`))

/** Counts of items by outcome. */
export const OutcomeCounts = Type.Object({
  cancelled: done('Cancelled'),
  resumed: done('Resumed'),
  restarted: done('Restarted'),
  deleted: done('Deleted'),
  retried: done('Sent again'),
  undone: done('Brought back'),
  paused: done('Paused'),
  unpaused: done('Unpaused'),
  ...SHARED_COUNTS,
})

/** The outcome of one item of a bulk action. */
export const Outcome = Type.Enum([
  'pending',
  'cancelled',
  'resumed',
  'restarted',
  'deleted',
  'retried',
  'undone',
  'paused',
  'unpaused',
  'alreadyFinished',
  'notFound',
  'failed',
  'skipped',
])

/** How many items a condition could not be tested on. */
export const unreadable = Type.Optional(
  count(
    'Items that do not match because a condition could not be tested on them: the payload is not JSON, too large or damaged. Absent when there are none.',
  ),
)
/** The path that undoes a cancel. */
export const undoPath = (when: string) =>
  Type.Optional(Type.String({ description: `The path that undoes this cancel, for \`POST\`. ${when}` }))

/** When the deliveries that an undo brings back are due. */
export const UndoClock = Type.Enum(['original', 'hold', 'now'], {
  description:
    'When the deliveries that are brought back are due. `original`: at their original time, or at once if that has passed. `hold`: at their original time plus the time for which they were cancelled. `now`: at once; waits for events keep their deadlines. Default: `original`.',
})

/** What a pause does to the clocks of runs. */
export const PauseClock = Type.Enum(['keep', 'hold'], {
  description:
    'For `pauseRuns`: what happens to sleeps, delays and timeouts. `keep`: they keep their times; those that have passed are due when the run is resumed. `hold`: the resume moves them later by the time for which the run was paused. Default: `keep`.',
})

const CancelError = Type.Object({ workflowRunId: Type.String(), error: Type.String() })

/** The response to a cancel of runs that has ended. */
export const CancelAnswer = Type.Object({
  cancelled: count('Runs that this request cancelled.'),
  failed: Type.Optional(count('Selected runs that exist and could not be cancelled. Absent when there are none.')),
  errors: Type.Optional(Type.Array(CancelError, { description: 'The first 100 errors. Absent when there are none.' })),
  actionId: Type.Optional(Type.String({ description: 'Present with `report`, and when the action was aborted.' })),
  undo: undoPath('Present with `report`.'),
  outcomes: Type.Optional(
    Type.Object(
      { cancelled: count('Cancelled by this action.'), ...SHARED_COUNTS },
      { description: 'Present with `report`.' },
    ),
  ),
  matched: Type.Optional(count('With `dryRun`: how many runs the selector matches.')),
  sample: Type.Optional(Type.Array(Type.String(), { description: 'With `dryRun`: the first 20 ids.' })),
  state: Type.Optional(
    Type.Literal('aborted', { description: 'Present when the action was aborted before it ended.' }),
  ),
  skipped: Type.Optional(count('Present when the action was aborted: how many items of the set were not processed.')),
  unreadable,
})

/** The response to an action that continues in the background. */
export const AcceptedAnswer = Type.Object({
  actionId: Type.String({
    description: 'Id of the action. `GET /v2/workflows/bulkActions/{actionId}` shows its progress.',
  }),
  matched: count('Items in the fixed set.'),
  unreadable,
  state: Type.Optional(Type.Literal('paused', { description: 'Present when the action was paused before it ended.' })),
})

/** The result of a dry run: what an action would do. */
export const BulkPreview = Type.Object({
  matched: count('Items that the action would change.'),
  unreadable,
  sample: Type.Array(Type.String(), { description: 'The first 20 ids, of runs or of messages.' }),
  preview: Type.Array(
    Type.Object({
      workflowRunId: Type.Optional(Type.String({ description: 'For actions on runs.' })),
      messageId: Type.Optional(Type.String({ description: 'For actions on messages.' })),
      dlqId: Type.Optional(Type.String({ description: 'For actions on dead letters.' })),
      url: Type.String({ description: 'The URL of the workflow, or the destination of the message.' }),
      labels: Type.Optional(Type.Array(Type.String())),
      createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
    }),
    { description: 'The same 20 items with their URL, labels and creation time.' },
  ),
})
