import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'
import { LONGEST_NAME } from './databases.js'

/** The states of a backup (reference redis 1.9). */
export const BACKUP_STATES = ['pending', 'completed', 'failed'] as const

const flagText = (description: string) => Type.Enum(['true', 'false'], { description })

/** A backup as the management API shows it (reference redis 1.9). */
export const BackupSchema = Type.Object({
  backup_id: Type.String({ description: 'Identifier of the backup.' }),
  database_id: Type.String({ description: 'The database that it was made of.' }),
  customer_id: Type.String({ description: 'Owner: the e-mail of the account.' }),
  name: Type.String({ description: 'Its name; names need not be unique.' }),
  creation_time: Type.Integer({ description: 'When it was begun, Unix seconds; it shows the data of that time.' }),
  state: Type.Enum([...BACKUP_STATES], {
    description:
      '`pending` while it is taken and checked, `completed` once an engine has loaded it and found what it should, `failed`.',
  }),
  backup_size: Type.Integer({ description: 'Size of the file, bytes; 0 until it is completed.' }),
  daily_backup: flagText('Whether it was made by the daily schedule; a text, not a boolean.'),
  hourly_backup: flagText('Always "false"; a text, not a boolean.'),
  internal_backup_tag: Type.String({ description: 'Why it was made: `manual`, `daily`, `safety` or `import`.' }),
  key_count: Type.Integer({ description: 'Number of keys in it; 0 until it is completed.' }),
  failure: Type.Optional(Type.String({ description: 'Why it failed.' })),
})

/** A backup as the management API shows it. */
export type BackupRecord = Static<typeof BackupSchema>

const IdParams = Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) })
const BackupParams = Type.Object({
  id: Type.String({ description: '`database_id` of the database.' }),
  backup_id: Type.String({ description: '`backup_id` of one of its backups.' }),
})
const OK = { status: 200, description: 'The text "OK".', body: Type.Literal('OK') } as const
// Real clients send a body where none is asked for: empty, {} or null.
const anyBody = { kind: 'json', optional: true, schema: Type.Unknown() } as const

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

/** Makes a backup. */
export const createBackup = endpoint({
  id: 'createBackup',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/create-backup/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Make a backup',
  description:
    'Takes a snapshot while the database goes on serving, loads it in an engine of its own, compares, and answers. The backup is listed as pending meanwhile, and other changes of the database are refused. It goes on when the caller leaves.',
  params: IdParams,
  body: {
    kind: 'json',
    schema: Type.Object({
      name: Type.String({
        description: `Name: 1 to ${LONGEST_NAME} characters after trimming, no control characters.`,
      }),
    }),
  },
  success: OK,
  errors: [
    'invalid_json',
    'database_not_found',
    'database_busy',
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
  description: 'Deletes the backup and its file. There is no way back.',
  params: BackupParams,
  body: anyBody,
  success: OK,
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
    'Replaces all data of the database by that of a backup, which may be one of any database of the account. A backup of the present data is made first (its tag is `safety`); when that fails, nothing is replaced. Data that no engine can read is set aside instead, in the quarantine of the data directory. Clients stay connected: while the data is replaced, their commands wait. Answers when the database serves the restored data, and goes on when the caller leaves.',
  params: IdParams,
  body: {
    kind: 'json',
    schema: Type.Object({ backup_id: Type.String({ description: '`backup_id` of a completed backup.' }) }),
  },
  success: OK,
  errors: [
    'invalid_json',
    'database_not_found',
    'backup_not_found',
    'backup_not_ready',
    'backup_too_large',
    'database_busy',
    'snapshot_failed',
    'snapshot_unusable',
    'engine_failed',
    'store_full',
    'store_unavailable',
    'starting',
  ],
})

/** Accepts a loss of data. */
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
    'For a database whose record has a `data_problem`. Where data is missing, it begins empty; where its log is damaged, it begins with what comes before the damage. What was on the disk is kept in the quarantine of the data directory. Answers when the database serves. A database without such a problem stays as it is.',
  params: IdParams,
  body: anyBody,
  success: OK,
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
    summary: `Switch daily backups ${verb === 'enable' ? 'on' : 'off'}${method === 'POST' ? ', by POST' : ''}`,
    description:
      verb === 'enable'
        ? 'A backup is made every day from now on, at this time of the day, and kept for 1 day, or 3 days with the production pack. Not on plan free. What is on stays as it is.'
        : 'No further daily backups are made. Those that exist are deleted when their time is over.',
    params: IdParams,
    body: anyBody,
    success: OK,
    errors: ['database_not_found', 'database_busy', 'daily_backup_not_allowed', 'store_unavailable'],
  })

