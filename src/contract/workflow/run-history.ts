import Type from 'typebox'

/** Where a run comes from, and what has ended it or brought it back. */

const at = (description: string) => Type.Integer({ description: `${description}, Unix milliseconds.` })
const text = Type.Optional(Type.String())

/** The run and the step that a restarted run comes from. */
export const RunOrigin = Type.Object(
  {
    workflowRunId: Type.String(),
    workflowRunCreatedAt: Type.Integer({ description: 'When that run was created, Unix milliseconds.' }),
    stepId: Type.Integer({ description: 'The first step that this run executes itself.' }),
  },
  { description: 'The run from which this one was restarted.' },
)

/** The run that a trigger with the same key started in place of a run. */
export const ReplacedBy = Type.Object(
  { workflowRunId: Type.String(), workflowRunCreatedAt: at('When that run was created') },
  {
    description:
      'The run that a newer trigger with the same debounce or singleton key started, as it cancelled this one. Present as long as that run is kept.',
  },
)

/** The bulk action that has cancelled a run. */
export const CancelledBy = Type.Object(
  { actionId: Type.String(), actor: Type.String(), reason: text },
  {
    description:
      'The bulk action that cancelled the run, who started it and why. Present as long as the action is kept.',
  },
)

/** The pause of a run. */
export const RunPaused = Type.Object(
  {
    at: at('When the run was paused'),
    by: Type.String({ description: 'Who paused it.' }),
    reason: text,
    clock: Type.Enum(['keep', 'hold'], {
      description: 'Whether the resume keeps due times, or moves them later by the time that the run was paused.',
    }),
    ofWorkflow: Type.Optional(
      Type.Literal(true, { description: 'The workflow was paused; its resume lets the run go on.' }),
    ),
  },
  { description: 'Since when, by whom and why the run is paused.' },
)

/** How a run was brought back after a cancel. */
export const BroughtBack = Type.Object(
  {
    cancelledAt: at('When it had been cancelled'),
    at: at('When it was brought back'),
    actionId: text,
    actor: text,
    reason: text,
  },
  {
    description:
      'The newest undo of a cancel of this run, with the bulk action that did it, as long as that action is kept.',
  },
)
