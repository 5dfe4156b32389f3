import Type from 'typebox'
import { endpoint } from '../endpoint.js'

/** Queues: messages delivered in order, as many at once as the parallelism of the queue allows. */

const queue = { service: 'queue', topic: 'Queues', auth: 'bearer' } as const
const params = Type.Object({ name: Type.String({ description: 'Name of the queue: letters, digits, - _ and .' }) })

/** The highest parallelism of a queue. */
export const MAX_PARALLEL = 1_000

/** A queue. */
const Queue = Type.Object({
  name: Type.String(),
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  updatedAt: Type.Integer({ description: 'Unix milliseconds.' }),
  parallelism: Type.Integer({
    description: 'Most messages that are delivered at the same time, including their retries and callbacks.',
  }),
  lag: Type.Integer({ description: 'Pending messages of the queue.' }),
  paused: Type.Boolean(),
})

const Done = Type.Object({})

/** Creates or changes a queue. */
export const putQueue = endpoint({
  ...queue,
  id: 'putQueue',
  method: 'POST',
  path: '/v2/queues',
  access: 'write',
  scopes: [],
  summary: 'Create or change a queue',
  description:
    'Sets the parallelism and whether the queue is paused. Lowering the parallelism does not end deliveries that have ' +
    'begun. A paused queue begins no delivery.',
  body: {
    kind: 'json',
    schema: Type.Object({
      queueName: Type.String(),
      parallelism: Type.Optional(Type.Integer({ minimum: 1, description: `At most ${MAX_PARALLEL}. Default 1.` })),
      paused: Type.Optional(Type.Boolean({ description: 'Default false.' })),
    }),
  },
  success: { status: 200, description: 'The queue has these settings.', body: Done },
  errors: ['invalid_request', 'setting_limit'],
})

/** Lists queues. */
export const listQueues = endpoint({
  ...queue,
  id: 'listQueues',
  method: 'GET',
  path: '/v2/queues',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List queues',
  description: 'All queues of the account, by name.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The queues.', body: Type.Array(Queue) },
  errors: [],
})

/** Reads a queue. */
export const getQueue = endpoint({
  ...queue,
  id: 'getQueue',
  method: 'GET',
  path: '/v2/queues/{name}',
  access: 'read',
  cost: 'heavy',
  scopes: ['read', 'queue'],
  summary: 'Read a queue',
  description: 'Shows the settings of a queue and how many messages are pending in it.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The queue.', body: Queue },
  errors: ['queue_not_found'],
})

/** Deletes a queue. */
export const deleteQueue = endpoint({
  ...queue,
  id: 'deleteQueue',
  method: 'DELETE',
  path: '/v2/queues/{name}',
  access: 'write',
  scopes: [],
  summary: 'Delete a queue',
  description: 'Pending messages of the queue are cancelled. Deleting a queue that does not exist is not an error.',
  params,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The queue does not exist any more.',
    body: Type.Object({ cancelled: Type.Integer({ description: 'How many messages were cancelled.' }) }),
  },
  errors: [],
})

/** Pauses a queue. */
export const pauseQueue = endpoint({
  ...queue,
  id: 'pauseQueue',
  method: 'POST',
  path: '/v2/queues/{name}/pause',
  access: 'write',
  scopes: [],
  summary: 'Pause a queue',
  description: 'The queue begins no further delivery. Deliveries that have begun continue, with their retries.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The queue is paused.', body: Done },
  errors: ['queue_not_found'],
})

/** Resumes a queue. */
export const resumeQueue = endpoint({
  ...queue,
  id: 'resumeQueue',
  method: 'POST',
  path: '/v2/queues/{name}/resume',
  access: 'write',
  scopes: [],
  summary: 'Resume a queue',
  description: 'Waiting messages are delivered in the order of their arrival.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The queue is running.', body: Done },
  errors: ['queue_not_found'],
})
