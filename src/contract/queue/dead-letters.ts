import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MOST_FILTER_VALUES, MOST_PAGE_IDS } from '../request-limits.js'
import { RUN_DEAD_FILTERS } from '../workflow/dead-letters.js'
import { CURSOR, DeadLetter, FILTERS, RunDeadLetter } from './fields.js'

/** The dead letter queue: messages that could not be delivered, and what can be done about them. */

const queue = { service: 'queue', topic: 'Dead letters', auth: 'bearer' } as const

const idList = (description: string) =>
  Type.Optional(Type.Array(Type.String(), { maxItems: MOST_PAGE_IDS, description }))

const DEAD_FILTERS = {
  dlqIds: idList('Only these dead letters; all other filters are ignored.'),
  messageId: idList('Dead letters of this message.'),
  ...FILTERS,
  responseStatus: Type.Optional(
    Type.Array(Type.Integer(), { maxItems: MOST_FILTER_VALUES, description: 'Status of the last answer.' }),
  ),
  order: Type.Optional(
    Type.Enum(['earliestFirst', 'latestFirst'], { description: 'By failure; default earliestFirst.' }),
  ),
  count: Type.Optional(Type.Integer({ minimum: 1, description: 'At most this many, and at most 100. Default 100.' })),
  cursor: CURSOR,
}

/** What changes dead letters changes those of messages only: a source would be refused, not ignored. */
const deadFilters = Type.Object(DEAD_FILTERS, { additionalProperties: false })

const deadListing = Type.Object(
  {
    ...DEAD_FILTERS,
    ...RUN_DEAD_FILTERS,
    source: Type.Optional(
      Type.Enum(['message', 'workflow'], {
        description: '`workflow`: dead letters of workflow runs. Default `message`.',
      }),
    ),
  },
  { additionalProperties: false },
)

/** List dead letters. */
export const listDeadLetters = endpoint({
  ...queue,
  id: 'listDeadLetters',
  method: 'GET',
  path: '/v2/dlq',
  access: 'read',
  summary: 'List dead letters',
  description:
    'Messages that could not be delivered. Dates hold for the time of the failure. Unknown filters are refused.',
  query: deadListing,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page; `cursor` is absent on the last one.',
    body: Type.Object({
      messages: Type.Array(Type.Union([DeadLetter, RunDeadLetter])),
      cursor: Type.Optional(Type.String()),
    }),
  },
  errors: ['invalid_request'],
})

const deadParams = Type.Object({ dlqId: Type.String({ description: 'Id of the dead letter.' }) })

/** Read one dead letter. */
export const getDeadLetter = endpoint({
  ...queue,
  id: 'getDeadLetter',
  method: 'GET',
  path: '/v2/dlq/{dlqId}',
  access: 'read',
  summary: 'Read a dead letter',
  description: 'Shows the message and the last answer of its destination.',
  params: deadParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The dead letter.', body: DeadLetter },
  errors: ['dead_letter_not_found'],
})

const Deleted = Type.Object({ deleted: Type.Integer(), cursor: Type.Optional(Type.String()) })

/** Delete one dead letter. */
export const deleteDeadLetter = endpoint({
  ...queue,
  id: 'deleteDeadLetter',
  method: 'DELETE',
  path: '/v2/dlq/{dlqId}',
  access: 'write',
  summary: 'Delete a dead letter',
  description: 'Takes it out of the dead letter queue; the logs keep showing the failed message.',
  params: deadParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'It is deleted.', body: Type.Object({ deleted: Type.Integer() }) },
  errors: ['dead_letter_not_found'],
})

/** Delete many dead letters. */
export const deleteDeadLetters = endpoint({
  ...queue,
  id: 'deleteDeadLetters',
  method: 'DELETE',
  path: '/v2/dlq',
  access: 'write',
  summary: 'Delete dead letters in bulk',
  description:
    'Deletes one page; repeat with `cursor` until it is absent. Ids may stand in the JSON body. Ids that name nothing ' +
    'are not counted. An unknown filter is refused and nothing is deleted.',
  query: deadFilters,
  body: {
    kind: 'json',
    schema: Type.Object({ dlqIds: idList('Only these.') }, { additionalProperties: false }),
    optional: true,
  },
  success: { status: 200, description: 'How many were deleted.', body: Deleted },
  errors: ['invalid_request'],
})

/** Retry many dead letters. */
export const retryDeadLetters = endpoint({
  ...queue,
  id: 'retryDeadLetters',
  method: 'POST',
  path: '/v2/dlq/retry',
  access: 'write',
  summary: 'Send dead letters again in bulk',
  description:
    'Makes a new message with the original content of each letter of a page and takes the letter out; repeat with ' +
    '`cursor` until it is absent. Settings in the headers of this request replace the stored ones.',
  query: deadFilters,
  body: {
    kind: 'json',
    schema: Type.Object({ dlqIds: idList('Only these.') }, { additionalProperties: false }),
    optional: true,
  },
  success: {
    status: 201,
    description: 'The new messages.',
    body: Type.Object({
      responses: Type.Array(Type.Object({ messageId: Type.String() })),
      cursor: Type.Optional(Type.String()),
    }),
  },
  errors: ['invalid_request', 'setting_limit', 'destination_forbidden'],
})

/** Retry one dead letter. */
export const retryDeadLetter = endpoint({
  ...queue,
  id: 'retryDeadLetter',
  method: 'POST',
  path: '/v2/dlq/retry/{dlqId}',
  access: 'write',
  summary: 'Send a dead letter again',
  description: 'As the bulk form, for one letter.',
  params: deadParams,
  body: { kind: 'none' },
  success: { status: 201, description: 'The new message.', body: Type.Object({ messageId: Type.String() }) },
  errors: ['dead_letter_not_found', 'invalid_request', 'setting_limit', 'destination_forbidden'],
})
