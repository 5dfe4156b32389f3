import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { DATABASE_STATES } from './databases.js'

/**
 * What keeps a database awake: work of the server, clients that wait for a running engine (such as subscribers), or a
 * recent request.
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

/** What keeps a database awake, or since when it is asleep. */
export const AwakeSchema = Type.Object({
  database_id: Type.String({ description: 'Identifier of the database.' }),
  state: Type.Enum([...DATABASE_STATES], { description: 'State of the database, as in its record.' }),
  awake: Type.Boolean({ description: 'Whether its engines run or are being started.' }),
  since: Type.Integer({
    description: 'When it woke up or fell asleep, Unix seconds; at the earliest the start of the server.',
  }),
  last_request: Type.Integer({
    description: 'When a client last sent a command, Unix seconds; 0 when none has since the server started.',
  }),
  sleeps_at: Type.Integer({
    description:
      'When it will fall asleep if no further request arrives, Unix seconds; 0 while it is asleep, or while something else than requests keeps it awake.',
  }),
  connections: Type.Integer({
    description: 'Open client connections. A connection alone does not keep a database awake.',
  }),
  reasons: Type.Array(
    Type.Object({
      kind: Type.Enum([...AWAKE_REASONS], { description: 'What keeps it awake.' }),
      count: Type.Integer({ description: 'How many there are of this kind.' }),
    }),
    { description: 'Empty while the database is asleep.' },
  ),
})

/** What keeps a database awake, or since when it is asleep. */
export type AwakeRecord = Static<typeof AwakeSchema>

/** Shows why a database is awake. */
export const getAwake = endpoint({
  id: 'getAwake',
  service: 'management',
  topic: 'Databases',
  method: 'GET',
  path: '/v2/redis/awake/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Show why a database is awake',
  description:
    'Shows what keeps a database awake, or since when it is asleep. This request does not wake the database and does not count as a request of it.',
  params: Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) }),
  body: { kind: 'none' },
  success: { status: 200, description: 'What keeps the database awake.', body: AwakeSchema },
  errors: ['database_not_found', 'store_unavailable', 'starting'],
})
