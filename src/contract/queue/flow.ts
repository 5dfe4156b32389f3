import Type, { type TProperties } from 'typebox'
import { endpoint } from '../endpoint.js'

/** Flow control: limits that messages share by naming the same key. */

const queue = { service: 'queue', topic: 'Flow control', auth: 'bearer' } as const

/** A flow-control key. */
const FlowKey = Type.Object({
  flowControlKey: Type.String(),
  waitListSize: Type.Integer({ description: 'Messages that are due and wait for the key.' }),
  parallelismMax: Type.Integer({ description: 'Most requests in flight at the same time; 0 means no limit.' }),
  parallelismCount: Type.Integer({ description: 'Requests in flight.' }),
  rateMax: Type.Integer({ description: 'Most requests that begin in one period; 0 means no limit.' }),
  rateCount: Type.Integer({ description: 'Requests that have begun in the current period.' }),
  ratePeriod: Type.Integer({ description: 'Length of the period, seconds.' }),
  ratePeriodStart: Type.Integer({
    description: 'When the current period began, Unix seconds; 0 when there is none.',
  }),
  isPaused: Type.Boolean(),
  isPinnedParallelism: Type.Boolean(),
  isPinnedRate: Type.Boolean(),
})

/** Lists flow-control keys. */
export const listFlowKeys = endpoint({
  ...queue,
  id: 'listFlowKeys',
  method: 'GET',
  path: '/v2/flowControl',
  access: 'read',
  cost: 'heavy',
  scopes: ['read'],
  summary: 'List flow-control keys',
  description: 'Keys that recent messages use, and keys that are paused or pinned.',
  query: Type.Object({ search: Type.Optional(Type.String({ description: 'Only keys that contain this text.' })) }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The keys.', body: Type.Array(FlowKey) },
  errors: [],
})

/** Reads a flow-control key. */
export const getFlowKey = endpoint({
  ...queue,
  id: 'getFlowKey',
  method: 'GET',
  path: '/v2/flowControl/{+key}',
  access: 'read',
  cost: 'heavy',
  scopes: ['read', 'flow_control'],
  summary: 'Read a flow-control key',
  description: 'Shows the limits of a key, its usage, and how many messages wait for it. The key may contain slashes.',
  params: Type.Object({ key: Type.String({ description: 'The flow-control key.' }) }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The key.', body: FlowKey },
  errors: ['flow_key_not_found', 'invalid_request'],
})

/** The actions on a key, each by its own path. */
export const flowKeyActions = [
  action({
    verb: 'pause',
    summary: 'Pause a flow-control key',
    description: 'No message with this key is sent until it is resumed. Creates a key that does not exist.',
  }),
  action({
    verb: 'resume',
    summary: 'Resume a flow-control key',
    description: 'Messages with this key are sent again.',
  }),
  action({
    verb: 'pin',
    summary: 'Pin the limits of a flow-control key',
    description:
      'Sets limits that messages cannot change: `parallelism`, `rate` or both. Creates a key that does not exist.',
    query: {
      parallelism: limit('Most requests in flight.'),
      rate: limit('Most requests in a period.'),
      period: limit('Length of a period, seconds, at most a week. Default 1.'),
    },
  }),
  action({
    verb: 'unpin',
    summary: 'Unpin the limits of a flow-control key',
    description: 'The limits stay until the next message with this key sets others.',
    query: {
      parallelism: Type.Optional(Type.Boolean({ description: 'true: unpins the parallelism.' })),
      rate: Type.Optional(Type.Boolean({ description: 'true: unpins rate and period.' })),
    },
  }),
  action({
    verb: 'resetRate',
    summary: 'End the current period of a flow-control key',
    description: 'The next message starts a new period.',
  }),
  action({
    verb: 'reset',
    summary: 'End the current period of a flow-control key (shorter path)',
    description: 'The same as `resetRate`.',
  }),
]

/** Declares an action. */
function action({ verb, summary, description, query }: Action) {
  return endpoint({
    ...queue,
    id: `${verb}FlowKey`,
    method: 'POST',
    path: `/v2/flowControl/{key}/${verb}`,
    access: 'write',
    scopes: [],
    summary,
    description,
    params: Type.Object({ key: Type.String({ description: 'The flow-control key.' }) }),
    ...(query && { query: Type.Object(query) }),
    body: { kind: 'none' },
    success: { status: 200, description: 'The key is changed.', body: Type.Object({}) },
    errors: ['flow_key_not_found', 'invalid_request'],
  })
}

interface Action {
  readonly verb: 'pause' | 'resume' | 'pin' | 'unpin' | 'resetRate' | 'reset'
  readonly summary: string
  readonly description: string
  readonly query?: TProperties
}

function limit(description: string) {
  return Type.Optional(Type.Integer({ minimum: 1, description }))
}

/** Changes a flow-control key. */
export const changeFlowKey = endpoint({
  ...queue,
  id: 'changeFlowKey',
  method: 'POST',
  path: '/v2/flowControl/{+action}',
  access: 'write',
  scopes: [],
  summary: 'Pause, resume, pin, unpin or reset a flow-control key',
  description:
    'The path is the key and the action: `<key>/pause` (no message with this key is sent), `<key>/resume`, ' +
    '`<key>/pin?parallelism=3&rate=20&period=120` (sets limits that messages cannot change; `period` in seconds), ' +
    '`<key>/unpin?parallelism=true&rate=true` (the limits stay until the next message sets them), and ' +
    '`<key>/resetRate` or `<key>/reset` (ends the current period). Pausing and pinning create a key that does not exist.',
  params: Type.Object({ action: Type.String({ description: 'The flow-control key, a slash and the action.' }) }),
  aliases: flowKeyActions,
  body: { kind: 'none' },
  success: { status: 200, description: 'The key is changed.', body: Type.Object({}) },
  errors: ['flow_key_not_found', 'invalid_request'],
})

/** Reads the parallelism of the server. */
export const getGlobalParallelism = endpoint({
  ...queue,
  id: 'getGlobalParallelism',
  method: 'GET',
  path: '/v2/globalParallelism',
  access: 'read',
  scopes: ['read'],
  summary: 'Read the parallelism of the server',
  description: 'The number of deliveries in flight and its limit, for all nodes together.',
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The parallelism.',
    body: Type.Object({ parallelismMax: Type.Integer(), parallelismCount: Type.Integer() }),
  },
  errors: [],
})
