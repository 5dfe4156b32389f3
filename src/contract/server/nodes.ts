import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok } from '../endpoint.js'

const text = (description: string) => Type.String({ description })

/** States of a node. */
export const NODE_STATES = ['live', 'draining', 'dead', 'left'] as const

/** A node of the cluster. */
export const NodeSchema = Type.Object({
  name: text('Name of the node, from the option `--node`.'),
  state: Type.Enum([...NODE_STATES], {
    description:
      '`live`: it runs; `draining`: it hands its partitions and databases over to other nodes; `dead`: it gave no sign of life, so other nodes have taken over its work; `left`: it was stopped.',
  }),
  address: text('Host and port at which other nodes reach it.'),
  version: text('Version of Homeport.'),
  start_time: Type.Integer({ description: 'When it started, Unix seconds.' }),
  region: Type.Optional(Type.String({ description: 'The region that it serves. Absent: all regions.' })),
  databases: Type.Integer({ description: 'How many databases have their home there.' }),
  engine_memory: Type.Optional(
    Type.Integer({
      description:
        'Memory of the data of its databases that are awake, bytes, from the last samples. Absent while the node does not answer.',
    }),
  ),
  problems: Type.Optional(
    Type.Integer({
      description:
        'Problems that only a person can solve, as its `/health` counts them. Absent while the node does not answer.',
    }),
  ),
  partitions: Type.Integer({ description: 'How many of the 64 partitions of messages it owns.' }),
  leader: Type.Boolean({
    description: 'Whether it is the leader, which does the work of a single node, such as firing schedules.',
  }),
  answering: Type.Boolean({ description: 'Whether it is the node that answers this request.' }),
})

/** A node of the cluster. */
export type ClusterNode = Static<typeof NodeSchema>

const operator = { service: 'management', topic: 'Server', auth: 'basic' } as const
const params = Type.Object({ name: Type.String({ maxLength: 100, description: '`name` of the node.' }) })

/** Lists the nodes of the cluster. */
export const listNodes = endpoint({
  ...operator,
  id: 'listNodes',
  method: 'GET',
  path: '/v2/nodes',
  access: 'read',
  summary: 'List nodes',
  description:
    'For the operator: the nodes of the cluster, by name, including stopped and dead nodes until they are removed. Empty for a server that is alone.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The nodes.', body: Type.Array(NodeSchema) },
  errors: ['operator_only', 'store_unavailable'],
})

/** Makes a node hand everything over to the other nodes. */
export const drainNode = endpoint({
  ...operator,
  id: 'drainNode',
  method: 'POST',
  path: '/v2/nodes/{name}/drain',
  access: 'write',
  summary: 'Drain a node',
  description:
    'For the operator: the node hands over each partition when no request of it is in flight, and takes no partition until it is resumed or started again. Its databases move to other nodes of their regions, two at a time: first the databases that are asleep, then the longest idle ones. Meanwhile the node answers requests, but `/readyz` responds with 503, so that a load balancer sends it no new ones. Responds when the state is stored; list the nodes to see the progress.',
  params,
  body: noFields,
  success: ok,
  errors: ['operator_only', 'node_not_found', 'node_not_running', 'store_unavailable'],
})

/** Lets a drained node take part again. */
export const resumeNode = endpoint({
  ...operator,
  id: 'resumeNode',
  method: 'POST',
  path: '/v2/nodes/{name}/resume',
  access: 'write',
  summary: 'Resume a node',
  description: 'For the operator: a draining node takes partitions again.',
  params,
  body: noFields,
  success: ok,
  errors: ['operator_only', 'node_not_found', 'node_not_running', 'store_unavailable'],
})

/** Removes a node that is gone. */
export const removeNode = endpoint({
  ...operator,
  id: 'removeNode',
  method: 'DELETE',
  path: '/v2/nodes/{name}',
  access: 'write',
  summary: 'Remove a node',
  description:
    'For the operator: removes a stopped or dead node from the list; its name is free again. The request is refused while the node is the home of databases, unless `lose_databases` says that the node and its disk are gone for good. Its databases then stay listed but do not serve; their owners may recover them from object storage, or delete them. If the node starts again after all with its data directory, it serves the databases that are left.',
  params,
  query: Type.Object({
    lose_databases: Type.Optional(
      Type.Boolean({
        description: 'true: remove the node although it is the home of databases, whose data is lost. Default: false.',
      }),
    ),
  }),
  body: noFields,
  success: ok,
  errors: [
    'operator_only',
    'node_not_found',
    'node_running',
    'node_has_databases',
    'node_has_standbys',
    'store_unavailable',
  ],
})
