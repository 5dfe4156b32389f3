import Type from 'typebox'

const at = (description: string) => Type.Integer({ description: `${description}, Unix milliseconds.` })
const optionalText = Type.Optional(Type.String())

/** What an active run waits for. Which fields are present depends on `kind`. */
export const Because = Type.Object({
  kind: Type.Enum([
    'paused',
    'bulk-cancel',
    'event',
    'webhook',
    'invoked-run',
    'delayed',
    'debounced',
    'sleeping',
    'retry',
    'in-flight',
    'flow-control',
    'queued',
    'discarded-branch',
    'no-step',
  ]),
  text: Type.String({ description: 'The reason in words.' }),
  since: Type.Optional(at('When the wait began')),
  until: Type.Optional(at('When the wait, sleep, delay or period of the key ends')),
  at: Type.Optional(at('When the retry is due')),
  retry: Type.Optional(Type.Integer({ description: 'Number of the next retry, from 1.' })),
  of: Type.Optional(Type.Integer({ description: 'Maximum number of retries.' })),
  status: Type.Optional(Type.Integer({ description: 'Status of the previous attempt; 0 when there was no response.' })),
  error: Type.Optional(Type.String({ description: 'Why there was no response, or the `message` of the response.' })),
  stepName: Type.Optional(Type.String({ description: 'The step, when it is known.' })),
  url: optionalText,
  messageId: optionalText,
  eventId: optionalText,
  flowControlKey: optionalText,
  priority: Type.Optional(
    Type.Integer({ description: 'Seconds that the delivery counts as due earlier when it waits with others.' }),
  ),
  debounceKey: optionalText,
  actionId: Type.Optional(Type.String({ description: 'The bulk action that will cancel the run.' })),
  reason: Type.Optional(Type.String({ description: 'The reason of the bulk action, or of the pause.' })),
  by: Type.Optional(Type.String({ description: 'Who paused the run.' })),
  clock: Type.Optional(
    Type.Enum(['keep', 'hold'], { description: 'Whether the pause keeps due times or moves them later.' }),
  ),
  ofWorkflow: Type.Optional(Type.Literal(true, { description: 'The workflow of the run was paused.' })),
  ratePerSecond: Type.Optional(Type.Integer({ description: 'Rate limit of the bulk action, runs per second.' })),
  paused: Type.Optional(Type.Boolean({ description: 'Whether the flow-control key or the bulk action is paused.' })),
  parallelism: Type.Optional(
    Type.Integer({ description: 'Most requests of the key in flight at the same time; all are in use.' }),
  ),
  rate: Type.Optional(Type.Integer({ description: 'Most requests of the key in a period; all are used.' })),
  periodMs: Type.Optional(Type.Integer({ description: 'Length of the period of the key, milliseconds.' })),
  place: Type.Optional(
    Type.Integer({
      description:
        'Position in the queue of the flow-control key, from 1, counting requests in flight; or position among the remaining runs of the bulk action.',
    }),
  ),
  branches: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Parallel branches whose deliveries were acknowledged without a result.',
    }),
  ),
  workflowRunId: optionalText,
  workflowUrl: optionalText,
})
