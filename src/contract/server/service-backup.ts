import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'

const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ description })

/** States of the last backup of the whole service. */
export const SERVICE_BACKUP_STATES = ['none', 'running', 'completed', 'failed'] as const

const ServiceBackupSchema = Type.Object({
  state: Type.Enum([...SERVICE_BACKUP_STATES], {
    description: '`none`: no backup was requested since the server started.',
  }),
  name: text('Name of the backup; empty for none.'),
  path: text('Its folder on the machine of the server, or its location in object storage.'),
  databases: count('Number of databases in the store when it was copied.'),
  databases_done: count('Number of databases whose data is in the backup so far.'),
  without: Type.Array(
    Type.Object({
      database_id: text('Id of the database.'),
      database_name: text('Its name.'),
      problem: text('Why its data is not in the backup.'),
    }),
    { description: 'Databases whose data is not in the completed backup.' },
  ),
  bytes: count('Size of the completed backup.'),
  problem: text('Why it failed; empty otherwise.'),
  start_time: count('When it began, Unix seconds.'),
  end_time: count('When it ended, Unix seconds; 0 if it has not ended.'),
})

/** The last backup of the whole service. */
export type ServiceBackup = Static<typeof ServiceBackupSchema>

const operator = { service: 'management', topic: 'Server', auth: 'basic', path: '/v2/server/backup' } as const
const success = { status: 200, description: 'The backup.', body: ServiceBackupSchema } as const

/** Begins a backup of the whole service. */
export const backUpService = endpoint({
  ...operator,
  id: 'backUpService',
  method: 'POST',
  access: 'write',
  summary: 'Back up the whole service',
  description:
    'For the operator: begins a backup of the store, all databases, credentials and keys, consistent with each other, in a new folder that only the user of the server can read, or encrypted in object storage. Responds at once; read the backup to see its progress. Only one backup is made at a time. Only for a server that is alone and has its store in SQLite.',
  body: {
    kind: 'json',
    schema: Type.Object({
      to: Type.String({
        minLength: 1,
        maxLength: 1_000,
        description:
          'Absolute path of the folder of backups on the machine of the server, or a location in object storage such as `s3://bucket/prefix`, for which the options and credentials of the server are used.',
      }),
      keep: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 100_000,
          description:
            'Number of backups to keep there; older ones are deleted once the new one was read back. Default: all.',
        }),
      ),
    }),
  },
  success,
  errors: ['operator_only', 'service_backup_refused'],
})

/** Reads the state of the last backup of the whole service. */
export const getServiceBackup = endpoint({
  ...operator,
  id: 'getServiceBackup',
  method: 'GET',
  access: 'read',
  summary: 'Read the last backup of the whole service',
  description: 'For the operator: the backup that is being made, or the last one since the server started.',
  query: Type.Object({
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 30,
        description: 'Wait until no backup is being made, but at most this many seconds. Default: 0.',
      }),
    ),
  }),
  body: { kind: 'none' },
  success,
  errors: ['operator_only'],
})
