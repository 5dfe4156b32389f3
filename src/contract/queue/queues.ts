import Type from 'typebox'
import { endpoint } from '../endpoint.js'

/** Queues: messages that are delivered one after the other, or as many at once as the queue says. */

const queue = { service: 'queue', topic: 'Queues', auth: 'bearer' } as const
const params = Type.Object({ name: Type.String({ description: 'Name of the queue: letters, digits, - _ and .' }) })

/** The highest parallelism of a queue. */
export const MOST_PARALLEL = 1_000

/** A queue. */
const Queue = Type.Object({
  name: Type.String(),
  createdAt: Type.Integer({ description: 'Unix milliseconds.' }),
  updatedAt: Type.Integer({ description: 'Unix milliseconds.' }),
  parallelism: Type.Integer({ description: 'So many messages have their turn at once.' }),
  lag: Type.Integer({ description: 'Messages of the queue that are not finished.' }),
  paused: Type.Boolean(),
})

const Done = Type.Object({})

/** Make or change a queue. */
export const putQueue = endpoint({
  ...queue,
  id: 'putQueue',
  method: 'POST',
  path: '/v2/queues',
  access: 'write',
  summary: 'Make or change a queue',
  description:
    'Sets the parallelism and whether the queue is paused. A lower parallelism ends no turn that has begun; in a paused ' +
    'queue no turn begins.',
  body: {
    kind: 'json',
    schema: Type.Object({
      queueName: Type.String(),
      parallelism: Type.Optional(Type.Integer({ minimum: 1, description: `At most ${MOST_PARALLEL}. Default 1.` })),
      paused: Type.Optional(Type.Boolean({ description: 'Default false.' })),
    }),
  },
  success: { status: 200, description: 'The queue is as it was asked for.', body: Done },
  errors: ['invalid_request', 'setting_limit'],
})

/** List queues. */
export const listQueues = endpoint({
  ...queue,
  id: 'listQueues',
  method: 'GET',
  path: '/v2/queues',
  access: 'read',
  summary: 'List queues',
  description: 'All queues of the account, by name.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The queues.', body: Type.Array(Queue) },
  errors: [],
})

/** Read a queue. */
export const getQueue = endpoint({
  ...queue,
  id: 'getQueue',
  method: 'GET',
  path: '/v2/queues/{name}',
  access: 'read',
  summary: 'Read a queue',
  description: 'Shows the settings of a queue and how many messages wait in it.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The queue.', body: Queue },
  errors: ['queue_not_found'],
})

/** Delete a queue. */
export const deleteQueue = endpoint({
  ...queue,
  id: 'deleteQueue',
  method: 'DELETE',
  path: '/v2/queues/{name}',
  access: 'write',
  summary: 'Delete a queue',
  description: 'Its messages that are not finished are cancelled. A queue that is not there is no error.',
  params,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'There is no such queue any more.',
    body: Type.Object({ cancelled: Type.Integer({ description: 'How many messages were cancelled with it.' }) }),
  },
  errors: [],
})

/** Pause a queue. */
export const pauseQueue = endpoint({
  ...queue,
  id: 'pauseQueue',
  method: 'POST',
  path: '/v2/queues/{name}/pause',
  access: 'write',
  summary: 'Pause a queue',
  description: 'No turn begins; those that have begun go on, retries included.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The queue is paused.', body: Done },
  errors: ['queue_not_found'],
})

/** Let a queue go on. */
export const resumeQueue = endpoint({
  ...queue,
  id: 'resumeQueue',
  method: 'POST',
  path: '/v2/queues/{name}/resume',
  access: 'write',
  summary: 'Resume a queue',
  description: 'The messages that waited get their turns in the order in which they came.',
  params,
  body: { kind: 'none' },
  success: { status: 200, description: 'The queue goes on.', body: Done },
  errors: ['queue_not_found'],
})
