import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { LONGEST_NAME } from './databases.js'

/** Files that the store does not know, set aside. */
const QuarantineSchema = Type.Object({
  id: Type.String({ description: 'Names the entry; also its directory in `quarantine/` of the data directory.' }),
  kind: Type.Enum(['database', 'backup', 'tail', 'store-log'], {
    description:
      'The data of a database or the file of a backup; or the end of a log that was cut off, or a damaged write-ahead log of the store, which cannot be adopted.',
  }),
  database_id: Type.String({ description: 'The database that it belonged to, by where it stood.' }),
  backup_id: Type.Optional(Type.String({ description: 'Of a backup: its identifier.' })),
  from: Type.String({ description: 'Where it stood, relative to the data directory.' }),
  reason: Type.String({ description: 'Why it was set aside.' }),
  moved_at: Type.Integer({ description: 'When it was set aside, Unix seconds.' }),
  deleted_at: Type.Integer({ description: 'When it will be deleted unless it is adopted, Unix seconds.' }),
})

/** An entry as the management API shows it. */
export type QuarantineRecord = Static<typeof QuarantineSchema>

const AdoptSchema = Type.Object({
  name: Type.Optional(
    Type.String({
      description: `Name of the database or backup, 1 to ${LONGEST_NAME} characters. Default: by its id.`,
    }),
  ),
  database_id: Type.Optional(
    Type.String({
      description: 'Of a backup: the database of this account that it will belong to. Default: the one it belonged to.',
    }),
  ),
})

/** How an entry is to be adopted. */
export type AdoptBody = Static<typeof AdoptSchema>

/** Lists what was set aside. */
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
    'Files of databases and backups that the store did not know when the server started, the oldest first. Only the first account of the server may ask.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The entries.', body: Type.Array(QuarantineSchema) },
  errors: ['operator_only', 'starting'],
})

/** Makes a database or a backup of an entry. */
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
    'A data directory becomes a database of this account again, with a new record, credentials and port, and its old id where that is free. A backup is loaded by an engine first and becomes a backup of the database that it belonged to, or of another one. Only the first account of the server may ask.',
  params: Type.Object({ id: Type.String({ description: '`id` of the entry.' }) }),
  body: { kind: 'json', schema: AdoptSchema },
  success: {
    status: 200,
    description: 'What it is now.',
    body: Type.Object({
      database_id: Type.String({ description: 'The database, or that of the backup.' }),
      backup_id: Type.Optional(Type.String({ description: 'Of a backup: its identifier.' })),
    }),
  },
  errors: [
    'invalid_json',
    'operator_only',
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
