import Type from 'typebox'

/** The run and the step that a restarted run comes from. */
export const RunOrigin = Type.Object(
  {
    workflowRunId: Type.String(),
    workflowRunCreatedAt: Type.Integer({ description: 'When that run was created, Unix milliseconds.' }),
    stepId: Type.Integer({ description: 'The first step that this run executes itself.' }),
  },
  { description: 'The run from which this one was restarted.' },
)
