import { type Static, Type } from 'typebox'
import { endpoint, ok } from '../endpoint.js'

const text = (description: string) => Type.String({ description })

/** States of a move. */
export const MOVE_STATES = ['asked', 'copying', 'switched', 'aborted', 'done', 'failed'] as const

/** A move of a database to another node. */
export const DatabaseMoveSchema = Type.Object({
  move_id: text('Id of the move.'),
  database_id: text('Id of the database.'),
  database_name: text('Name of the database.'),
  from: text('Name of the node that serves the database when the move begins.'),
  to: text('Name of the node that it moves to.'),
  state: Type.Enum([...MOVE_STATES], {
    description:
      '`asked`: the move waits for its turn; `copying`: the new node copies the data while the old one serves; `switched`: the new node serves, and the old one sets its files aside; `done`: the move is complete; `aborted`: the old node serves, and the new one deletes its copy; `failed`: see `problem`.',
  }),
  problem: text('Why it failed; empty otherwise.'),
  start_time: Type.Integer({ description: 'When it was requested, Unix seconds.' }),
  end_time: Type.Integer({ description: 'When it ended, Unix seconds; 0 if it has not ended.' }),
})

/** A move of a database to another node. */
export type DatabaseMove = Static<typeof DatabaseMoveSchema>

const operator = { service: 'management', topic: 'Server', auth: 'basic' } as const

/** Moves a database to a node. */
export const moveDatabaseToNode = endpoint({
  ...operator,
  id: 'moveDatabaseToNode',
  method: 'POST',
  path: '/v2/nodes/{name}/databases',
  access: 'write',
  summary: 'Move a database to a node',
  description:
    'For the operator: the node copies the database while it serves, then becomes its home. Clients are disconnected once and wait less than a second. Responds when the request is stored; list the moves to see the progress. Repeating the request while the move is active changes nothing.',
  params: Type.Object({ name: Type.String({ maxLength: 100, description: '`name` of the node.' }) }),
  body: {
    kind: 'json',
    schema: Type.Object({
      database_id: Type.String({ maxLength: 100, description: 'Id of a database of any account.' }),
    }),
  },
  success: ok,
  errors: [
    'operator_only',
    'database_not_found',
    'database_without_home',
    'database_busy',
    'database_is_there',
    'database_standby_there',
    'node_not_found',
    'node_not_running',
    'store_unavailable',
  ],
})

/** Lists the moves of databases. */
export const listDatabaseMoves = endpoint({
  ...operator,
  id: 'listDatabaseMoves',
  method: 'GET',
  path: '/v2/node-moves',
  access: 'read',
  summary: 'List moves of databases',
  description:
    'For the operator: moves of databases to other nodes, newest first, at most 1,000: all active moves, and the last ended move of each database.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The moves.', body: Type.Array(DatabaseMoveSchema) },
  errors: ['operator_only', 'store_unavailable'],
})
