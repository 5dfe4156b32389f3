import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok } from '../endpoint.js'
import { MAX_NAME_LENGTH } from './databases.js'

/** The states of a backup (reference redis 1.9). */
export const BACKUP_STATES = ['pending', 'completed', 'failed'] as const

const flagText = (description: string) => Type.Enum(['true', 'false'], { description })

/** A backup as the management API shows it (reference redis 1.9). */
export const BackupSchema = Type.Object({
  backup_id: Type.String({ description: 'Identifier of the backup.' }),
  database_id: Type.String({ description: 'The database of the backup.' }),
  customer_id: Type.String({ description: 'Owner: the e-mail of the account.' }),
  name: Type.String({ description: 'Name of the backup; names need not be unique.' }),
  creation_time: Type.Integer({ description: 'When the backup began, Unix seconds. It has the data of that time.' }),
  state: Type.Enum([...BACKUP_STATES], {
    description:
      '`pending` while it is taken and verified, `completed` when an engine has loaded it and its contents match, `failed` otherwise.',
  }),
  backup_size: Type.Integer({ description: 'Size of the file, bytes; 0 until it is completed.' }),
  daily_backup: flagText('Whether the daily schedule created it; a text, not a boolean.'),
  hourly_backup: flagText('Always "false"; a text, not a boolean.'),
  internal_backup_tag: Type.String({ description: 'Why it was created: `manual`, `daily`, `safety` or `import`.' }),
  key_count: Type.Integer({ description: 'Number of keys; 0 until it is completed.' }),
  failure: Type.Optional(Type.String({ description: 'Why it failed.' })),
  on_disk: Type.Optional(
    Type.Boolean({ description: 'With object storage: whether the file is on the disk of the server too.' }),
  ),
  storage: Type.Optional(
    Type.Object(
      {
        state: Type.Enum(['waiting', 'stored', 'unusable'], {
          description:
            '`waiting` to be uploaded, `stored` when it was uploaded, read back and compared, `unusable` when its file has changed, so that it was not uploaded.',
        }),
        object: Type.String({ description: 'Location of the object.' }),
        size: Type.Integer({ description: 'Size of the object, bytes; 0 until it is stored.' }),
        changed_at: Type.Integer({ description: 'When it got this state, Unix seconds.' }),
        failure: Type.Optional(Type.String({ description: 'Why the last upload failed.' })),
      },
      { description: 'The copy in object storage; absent without object storage.' },
    ),
  ),
})

/** A backup as the management API shows it. */
export type BackupRecord = Static<typeof BackupSchema>

const IdParams = Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) })
const BackupParams = Type.Object({
  id: Type.String({ description: '`database_id` of the database.' }),
  backup_id: Type.String({ description: '`backup_id` of one of its backups.' }),
})

/** Lists the backups of a database. */
export const listBackups = endpoint({
  id: 'listBackups',
  service: 'management',
  topic: 'Backups and imports',
  method: 'GET',
  path: '/v2/redis/list-backup/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'List the backups of a database',
  description: 'All backups of the database, newest first.',
  params: IdParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The backups.', body: Type.Array(BackupSchema) },
  errors: ['database_not_found', 'store_unavailable'],
})

/** Creates a backup. */
export const createBackup = endpoint({
  id: 'createBackup',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/create-backup/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Create a backup',
  description:
    'Takes a snapshot while the database keeps serving, loads it in a separate engine, compares the contents, and responds. Until then the backup is listed as pending, and other changes of the database are refused. The backup continues when the caller disconnects.',
  params: IdParams,
  body: {
    kind: 'json',
    schema: Type.Object({
      name: Type.String({
        description: `Name: 1 to ${MAX_NAME_LENGTH} characters after trimming, no control characters.`,
      }),
    }),
  },
  success: ok,
  errors: [
    'invalid_json',
    'database_not_found',
    'database_busy',
    'too_many_backups',
    'snapshot_failed',
    'engine_failed',
    'store_full',
    'store_unavailable',
    'starting',
  ],
})

