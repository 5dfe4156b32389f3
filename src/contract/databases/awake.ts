import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { DATABASE_STATES } from './databases.js'

/**
 * What can keep a database awake: work of the server, clients that wait for something only a running engine can tell
 * them, or a request that came not long ago.
 */
export const AWAKE_REASONS = [
  'creation',
  'change',
  'backup',
  'restore',
  'import',
  'blocking',
  'subscription',
  'monitor',
  'tracking',
  'transaction',
  'request',
] as const

/** What keeps a database awake, or since when it sleeps. */
export const AwakeSchema = Type.Object({
  database_id: Type.String({ description: 'Identifier of the database.' }),
  state: Type.Enum([...DATABASE_STATES], { description: 'As in the record of the database.' }),
  awake: Type.Boolean({ description: 'Whether its engines run or are being started.' }),
  since: Type.Integer({
    description: 'When it was woken, or when it fell asleep, Unix seconds; at the earliest the start of the server.',
  }),
  last_request: Type.Integer({
    description: 'When a client last sent a command, Unix seconds; 0 when none did since the server was started.',
  }),
  sleeps_at: Type.Integer({
    description:
      'When it falls asleep if no further request comes, Unix seconds; 0 while it sleeps, and while something else keeps it awake.',
  }),
  connections: Type.Integer({ description: 'Open connections of clients; by themselves they keep nothing awake.' }),
  reasons: Type.Array(
    Type.Object({
      kind: Type.Enum([...AWAKE_REASONS], { description: 'What keeps it awake.' }),
      count: Type.Integer({ description: 'How many of this kind there are.' }),
    }),
    { description: 'Empty while it sleeps.' },
  ),
})

/** What keeps a database awake, or since when it sleeps. */
export type AwakeRecord = Static<typeof AwakeSchema>

/** Tells why a database is awake. */
export const getAwake = endpoint({
  id: 'getAwake',
  service: 'management',
  topic: 'Databases',
  method: 'GET',
  path: '/v2/redis/awake/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Why a database is awake',
  description:
    'Says what keeps a database awake, or since when it sleeps. Asking wakes nothing and does not count as a request.',
  params: Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) }),
  body: { kind: 'none' },
  success: { status: 200, description: 'What keeps the database awake.', body: AwakeSchema },
  errors: ['database_not_found', 'store_unavailable', 'starting'],
})
