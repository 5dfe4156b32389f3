import Type from 'typebox'

const at = (description: string) => Type.Integer({ description: `${description}, Unix milliseconds.` })
const text = Type.Optional(Type.String())

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
