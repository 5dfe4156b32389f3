import Type from 'typebox'
import { endpoint } from '../endpoint.js'

/** Flow control: limits that messages share by naming the same key. */

const queue = { service: 'queue', topic: 'Flow control', auth: 'bearer' } as const

/** A flow-control key. */
const FlowKey = Type.Object({
  flowControlKey: Type.String(),
  waitListSize: Type.Integer({ description: 'Messages that are due and not being sent.' }),
  parallelismMax: Type.Integer({ description: 'So many calls may be open at once; 0: no limit.' }),
  parallelismCount: Type.Integer({ description: 'Calls that are open.' }),
  rateMax: Type.Integer({ description: 'So many calls may begin in a period; 0: no limit.' }),
  rateCount: Type.Integer({ description: 'Calls that have begun in the present period.' }),
  ratePeriod: Type.Integer({ description: 'Length of a period, seconds.' }),
  ratePeriodStart: Type.Integer({
    description: 'When the present period began, Unix seconds; 0 when none is running.',
  }),
  isPaused: Type.Boolean(),
  isPinnedParallelism: Type.Boolean(),
  isPinnedRate: Type.Boolean(),
})

/** List keys. */
export const listFlowKeys = endpoint({
  ...queue,
  id: 'listFlowKeys',
  method: 'GET',
  path: '/v2/flowControl',
  access: 'read',
  summary: 'List flow-control keys',
  description: 'Keys that messages have named lately, and those that are paused or pinned.',
  query: Type.Object({ search: Type.Optional(Type.String({ description: 'Only keys that contain this text.' })) }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The keys.', body: Type.Array(FlowKey) },
  errors: [],
})

/** Read a key. */
export const getFlowKey = endpoint({
  ...queue,
  id: 'getFlowKey',
  method: 'GET',
  path: '/v2/flowControl/{+key}',
  access: 'read',
  summary: 'Read a flow-control key',
  description: 'Shows the limits of a key, its use, and how many messages wait for it. The key may hold slashes.',
  params: Type.Object({ key: Type.String({ description: 'The flow-control key.' }) }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The key.', body: FlowKey },
  errors: ['flow_key_not_found', 'invalid_request'],
})

/** Change a key. */
export const changeFlowKey = endpoint({
  ...queue,
  id: 'changeFlowKey',
  method: 'POST',
  path: '/v2/flowControl/{+action}',
  access: 'write',
  summary: 'Pause, resume, pin, unpin or reset a flow-control key',
  description:
    'The path is the key and what to do: `<key>/pause` (nothing that names the key is sent), `<key>/resume`, ' +
    '`<key>/pin?parallelism=3&rate=20&period=120` (sets limits that messages do not change; `period` in seconds), ' +
    '`<key>/unpin?parallelism=true&rate=true` (the limits stay until the next message sets them), and ' +
    '`<key>/resetRate` or `<key>/reset` (ends the present period). Pausing and pinning make a key that is not there.',
  params: Type.Object({ action: Type.String({ description: 'The flow-control key, a slash and what to do.' }) }),
  body: { kind: 'none' },
  success: { status: 200, description: 'It is done.', body: Type.Object({}) },
  errors: ['flow_key_not_found', 'invalid_request'],
})

/** Read the parallelism of the server. */
export const getGlobalParallelism = endpoint({
  ...queue,
  id: 'getGlobalParallelism',
  method: 'GET',
  path: '/v2/globalParallelism',
  access: 'read',
  summary: 'Read the parallelism of the server',
  description: 'How many deliveries are in flight on this server, and how many may be.',
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The parallelism.',
    body: Type.Object({ parallelismMax: Type.Integer(), parallelismCount: Type.Integer() }),
  },
  errors: [],
})
