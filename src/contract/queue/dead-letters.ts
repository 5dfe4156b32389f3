import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_FILTER_VALUES, MAX_PAGE_IDS } from '../request-limits.js'
import { searchedTo } from '../search.js'
import { RUN_DEAD_FILTERS, RUN_DEAD_LISTING } from '../workflow/dead-letters.js'
import { CURSOR, DeadLetter, FILTERS, RunDeadLetter } from './fields.js'

/** The dead letter queue: listing, reading, deleting and retrying messages that could not be delivered. */

const queue = { service: 'queue', topic: 'Dead letters', auth: 'bearer' } as const

const idList = (description: string) =>
  Type.Optional(Type.Array(Type.String(), { maxItems: MAX_PAGE_IDS, description }))

const DEAD_FILTERS = {
  dlqIds: idList('Only these dead letters. All other filters are ignored.'),
  messageId: idList('Dead letters of these messages.'),
  ...FILTERS,
  responseStatus: Type.Optional(
    Type.Array(Type.Integer(), { maxItems: MAX_FILTER_VALUES, description: 'Status of the last response.' }),
  ),
  order: Type.Optional(
    Type.Enum(['earliestFirst', 'latestFirst'], { description: 'Order by time of failure. Default earliestFirst.' }),
  ),
  count: Type.Optional(Type.Integer({ minimum: 1, description: 'Dead letters per page, at most 100. Default 100.' })),
  cursor: CURSOR,
}

/** The filters of changes, which apply only to dead letters of messages: `source` is refused, not ignored. */
const deadFilters = Type.Object(DEAD_FILTERS, { additionalProperties: false })

/** Unknown parameters of a read are ignored: clients that are newer than this server send some. */
const deadListing = Type.Object({
  ...DEAD_FILTERS,
  ...RUN_DEAD_FILTERS,
  ...RUN_DEAD_LISTING,
  source: Type.Optional(
    Type.Enum(['message', 'workflow'], {
      description: '`workflow` lists dead letters of workflow runs. Default `message`.',
    }),
  ),
})

/** Lists dead letters. */
export const listDeadLetters = endpoint({
  ...queue,
  id: 'listDeadLetters',
  method: 'GET',
  path: '/v2/dlq',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List dead letters',
  description:
    'Messages that could not be delivered. Date filters apply to the time of the failure. With filters, a page may have fewer dead letters than `count`, or none, and still a `cursor`: send it with the next request to continue.',
  query: deadListing,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page. `cursor` is absent on the last page.',
    body: Type.Object({
      messages: Type.Array(Type.Union([DeadLetter, RunDeadLetter])),
      cursor: Type.Optional(Type.String()),
      searchedTo,
    }),
  },
  errors: ['invalid_request'],
})

const deadParams = Type.Object({ dlqId: Type.String({ description: 'Id of the dead letter.' }) })

/** Reads one dead letter. */
export const getDeadLetter = endpoint({
  ...queue,
  id: 'getDeadLetter',
  method: 'GET',
  path: '/v2/dlq/{dlqId}',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'Read a dead letter',
  description: 'Shows the message and the last response of its destination.',
  params: deadParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The dead letter.', body: DeadLetter },
  errors: ['dead_letter_not_found'],
})

const Deleted = Type.Object({ deleted: Type.Integer(), cursor: Type.Optional(Type.String()) })

/** Deletes one dead letter. */
export const deleteDeadLetter = endpoint({
  ...queue,
  id: 'deleteDeadLetter',
  method: 'DELETE',
  path: '/v2/dlq/{dlqId}',
  access: 'write',
  scopes: [],
  summary: 'Delete a dead letter',
  description: 'Removes it from the dead letter queue. The logs keep the failed message.',
  params: deadParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The dead letter is deleted.', body: Type.Object({ deleted: Type.Integer() }) },
  errors: ['dead_letter_not_found'],
})

/** Deletes many dead letters. */
export const deleteDeadLetters = endpoint({
  ...queue,
  id: 'deleteDeadLetters',
  method: 'DELETE',
  path: '/v2/dlq',
  access: 'write',
  scopes: [],
  summary: 'Delete dead letters in bulk',
  description:
    'Deletes one page; repeat with `cursor` until it is absent. Ids may be sent in the JSON body. Ids that do not ' +
    'exist are not counted. An unknown filter is refused, and nothing is deleted.',
  query: deadFilters,
  body: {
    kind: 'json',
    schema: Type.Object({ dlqIds: idList('Only these dead letters.') }, { additionalProperties: false }),
    optional: true,
  },
  success: { status: 200, description: 'How many were deleted.', body: Deleted },
  errors: ['invalid_request'],
})

/** Retries many dead letters. */
export const retryDeadLetters = endpoint({
  ...queue,
  id: 'retryDeadLetters',
  method: 'POST',
  path: '/v2/dlq/retry',
  access: 'write',
  scopes: [],
  summary: 'Retry dead letters in bulk',
  description:
    'Publishes each dead letter of a page as a new message with the original content, and removes the dead letter. ' +
    'Repeat with `cursor` until it is absent. Settings in the headers of this request replace the stored ones.',
  query: deadFilters,
  body: {
    kind: 'json',
    schema: Type.Object({ dlqIds: idList('Only these dead letters.') }, { additionalProperties: false }),
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

/** Retries one dead letter. */
export const retryDeadLetter = endpoint({
  ...queue,
  id: 'retryDeadLetter',
  method: 'POST',
  path: '/v2/dlq/retry/{dlqId}',
  access: 'write',
  scopes: [],
  summary: 'Retry a dead letter',
  description:
    'Publishes the dead letter as a new message with the original content, and removes the dead letter. Settings in the headers of this request replace the stored ones.',
  params: deadParams,
  body: { kind: 'none' },
  success: { status: 201, description: 'The new message.', body: Type.Object({ messageId: Type.String() }) },
  errors: ['dead_letter_not_found', 'invalid_request', 'setting_limit', 'destination_forbidden'],
})
