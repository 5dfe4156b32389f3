import { type Static, Type } from 'typebox'
import { endpoint, ok } from '../endpoint.js'

const text = (description: string) => Type.String({ description })
const whole = (description: string) => Type.Integer({ description })

/** States of a standby. */
export const STANDBY_STATES = ['asked', 'copying', 'following', 'behind'] as const

/** Who chooses the node of a standby. */
export const STANDBY_PLACEMENTS = ['named', 'auto'] as const

/** The most standbys of a database. */
export const MAX_STANDBYS = 3

/** Whether answers wait for the standbys. */
export const STANDBY_MODES = ['async', 'replicated'] as const

const Mode = Type.Enum([...STANDBY_MODES], {
  description:
    'Mode of all standbys of the database. `async`: the home answers at once. `replicated`: the home answers when every standby in the state `following` has all writes of the engine, so that a loss of the home loses no acknowledged write.',
})

const Copies = Type.Integer({
  minimum: 1,
  maximum: MAX_STANDBYS,
  description:
    'Number of standbys that the database should have, on different nodes. Default: the current number, or 1. The home chooses the nodes of missing standbys. Surplus standbys end in this order: standbys without a node, standbys whose node the home has chosen, then the last ones.',
})

/** The copy of a database on another node. */
export const DatabaseStandbySchema = Type.Object({
  database_id: text('Id of the database.'),
  database_name: text('Name of the database.'),
  home: text('Name of the node that serves the database.'),
  slot: whole(
    'Number of the copy, 1 to 3. If several copies can take over and have the same replication offset, the lowest number takes over.',
  ),
  standby: text('Name of the node that keeps the copy; empty while no other node can keep it.'),
  placement: Type.Enum([...STANDBY_PLACEMENTS], {
    description:
      '`named`: the operator has named the node; `auto`: the home chooses a node of the region, and chooses another one when that node has been absent for 30 s.',
  }),
  mode: Mode,
  state: Type.Enum([...STANDBY_STATES], {
    description:
      '`asked`: the home has not begun, for example because the database is asleep; `copying`: the copy is being made; `following`: the copy gets every write as it happens; `behind`: the copy is complete up to `complete_until`, but gets no writes now.',
  }),
  complete_until: whole(
    'The copy has every write that was acknowledged until this time: Unix milliseconds by the clock of the home, 0 while the copy is not complete. It does not change while the database is asleep.',
  ),
  home_offset: whole('Replication offset of the home at the last comparison, bytes.'),
  standby_offset: whole('Replication offset of the copy at the last comparison, bytes.'),
  problem: text('Why the copy gets no writes; empty otherwise.'),
})

/** The copy of a database on another node. */
export type DatabaseStandby = Static<typeof DatabaseStandbySchema>

const operator = { service: 'management', topic: 'Server', auth: 'basic' } as const
const path = '/v2/nodes/{name}/standbys/{id}'
const id = Type.String({ maxLength: 100, description: 'Id of a database of any account.' })
const params = Type.Object({ name: Type.String({ maxLength: 100, description: '`name` of the node.' }), id })
const ofDatabase = { path: '/v2/node-standbys/{id}', params: Type.Object({ id }) } as const
const body = {
  kind: 'json',
  optional: true,
  schema: Type.Object({ mode: Type.Optional(Mode), copies: Type.Optional(Copies) }, { additionalProperties: false }),
} as const

/** Makes a node keep a standby of a database. */
export const setDatabaseStandby = endpoint({
  ...operator,
  path,
  params,
  id: 'setDatabaseStandby',
  method: 'PUT',
  access: 'write',
  summary: 'Keep a standby of a database at a node',
  description:
    'For the operator: the node keeps a copy of the database that continuously follows its home. If the database has fewer standbys than `copies`, this one is added; otherwise it replaces the standby that would end first. Responds when the request is stored; list the standbys to see the progress. Without `mode` the mode does not change; it is `async` at first. Repeating the request changes nothing.',
  body,
  success: ok,
  errors: [
    'operator_only',
    'database_not_found',
    'database_without_home',
    'database_busy',
    'database_is_there',
    'node_not_found',
    'node_not_running',
    'standbys_need_upgrade',
    'store_unavailable',
  ],
})

/** Ends the copy of a database at a node. */
export const removeDatabaseStandby = endpoint({
  ...operator,
  path,
  params,
  id: 'removeDatabaseStandby',
  method: 'DELETE',
  access: 'write',
  summary: 'Remove the standby of a database at a node',
  description:
    'For the operator: the node deletes its copy of the database. Other standbys of the database stay. If the node has no standby of it, nothing changes.',
  body: { kind: 'none' },
  success: ok,
  errors: ['operator_only', 'database_not_found', 'store_unavailable'],
})

/** Makes the home of a database choose the nodes that keep its copies. */
export const placeDatabaseStandby = endpoint({
  ...operator,
  ...ofDatabase,
  id: 'placeDatabaseStandby',
  method: 'PUT',
  access: 'write',
  summary: 'Keep standbys of a database',
  description:
    'For the operator: the home of the database chooses a node of its region for each copy, and chooses another one when that node has been absent for 30 s, is drained, or has become the home. While there is no other node, the copy waits for one. Nodes that were named before stay until then. Without `mode` the mode does not change; it is `async` at first. Repeating the request changes nothing.',
  body,
  success: ok,
  errors: [
    'operator_only',
    'database_not_found',
    'database_without_home',
    'standbys_need_upgrade',
    'store_unavailable',
  ],
})

/** Gives every database a standby. */
export const placeDatabaseStandbys = endpoint({
  ...operator,
  id: 'placeDatabaseStandbys',
  method: 'PUT',
  path: '/v2/node-standbys',
  access: 'write',
  summary: 'Keep a standby of every database',
  description:
    'For the operator: gives each database of all accounts that has no standby one, in one transaction. Each node copies two databases at a time. Databases that are created later do not get a standby by this request.',
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'How many databases had no standby.',
    body: Type.Object({ added: whole('Databases that get a standby by this request.') }),
  },
  errors: ['operator_only', 'store_unavailable'],
})

/** Ends all copies of a database, wherever they are. */
export const endDatabaseStandby = endpoint({
  ...operator,
  ...ofDatabase,
  id: 'endDatabaseStandby',
  method: 'DELETE',
  access: 'write',
  summary: 'End the standbys of a database',
  description:
    'For the operator: all nodes with a standby of the database delete their copies. If there is none, nothing changes.',
  body: { kind: 'none' },
  success: ok,
  errors: ['operator_only', 'database_not_found', 'store_unavailable'],
})

/** Lists the standbys of databases. */
export const listDatabaseStandbys = endpoint({
  ...operator,
  id: 'listDatabaseStandbys',
  method: 'GET',
  path: '/v2/node-standbys',
  access: 'read',
  summary: 'List standbys of databases',
  description: 'For the operator: the copies of databases on other nodes, and how complete each one is.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The standbys.', body: Type.Array(DatabaseStandbySchema) },
  errors: ['operator_only', 'store_unavailable'],
})
