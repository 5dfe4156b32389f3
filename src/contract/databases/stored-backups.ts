import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_NAME_LENGTH } from './databases.js'

const StoredBackupSchema = Type.Object({
  database_id: Type.String({ description: 'The database that was backed up.' }),
  backup_id: Type.String({ description: 'Identifier of the backup.' }),
  database_name: Type.String({ description: 'Name of the database at that time; empty if it cannot be read.' }),
  name: Type.String({ description: 'Name of the backup; empty if it cannot be read.' }),
  creation_time: Type.Integer({ description: 'When the backup began, Unix seconds; 0 if it cannot be read.' }),
  backup_size: Type.Integer({ description: 'Size of the RDB file, bytes.' }),
  key_count: Type.Integer({ description: 'Number of keys.' }),
  object_size: Type.Integer({ description: 'Size of the object, bytes.' }),
  problem: Type.Optional(Type.String({ description: 'Why it cannot be read: damage, or a missing key.' })),
})

/** A backup in object storage as the management API shows it. */
export type StoredBackupRecord = Static<typeof StoredBackupSchema>

const storageErrors = [
  'quarantine_for_operator',
  'invalid_request',
  'object_storage_failed',
  'store_unavailable',
  'starting',
] as const

/** Lists the backups in object storage. */
export const listStoredBackups = endpoint({
  id: 'listStoredBackups',
  service: 'management',
  topic: 'Backups and imports',
  method: 'GET',
  path: '/v2/redis/stored-backups',
  auth: 'basic',
  access: 'read',
  summary: 'List the backups in object storage',
  description:
    'The backups in object storage, newest first, at most 1,000, including backups of other servers and of deleted databases. Only for the first account of the server.',
  query: Type.Object({
    database_id: Type.Optional(Type.String({ description: 'Only the backups of this database.' })),
  }),
  body: { kind: 'none' },
  success: { status: 200, description: 'The backups.', body: Type.Array(StoredBackupSchema) },
  errors: [...storageErrors],
})

/** Adds a backup in object storage to the backups of a database. */
export const adoptStoredBackup = endpoint({
  id: 'adoptStoredBackup',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/adopt-stored-backup/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Adopt a backup from object storage',
  description:
    'Downloads a backup that this server may never have known, decrypts it, loads it in a separate engine, and adds it to the backups of a database. Its data is not restored yet. Only for the first account of the server.',
  params: Type.Object({ id: Type.String({ description: '`database_id` of the database that gets the backup.' }) }),
  body: {
    kind: 'json',
    schema: Type.Object({
      database_id: Type.String({ description: '`database_id` in object storage.' }),
      backup_id: Type.String({ description: '`backup_id` in object storage.' }),
      name: Type.Optional(Type.String({ description: `Name of the backup, 1 to ${MAX_NAME_LENGTH} characters.` })),
    }),
  },
  success: {
    status: 200,
    description: 'The new backup.',
    body: Type.Object({
      database_id: Type.String({ description: 'The database.' }),
      backup_id: Type.String({ description: 'The backup.' }),
    }),
  },
  errors: [
    'invalid_json',
    ...storageErrors,
    'database_not_found',
    'database_busy',
    'object_missing',
    'sealed_unusable',
    'sealed_key_missing',
    'snapshot_unusable',
    'engine_failed',
    'store_full',
  ],
})