/** Switches daily backups on. */
export const enableDailyBackup = daily('PATCH', 'enable')
/** The same in the spelling of older clients. */
export const enableDailyBackupByPost = daily('POST', 'enable')
/** Switches daily backups off. */
export const disableDailyBackup = daily('PATCH', 'disable')
/** The same in the spelling of older clients. */
export const disableDailyBackupByPost = daily('POST', 'disable')

/** How far an import has come. */
export const IMPORT_STATES = ['reading', 'checking', 'restoring', 'completed', 'failed'] as const

/** An import as the management API shows it. */
export const ImportSchema = Type.Object({
  database_id: Type.String({ description: 'The database that is imported into.' }),
  backup_id: Type.String({ description: 'The backup that is made of what is read.' }),
  source: Type.String({ description: 'Where the data comes from, without credentials.' }),
  state: Type.Enum([...IMPORT_STATES], {
    description: '`reading` the source, `checking` what was read, `restoring` it, then `completed` or `failed`.',
  }),
  keys_read: Type.Integer({ description: 'Keys read so far; 0 for a file until it is checked.' }),
  keys_total: Type.Optional(Type.Integer({ description: 'Keys that the source had at the beginning, where known.' })),
  bytes_read: Type.Integer({ description: 'Bytes read so far.' }),
  started_at: Type.Integer({ description: 'Unix seconds.' }),
  finished_at: Type.Optional(Type.Integer({ description: 'Unix seconds.' })),
  failure: Type.Optional(Type.String({ description: 'Why it failed; the data of the database is untouched then.' })),
})

/** An import as the management API shows it. */
export type ImportRecord = Static<typeof ImportSchema>

const importErrors = ['database_not_found', 'database_busy', 'store_unavailable', 'starting'] as const

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
    'Copies all keys of another server, then replaces all data of the database by them as a restore does, safety backup included. Until then the data of the database is untouched. Answers at once; ask for the progress. Keys that change at the source while it is read are copied as they are found.',
  params: IdParams,
  body: {
    kind: 'json',
    schema: Type.Object({
      url: Type.String({
        description: '`redis://` or `rediss://` with user, password, host, port and database number.',
      }),
    }),
  },
  success: { status: 200, description: 'The import, as it begins.', body: ImportSchema },
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
    'The body is the file: `curl --data-binary @dump.rdb`. An engine of its own loads it; then all data of the database is replaced by it as a restore does, safety backup included. Answers when the database serves the imported data.',
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

/** Tells how far the last import has come. */
export const getImport = endpoint({
  id: 'getImport',
  service: 'management',
  topic: 'Backups and imports',
  method: 'GET',
  path: '/v2/redis/import/{id}',
  auth: 'basic',
  access: 'read',
  summary: 'Progress of the last import',
  description: 'The last import into the database, under way or ended.',
  params: IdParams,
  body: { kind: 'none' },
  success: { status: 200, description: 'The import.', body: ImportSchema },
  errors: ['import_not_found', 'store_unavailable'],
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
    'The backup as an RDB file, as Redis and Valkey read it: `curl -o dump.rdb`. The header X-Content-SHA256 has the digest of the whole.',
  params: BackupParams,
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The bytes of the file.',
    body: Type.String({ format: 'binary' }),
    contentType: 'application/octet-stream',
  },
  errors: ['database_not_found', 'backup_not_found', 'backup_not_ready', 'team_forbidden', 'store_unavailable'],
})
