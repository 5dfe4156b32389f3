import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_NAME_LENGTH } from './databases.js'

/** A quarantine entry: files that the store does not know. */
const QuarantineSchema = Type.Object({
  id: Type.String({
    description: 'Identifier of the entry, and the name of its directory in `quarantine/` of the data directory.',
  }),
  kind: Type.Enum(['database', 'backup', 'tail', 'store-log'], {
    description:
      '`database`: the data of a database. `backup`: the file of a backup. `tail`: the end of a log that was cut off. `store-log`: a damaged write-ahead log of the store. The last two cannot be adopted.',
  }),
  database_id: Type.String({ description: 'The database it belonged to, according to its path.' }),
  backup_id: Type.Optional(Type.String({ description: 'For a backup: its identifier.' })),
  from: Type.String({ description: 'Original path, relative to the data directory.' }),
  reason: Type.String({ description: 'Why it was moved to quarantine.' }),
  moved_at: Type.Integer({ description: 'When it was moved, Unix seconds.' }),
  deleted_at: Type.Integer({ description: 'When it is deleted unless it is adopted, Unix seconds.' }),
})

/** An entry as the management API shows it. */
export type QuarantineRecord = Static<typeof QuarantineSchema>

const AdoptSchema = Type.Object({
  name: Type.Optional(
    Type.String({
      description: `Name of the database or backup, 1 to ${MAX_NAME_LENGTH} characters. Default: derived from its id.`,
    }),
  ),
  database_id: Type.Optional(
    Type.String({
      description: 'For a backup: the database of this account that gets it. Default: the database it belonged to.',
    }),
  ),
})

/** The body of an adoption. */
export type AdoptBody = Static<typeof AdoptSchema>

/** Lists the quarantine. */
export const listQuarantine = endpoint({
  id: 'listQuarantine',
  service: 'management',
  topic: 'Backups and imports',
  method: 'GET',
  path: '/v2/redis/quarantine',
  auth: 'basic',
  access: 'read',
  summary: 'List files in quarantine',
  description:
    'Files of databases and backups that the store did not know when the server started, oldest first. Only for the first account of the server.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The entries.', body: Type.Array(QuarantineSchema) },
  errors: ['quarantine_for_operator', 'starting'],
})

/** Turns an entry into a database or a backup. */
export const adoptQuarantined = endpoint({
  id: 'adoptQuarantined',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/quarantine/{id}/adopt',
  auth: 'basic',
  access: 'write',
  summary: 'Adopt files in quarantine',
  description:
    'A data directory becomes a database of this account, with a new record, credentials and port, and with its old id if that is free. A backup is first verified by an engine; it becomes a backup of the database it belonged to, or of another one. Only for the first account of the server.',
  params: Type.Object({ id: Type.String({ description: '`id` of the entry.' }) }),
  body: { kind: 'json', schema: AdoptSchema },
  success: {
    status: 200,
    description: 'The adopted database or backup.',
    body: Type.Object({
      database_id: Type.String({ description: 'The database, or the database of the backup.' }),
      backup_id: Type.Optional(Type.String({ description: 'For a backup: its identifier.' })),
    }),
  },
  errors: [
    'invalid_json',
    'quarantine_for_operator',
    'quarantine_not_found',
    'quarantine_unusable',
    'database_not_found',
    'database_limit',
    'no_free_port',
    'snapshot_unusable',
    'engine_failed',
    'store_full',
    'store_unavailable',
    'starting',
  ],
})
