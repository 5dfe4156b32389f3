import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'

const text = (description: string) => Type.String({ description })
const count = (description: string) => Type.Integer({ description })

/** States of the last backup of the whole service. */
export const SERVICE_BACKUP_STATES = ['none', 'running', 'completed', 'failed'] as const

const ServiceBackupSchema = Type.Object({
  state: Type.Enum([...SERVICE_BACKUP_STATES], { description: '`none`: none was asked for since the server started.' }),
  name: text('Name of the backup; empty for none.'),
  path: text('Its folder on the machine of the server, or its place in object storage.'),
  databases: count('How many databases the store knew when it was copied.'),
  databases_done: count('How many of them are in the backup.'),
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
  end_time: count('When it ended, Unix seconds; 0 while it has not.'),
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
    'For the operator: begins a backup of the store, all databases, credentials and keys, consistent with each other, in a new folder that only the user of the server can read, or encrypted in object storage. The reply comes at once; read the backup to see its progress. One backup is made at a time. Only for a server that is alone and has its store in SQLite.',
  body: {
    kind: 'json',
    schema: Type.Object({
      to: Type.String({
        minLength: 1,
        maxLength: 1_000,
        description:
          'Absolute path of the folder of backups on the machine of the server, or a place in object storage such as `s3://bucket/prefix`, which is reached with the options and credentials of the server.',
      }),
      keep: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 100_000,
          description: 'How many backups stay there, once the new one was read back. Default: all.',
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
        description: 'Answer only when no backup is being made, but after this many seconds at the latest. Default: 0.',
      }),
    ),
  }),
  body: { kind: 'none' },
  success,
  errors: ['operator_only'],
})
