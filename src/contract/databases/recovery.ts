import { type Static, Type } from 'typebox'
import { endpoint } from '../endpoint.js'

const RecoverySchema = Type.Object({
  database_id: Type.String({ description: 'The database.' }),
  backup_id: Type.String({ description: 'The backup that it serves now.' }),
  from_node: Type.String({ description: 'The node that served it; empty on a server that is alone.' }),
  node: Type.String({ description: 'The node that serves it now; empty on a server that is alone.' }),
  data_time: Type.Integer({
    description: 'Time of the data, Unix seconds. Writes after this time are lost.',
  }),
  age_seconds: Type.Integer({ description: 'Age of the data, seconds.' }),
})

/** The result of a recovery. */
export type RecoveryRecord = Static<typeof RecoverySchema>

/** Recreates a database whose node is gone. */
export const recoverDatabase = endpoint({
  id: 'recoverDatabase',
  service: 'management',
  topic: 'Backups and imports',
  method: 'POST',
  path: '/v2/redis/recover/{id}',
  auth: 'basic',
  access: 'write',
  summary: 'Recover a database whose node is gone',
  description:
    'Recreates the database on a live node from a backup in object storage. All later writes are lost. The request is refused while the node of the database runs. If that node comes back, it does not serve the database and sets its files aside. If the chosen node already serves the database, or the server is alone, this is a restore.',
  params: Type.Object({ id: Type.String({ description: '`database_id` of the database.' }) }),
  body: {
    kind: 'json',
    schema: Type.Object({
      backup_id: Type.Optional(Type.String({ description: 'Default: the newest backup in object storage.' })),
      node: Type.Optional(
        Type.String({
          description: 'The node that will serve it. Default: the node that answers this request.',
          maxLength: 100,
        }),
      ),
    }),
  },
  success: { status: 200, description: 'The database serves the data of the backup.', body: RecoverySchema },
  errors: [
    'invalid_json',
    'database_not_found',
    'database_without_home',
    'database_home_runs',
    'database_busy',
    'backup_not_found',
    'backup_not_ready',
    'backup_too_large',
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
