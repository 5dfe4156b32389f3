import { define, type None } from './entry.js'

/** Errors of the management of databases. */
export const databasesErrors = {
  database_not_found: define<{ databaseId: string }>({
    status: 404,
    blame: 'caller',
    retry: 'never',
    text: ({ databaseId }) =>
      `database not found: this account has no database with the id "${databaseId}". GET /v2/redis/databases lists all of them.`,
  }),
  database_busy: define<{ modifyingState: string }>({
    status: 409,
    blame: 'caller',
    retry: 'later',
    text: ({ modifyingState }) =>
      `The database is being modified (modifying_state is "${modifyingState}"). Try again when modifying_state is empty.`,
  }),
  database_limit: define<{ limit: number; accountType: string }>({
    status: 429,
    blame: 'caller',
    retry: 'never',
    text: ({ limit, accountType }) =>
      `This account is of type ${accountType} and already holds its limit of ${limit} database${limit === 1 ? '' : 's'}. Delete one first, or ask the operator to raise the limit.`,
  }),
  plan_not_allowed: define<{ plan: string }>({
    status: 403,
    blame: 'caller',
    retry: 'never',
    text: ({ plan }) => `plan "${plan}" is not open to an account of type free. Send plan "free", or leave plan out.`,
  }),
  plan_too_small: define<{ plan: string; dataBytes: number; limitBytes: number }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ plan, dataBytes, limitBytes }) =>
      `The data in use takes ${dataBytes} bytes, but plan "${plan}" holds ${limitBytes}. Delete data first, or choose a larger plan.`,
  }),
  production_pack_not_allowed: define<{ plan: string }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ plan }) => `The production pack is not part of plan "${plan}". Change to another plan first.`,
  }),
  mutual_tls_needs_tls: define<None>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: () =>
      'Only a database with TLS can ask its clients for certificates. Switch it on first: POST /v2/redis/enable-tls/{id}.',
  }),
  already_set: define<{ feature: string; state: 'enabled' | 'disabled' }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ feature, state }) => `${feature} is already ${state} for this database. Nothing was changed.`,
  }),
  idempotency_conflict: define<None>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: () =>
      'This Idempotency-Key was used in the last 24 hours with a different body. Send the same body again, or use a new key.',
  }),
  idempotency_gone: define<None>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: () =>
      'The database that was created with this Idempotency-Key has been deleted. Use a new key to create another.',
  }),
  backup_not_found: define<{ backupId: string }>({
    status: 404,
    blame: 'caller',
    retry: 'never',
    text: ({ backupId }) =>
      `backup not found: there is no backup with the id "${backupId}" here. GET /v2/redis/list-backup/{id} lists the backups of a database.`,
  }),
  backup_not_ready: define<{ state: string }>({
    status: 409,
    blame: 'caller',
    retry: 'later',
    text: ({ state }) =>
      `The backup is ${state}, so it cannot be used for this. Choose one whose state is "completed", or wait while it is "pending".`,
  }),
  backup_too_large: define<{ dataBytes: number; limitBytes: number }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ dataBytes, limitBytes }) =>
      `The backup takes ${dataBytes} bytes of memory, but the plan of the database allows ${limitBytes}. Change to a larger plan first.`,
  }),
  daily_backup_not_allowed: define<{ plan: string }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ plan }) =>
      `Daily backups are not part of plan "${plan}". Change to another plan first, or make single backups.`,
  }),
  import_not_found: define<{ databaseId: string }>({
    status: 404,
    blame: 'caller',
    retry: 'never',
    text: ({ databaseId }) =>
      `import not found: nothing was ever imported into a database "${databaseId}" of this account.`,
  }),
  import_failed: define<{ reason: string }>({
    status: 400,
    blame: 'caller',
    retry: 'later',
    text: ({ reason }) => `The import has failed: ${reason}. The data of the database is untouched.`,
  }),
  snapshot_failed: define<{ reason: string }>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: ({ reason }) => `The snapshot could not be taken: ${reason}. The data is untouched; try again.`,
  }),
  snapshot_unusable: define<{ reason: string }>({
    status: 400,
    blame: 'caller',
    retry: 'never',
    text: ({ reason }) =>
      `The snapshot cannot be used: ${reason}. The data of the database is untouched; use another snapshot.`,
  }),
  quarantine_not_found: define<{ id: string }>({
    status: 404,
    blame: 'caller',
    retry: 'never',
    text: ({ id }) => `Nothing in quarantine has the id "${id}". GET /v2/redis/quarantine lists what there is.`,
  }),
  quarantine_unusable: define<{ id: string; reason: string }>({
    status: 409,
    blame: 'caller',
    retry: 'never',
    text: ({ id, reason }) => `"${id}" cannot be adopted: ${reason}. It stays in quarantine.`,
  }),
  operator_only: define<None>({
    status: 403,
    blame: 'caller',
    retry: 'never',
    text: () =>
      'Only the first account of this server may do this: what is in quarantine may belong to any account. Ask the operator.',
  }),
  descriptors_short: define<None>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: () =>
      'The server has no file descriptor left for another database. Nothing was created; try again in a moment, or raise the limit of open files of the server (`ulimit -n`).',
  }),
  no_free_port: define<{ from: number; to: number }>({
    status: 503,
    blame: 'operator',
    retry: 'later',
    text: ({ from, to }) =>
      `No port is free for another database: all of ${from}-${to} are taken. Delete a database, or widen --redis-ports.`,
  }),
} as const
