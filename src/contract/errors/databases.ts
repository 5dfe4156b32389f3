import { define, type None } from './entry.js'

/** Errors of the management of databases. */
export const databasesErrors = {
  budget_still_spent: define<None>({
    status: 409,
    text: () =>
      'This database is suspended because its budget is spent, not by its owner. Raise the budget, or change to a fixed plan.',
  }),
  database_without_home: define<{ databaseId: string }>({
    status: 503,
    text: ({ databaseId }) =>
      `No node serves the database ${databaseId}: a server without the option "node" created it, and no node has its data. Start a node with the data directory of that server.`,
  }),
  database_moved: define<{ databaseId: string }>({
    status: 503,
    retry: 'later',
    text: ({ databaseId }) =>
      `Another node now serves the database ${databaseId}. Nothing was changed. Send the request again.`,
  }),
  database_not_found: define<{ databaseId: string }>({
    status: 404,
    text: ({ databaseId }) =>
      `database not found: this account has no database with the id "${databaseId}". GET /v2/redis/databases lists all of them.`,
  }),
  database_busy: define<{ modifyingState: string }>({
    status: 409,
    text: ({ modifyingState }) =>
      `The database is being modified (modifying_state is "${modifyingState}"). Try again when modifying_state is empty.`,
  }),
  database_limit: define<{ limit: number; accountType: string }>({
    status: 429,
    text: ({ limit, accountType }) =>
      `This account is of type ${accountType} and already has its limit of ${limit} database${limit === 1 ? '' : 's'}. Delete one first, or ask the operator to raise the limit.`,
  }),
  plan_not_allowed: define<{ plan: string }>({
    status: 403,
    text: ({ plan }) =>
      `plan "${plan}" is not available to an account of type free. Send plan "free", or leave plan out.`,
  }),
  plan_too_small: define<{ plan: string; dataBytes: number; limitBytes: number }>({
    status: 409,
    text: ({ plan, dataBytes, limitBytes }) =>
      `The database holds ${dataBytes} bytes of data, but plan "${plan}" allows ${limitBytes} bytes. Delete data first, or choose a larger plan.`,
  }),
  production_pack_not_allowed: define<{ plan: string }>({
    status: 409,
    text: ({ plan }) => `Plan "${plan}" does not include the production pack. Change to another plan first.`,
  }),
  metrics_not_enabled: define<{ databaseId: string }>({
    status: 409,
    text: ({ databaseId }) =>
      `The database ${databaseId} has no metrics page of its own, because that requires the production pack. Enable it with POST /v2/redis/enable-prodpack/${databaseId}, or scrape /metrics.`,
  }),
  mutual_tls_needs_tls: define<None>({
    status: 409,
    text: () =>
      'Only a database with TLS can require client certificates. Enable TLS first: POST /v2/redis/enable-tls/{id}.',
  }),
  already_set: define<{ feature: string; state: 'enabled' | 'disabled' }>({
    status: 409,
    text: ({ feature, state }) => `${feature} is already ${state} for this database. Nothing was changed.`,
  }),
  idempotency_conflict: define<None>({
    status: 409,
    text: () =>
      'This Idempotency-Key was used in the last 24 hours with a different body. Send the same body again, or use a new key.',
  }),
  idempotency_gone: define<None>({
    status: 409,
    text: () =>
      'The database that was created with this Idempotency-Key has been deleted. Use a new key to create another.',
  }),
  backup_not_found: define<{ backupId: string }>({
    status: 404,
    text: ({ backupId }) =>
      `backup not found: this database has no backup with the id "${backupId}". GET /v2/redis/list-backup/{id} lists the backups of a database.`,
  }),
  too_many_backups: define<{ most: number }>({
    status: 429,
    text: ({ most }) =>
      `The database has ${most} manual backups, which is the limit. Delete some of them first, or ask the operator to raise manualBackups.`,
  }),
  backup_not_ready: define<{ state: string }>({
    status: 409,
    text: ({ state }) =>
      `The backup is ${state} and cannot be used. Choose a backup with the state "completed", or wait while it is "pending".`,
  }),
  backup_too_large: define<{ dataBytes: number; limitBytes: number }>({
    status: 409,
    text: ({ dataBytes, limitBytes }) =>
      `The backup needs ${dataBytes} bytes of memory, but the plan of the database allows ${limitBytes} bytes. Change to a larger plan first.`,
  }),
  daily_backup_not_allowed: define<{ plan: string }>({
    status: 409,
    text: ({ plan }) =>
      `Plan "${plan}" does not include daily backups. Change to another plan first, or create backups by hand.`,
  }),
  import_not_found: define<{ databaseId: string }>({
    status: 404,
    text: ({ databaseId }) =>
      `import not found: this account has no import into a database with the id "${databaseId}". POST /v2/redis/import/{id} starts one.`,
  }),
  too_many_imports: define<{ most: number }>({
    status: 429,
    retry: 'later',
    text: ({ most }) =>
      `${most} imports into databases of this account are active, which is the limit. Start this one when one of them has ended.`,
  }),
  import_failed: define<{ reason: string }>({
    status: 400,
    text: ({ reason }) => `The import failed: ${reason}. The data of the database is unchanged.`,
  }),
  snapshot_failed: define<{ reason: string }>({
    status: 503,
    retry: 'later',
    text: ({ reason }) => `The snapshot could not be taken: ${reason}. The data is unchanged. Try again.`,
  }),
  snapshot_unusable: define<{ reason: string }>({
    status: 400,
    text: ({ reason }) =>
      `The snapshot cannot be used: ${reason}. The data of the database is unchanged. Use another snapshot.`,
  }),
  quarantine_not_found: define<{ id: string }>({
    status: 404,
    text: ({ id }) => `The quarantine has no entry with the id "${id}". GET /v2/redis/quarantine lists the entries.`,
  }),
  quarantine_unusable: define<{ id: string; reason: string }>({
    status: 409,
    text: ({ id, reason }) => `The entry "${id}" cannot be adopted: ${reason}. It stays in quarantine.`,
  }),
  quarantine_for_operator: define<None>({
    status: 403,
    text: () =>
      'Only the first account of this server may do this: files in quarantine may belong to any account. Ask the operator.',
  }),
  descriptors_short: define<None>({
    status: 503,
    retry: 'later',
    text: () =>
      'The server has no file descriptors left for another database. Nothing was created. Try again in a moment, or raise the limit of open files of the server (`ulimit -n`).',
  }),
  no_free_port: define<{ from: number; to: number }>({
    status: 503,
    retry: 'later',
    text: ({ from, to }) =>
      `No port is free for another database: all ports from ${from} to ${to} are in use. Delete a database, or widen --redis-ports.`,
  }),
} as const