/** Deletes a backup. */
export const deleteBackup = endpoint({
  id: 'deleteBackup',
  service: 'management',
  topic: 'Backups and imports',
  method: 'DELETE',
  path: '/v2/redis/delete-backup/{id}/{backup_id}',
  auth: 'basic',
  access: 'write',
  summary: 'Delete a backup',
  description: 'Deletes the backup and its file. This cannot be undone.',
  params: BackupParams,
  body: noFields,
  success: ok,
  errors: ['database_not_found', 'backup_not_found', 'database_busy', 'store_unavailable'],
})

/** Restores a backup. */
export const restoreBackup = endpoint({
  id: 'restoreBackup',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/restore-backup/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Restore a backup into a database',
  description:
    'Replaces all data of the database with that of a backup of any database of the account. The server first creates a backup of the current data (its tag is `safety`); if that fails, nothing is replaced. If no engine can read the current data, the server moves it to the quarantine of the data directory instead. Clients stay connected: their commands wait while the data is replaced. Responds when the database serves the restored data. The restore continues when the caller disconnects.',
  params: IdParams,
  body: {
    kind: 'json',
    schema: Type.Object({ backup_id: Type.String({ description: '`backup_id` of a completed backup.' }) }),
  },
  success: ok,
  errors: [
    'invalid_json',
    'database_not_found',
    'backup_not_found',
    'backup_not_ready',
    'backup_too_large',
    'database_busy',
    'snapshot_failed',
    'snapshot_unusable',
    'sealed_unusable',
    'sealed_key_missing',
    'object_missing',
    'object_storage_failed',
    'engine_failed',
    'store_full',
    'store_unavailable',
    'starting',
  ],
})

/** Accepts that data is lost. */
export const acceptDataLoss = endpoint({
  id: 'acceptDataLoss',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/accept-loss/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Accept that data of a database is lost',
  description:
    'For a database whose record has a `data_problem`. If the data is missing, the database starts empty; if its log is damaged, it starts with the data before the damage. The files on the disk are moved to the quarantine of the data directory. Responds when the database serves. A database without a `data_problem` is not changed.',
  params: IdParams,
  body: noFields,
  success: ok,
  errors: ['database_not_found', 'database_busy', 'engine_failed', 'store_full', 'store_unavailable', 'starting'],
})

const daily = <Method extends 'PATCH' | 'POST', Verb extends 'enable' | 'disable'>(method: Method, verb: Verb) =>
  endpoint({
    id: `${verb}DailyBackup${method === 'POST' ? 'ByPost' : ''}`,
    service: 'management',
    topic: 'Backups and imports',
    method,
    path: `/v2/redis/${verb}-dailybackup/{id}`,
    auth: 'basic',
    access: 'write',
    summary: `${verb === 'enable' ? 'Enable' : 'Disable'} daily backups${method === 'POST' ? ', by POST' : ''}`,
    description:
      verb === 'enable'
        ? 'The server creates a backup every day at this time of day and keeps it for 1 day, or 3 days with the production pack. Not available on plan free. Does nothing when daily backups are already enabled.'
        : 'No further daily backups are created. Existing ones are deleted when they expire.',
    params: IdParams,
    body: noFields,
    success: ok,
    errors: ['database_not_found', 'database_busy', 'daily_backup_not_allowed', 'store_unavailable'],
  })

/** Enables daily backups. */
export const enableDailyBackup = daily('PATCH', 'enable')
/** Enables daily backups, with the method of older clients. */
export const enableDailyBackupByPost = daily('POST', 'enable')
/** Disables daily backups. */
export const disableDailyBackup = daily('PATCH', 'disable')
/** Disables daily backups, with the method of older clients. */
export const disableDailyBackupByPost = daily('POST', 'disable')

/** The states of an import. */
export const IMPORT_STATES = ['reading', 'checking', 'restoring', 'completed', 'failed'] as const

