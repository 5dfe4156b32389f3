import Type from 'typebox'

/** Parts of a run log: the origin of a run, its replacement, its cancel, its pause, and the undo of a cancel. */

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

/** The run that replaced a run with the same debounce or singleton key. */
export const ReplacedBy = Type.Object(
  { workflowRunId: Type.String(), workflowRunCreatedAt: at('When that run was created') },
  {
    description:
      'The run that replaced this one: a newer trigger with the same debounce or singleton key cancelled this run and started that one. Present as long as that run is kept.',
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
      description:
        '`keep`: the resume keeps due times. `hold`: it moves them later by the time for which the run was paused.',
    }),
    ofWorkflow: Type.Optional(
      Type.Literal(true, { description: 'Present when the whole workflow was paused; its resume resumes the run.' }),
    ),
  },
  { description: 'Since when, by whom and why the run is paused.' },
)

/** How a run was brought back after a cancel. */
export const BroughtBack = Type.Object(
  {
    cancelledAt: at('When it was cancelled'),
    at: at('When it was brought back'),
    actionId: text,
    actor: text,
    reason: text,
  },
  {
    description:
      'The newest undo of a cancel of this run. It names the bulk action of the undo as long as that action is kept.',
  },
)