/** An import as the management API shows it. */
export const ImportSchema = Type.Object({
  database_id: Type.String({ description: 'The database that gets the data.' }),
  backup_id: Type.String({ description: 'The backup that holds the data read from the source.' }),
  source: Type.String({ description: 'Where the data comes from, without credentials.' }),
  state: Type.Enum([...IMPORT_STATES], {
    description: '`reading` the source, `checking` what was read, `restoring` it, then `completed` or `failed`.',
  }),
  keys_read: Type.Integer({ description: 'Keys read so far; 0 for a file until it is checked.' }),
  keys_total: Type.Optional(Type.Integer({ description: 'Keys of the source when the import began, if known.' })),
  bytes_read: Type.Integer({ description: 'Bytes read so far.' }),
  started_at: Type.Integer({ description: 'Unix seconds.' }),
  finished_at: Type.Optional(Type.Integer({ description: 'Unix seconds.' })),
  failure: Type.Optional(Type.String({ description: 'Why it failed. The data of the database is unchanged.' })),
})

/** An import as the management API shows it. */
export type ImportRecord = Static<typeof ImportSchema>

const importErrors = [
  'database_not_found',
  'database_busy',
  'too_many_imports',
  'store_unavailable',
  'starting',
] as const

/** Imports from another server. */
export const importFromUrl = endpoint({
  id: 'importFromUrl',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/import/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Import from a Redis server',
  description:
    'Copies all keys of another server. Then it replaces all data of the database with them, after a safety backup, as a restore does; until then the data of the database is unchanged. Responds at once; `GET` shows the progress. Keys that change at the source during the import are copied as they are when they are read.',
  params: IdParams,
  body: {
    kind: 'json',
    schema: Type.Object({
      url: Type.String({
        description: '`redis://` or `rediss://` with user, password, host, port and database number.',
      }),
    }),
  },
  success: { status: 200, description: 'The import that has begun.', body: ImportSchema },
  errors: ['invalid_json', ...importErrors],
})

/** Imports an RDB file. */
export const importFile = endpoint({
  id: 'importFile',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/import-rdb/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Import an RDB file',
  description:
    'The body is the file: `curl --data-binary @dump.rdb`. A separate engine loads it. Then the server replaces all data of the database, after a safety backup, as a restore does. Responds when the database serves the imported data.',
  params: IdParams,
  body: { kind: 'stream' },
  success: { status: 200, description: 'The import, completed.', body: ImportSchema },
  errors: [
    ...importErrors,
    'body_too_large',
    'import_failed',
    'snapshot_unusable',
    'snapshot_failed',
    'backup_too_large',
    'engine_failed',
    'store_full',
  ],
})

/** Shows the progress of the last import. */
export const getImport = endpoint({
  id: 'getImport',
  service: 'management',
  topic: 'Backups and imports',
  method: 'GET',
  path: '/v2/redis/import/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Show the progress of the last import',
  description: 'The last import into the database, running or ended.',
  params: IdParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The import.', body: ImportSchema },
  errors: ['import_not_found', 'store_unavailable'],
})

/** Lists the imports into a database; only the last one is kept. */
export const listImports = endpoint({
  id: 'listImports',
  service: 'management',
  topic: 'Backups and imports',
  method: 'GET',
  path: '/v2/redis/imports/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'List the imports into a database',
  description: 'The last import into the database, running or ended; empty when there was none.',
  params: IdParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The imports.', body: Type.Array(ImportSchema) },
  errors: ['database_not_found', 'store_unavailable'],
})

/** Downloads a backup as an RDB file. */
export const downloadBackup = endpoint({
  id: 'downloadBackup',
  service: 'management',
  topic: 'Backups and imports',
  method: 'GET',
  path: '/v2/redis/download-backup/{id}/{backup_id}',
  auth: 'basic',
  access: 'read',
  summary: 'Download a backup',
  description:
    'The backup as an RDB file for Redis and Valkey: `curl -o dump.rdb`. The header X-Content-SHA256 has the SHA-256 digest of the file.',
  params: BackupParams,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The bytes of the file.',
    body: Type.String({ format: 'binary' }),
    contentType: 'application/octet-stream',
  },
  errors: [
    'database_not_found',
    'backup_not_found',
    'backup_not_ready',
    'team_forbidden',
    'store_full',
    'store_unavailable',
    'sealed_unusable',
    'sealed_key_missing',
    'object_missing',
    'object_storage_failed',
  ],
})
