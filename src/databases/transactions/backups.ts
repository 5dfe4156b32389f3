import type { Selectable } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { BackupsTable } from '../../store/schema/backups.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { type BackupIds, dropBackups, forgetDeleted, forgetDeletedOf } from './backup-deletions.js'
import { type DatabaseRow, rowToChange } from './database-row.js'
import { HAS_MOVED, isHomeOf } from './home-check.js'
import { isOfHome, type OfHome } from './homes.js'

/** A backup as it is stored. */
export type BackupRow = Selectable<BackupsTable>

/** A backup with what identifies its file. */
export type BackupFile = Pick<BackupRow, 'database_id' | 'backup_id' | 'state'>

/** A backup that is about to be made. */
export type NewBackup = Pick<BackupRow, 'backup_id' | 'database_id' | 'name' | 'kind' | 'created_at'>

/** Why a change to a database cannot begin. */
export type Refusal =
  | { readonly kind: 'not_found' }
  | { readonly kind: 'busy'; readonly modifyingState: string }
  | { readonly kind: 'plan'; readonly plan: string }
  | { readonly kind: 'too_many'; readonly most: number }

/** The failure that the next start stores for interrupted backups and imports. */
export const INTERRUPTED = 'the server ended while it was being made'

const setModifying = query<{
  databaseId: string
  from: DatabaseRow['modifying_state']
  to: DatabaseRow['modifying_state']
}>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: p.to })
    .where('database_id', '=', p.databaseId)
    .where('modifying_state', '=', p.from),
)
const backupOf = query<{ backupId: string }, BackupRow>(({ db, p }) =>
  db.selectFrom('backups').selectAll().where('backup_id', '=', p.backupId),
)

/**
 * Locks the row of a database, if no other long change of it is active.
 * @param accountId the required owner; undefined for changes that the server makes itself.
 * @param home the node that makes the change. Default: whichever is the home.
 */
export function* lockForChange(
  databaseId: string,
  accountId: string | undefined,
  home?: string | undefined,
): Transaction<{ kind: 'free'; database: DatabaseRow } | Refusal> {
  const database = yield* first(rowToChange, { databaseId })
  if (!database || (accountId !== undefined && database.account_id !== accountId)) return { kind: 'not_found' }
  const { modifying_state: modifyingState } = database
  if (modifyingState !== '') return { kind: 'busy', modifyingState }
  return isHomeOf(database, home) ? { kind: 'free', database } : HAS_MOVED
}

/** Moves a database from one `modifying_state` to another, if it is in the first. */
export function* moveModifying(
  databaseId: string,
  from: DatabaseRow['modifying_state'],
  to: DatabaseRow['modifying_state'],
): Transaction<boolean> {
  return (yield* change(setModifying, { databaseId, from, to })) > 0
}

/** Inserts a `pending` backup. */
export function* insertPending(backup: NewBackup): Transaction<void> {
  const figures = { size_bytes: 0, key_count: 0, data_bytes: 0, sha256: '', finished_at: null, failure: null }
  yield* insertAll('backups', [{ ...backup, state: 'pending', ...figures }])
}

/** Inserts the pending safety backup of a restore. */
export const add = write('backups.add', function* (args: { backup: NewBackup }): Transaction<void> {
  yield* insertPending(args.backup)
})

/** Arguments of `begin`. */
export interface BeginArgs {
  readonly backup: NewBackup
  /** The required owner; undefined for scheduled backups. */
  readonly accountId?: string | undefined
  readonly audit?: NewAuditRow | undefined
  /** Maximum manual backups of the database; undefined for backups that are not counted. */
  readonly most?: number
  /** The node that makes it. Default: whichever is the home. */
  readonly home?: string
}

const countManual = query<{ databaseId: string }, { count: number }>(({ db, p }) =>
  db
    .selectFrom('backups')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('database_id', '=', p.databaseId)
    .where('kind', '=', 'manual'),
)

/** (empty) becomes `backing_up`, and a pending backup is inserted. */
export const begin = write('backups.begin', function* (args: BeginArgs): Transaction<
  { kind: 'begun'; database: DatabaseRow } | Refusal
> {
  const { backup, accountId, audit, home, most = Number.POSITIVE_INFINITY } = args
  const { database_id: databaseId } = backup
  const found = yield* lockForChange(databaseId, accountId, home)
  if (found.kind !== 'free') return found
  const { count = 0 } = (yield* first(countManual, { databaseId })) ?? {}
  if (count >= most) return { kind: 'too_many', most }
  yield* moveModifying(databaseId, '', 'backing_up')
  yield* insertPending(backup)
  if (audit) yield* recordAudit(audit)
  return { kind: 'begun', database: found.database }
})

/** The outcome of a backup. */
export type BackupResult =
  | {
      readonly kind: 'completed'
      readonly sizeBytes: number
      readonly keyCount: number
      readonly dataBytes: number
      readonly sha256: string
    }
  | { readonly kind: 'failed'; readonly failure: string }

type Outcome = Pick<
  BackupRow,
  'state' | 'size_bytes' | 'key_count' | 'data_bytes' | 'sha256' | 'failure' | 'finished_at'
>
const setOutcome = query<Outcome & { backupId: string }>(({ db, p }) =>
  db
    .updateTable('backups')
    .set({
      state: p.state,
      size_bytes: p.size_bytes,
      key_count: p.key_count,
      data_bytes: p.data_bytes,
      sha256: p.sha256,
      failure: p.failure,
      finished_at: p.finished_at,
    })
    .where('backup_id', '=', p.backupId)
    .where('state', '=', 'pending'),
)

function outcomeOf(result: BackupResult, at: number): Outcome {
  if (result.kind === 'failed') {
    const { failure } = result
    return { state: 'failed', size_bytes: 0, key_count: 0, data_bytes: 0, sha256: '', failure, finished_at: at }
  }
  const { sizeBytes: size_bytes, keyCount: key_count, dataBytes: data_bytes, sha256 } = result
  return { state: 'completed', size_bytes, key_count, data_bytes, sha256, failure: null, finished_at: at }
}

/** How a backup ended, and when. */
export interface Settled {
  readonly backupId: string
  readonly result: BackupResult
  readonly at: number
}

/** A pending backup becomes completed or failed. A `backing_up` database becomes (empty). */
export function* settle({ backupId, result, at }: Settled): Transaction<BackupRow | undefined> {
  const changed = yield* change(setOutcome, { backupId, ...outcomeOf(result, at) })
  const row = yield* first(backupOf, { backupId })
  // After a repetition, the database may be making another backup.
  if (row && changed > 0) yield* moveModifying(row.database_id, 'backing_up', '')
  return row
}

/** Stores the outcome of a backup; see `settle`. May be repeated. */
export const finish = write('backups.finish', settle)

const pendingSnapshotsQuery = query<OfHome, BackupRow>(({ db, p }) =>
  db
    .selectFrom('backups')
    .selectAll()
    .where('state', '=', 'pending')
    .where('kind', '!=', 'import')
    .where((eb) => isOfHome(eb, p))
    .orderBy('backup_id'),
)

/** The pending backups of a node that are snapshots of its databases, not of foreign data. */
export const pendingSnapshots = read('backups.pendingSnapshots', function* (args: OfHome): Transaction<BackupRow[]> {
  return yield* all(pendingSnapshotsQuery, args)
})

/** Inserts a completed backup for a file from quarantine. */
export const adopt = write(
  'backups.adopt',
  function* (args: {
    backup: NewBackup
    result: Extract<BackupResult, { kind: 'completed' }>
    at: number
    audit: NewAuditRow
  }): Transaction<void> {
    const { backup, result, at, audit } = args
    yield* insertAll('backups', [{ ...backup, ...outcomeOf(result, at) }])
    yield* forgetDeleted([backup.backup_id])
    yield* recordAudit(audit)
  },
)

const ofDatabase = query<{ accountId: string; databaseId: string }, BackupRow>(({ db, p }) =>
  db
    .selectFrom('backups')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .selectAll('backups')
    .where('backups.database_id', '=', p.databaseId)
    .where('databases.account_id', '=', p.accountId)
    .orderBy('backups.created_at', 'desc')
    .orderBy('backups.backup_id', 'desc'),
)
const databaseOf = query<{ accountId: string; databaseId: string }, { database_id: string }>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select('database_id')
    .where('database_id', '=', p.databaseId)
    .where('account_id', '=', p.accountId),
)

/** The backups of a database, newest first; `undefined` when the account has no such database. */
export const list = read('backups.list', function* (args: { accountId: string; databaseId: string }): Transaction<
  BackupRow[] | undefined
> {
  const database = yield* first(databaseOf, args)
  return database ? yield* all(ofDatabase, args) : undefined
})

const ofAccount = query<{ accountId: string; backupId: string }, BackupRow>(({ db, p }) =>
  db
    .selectFrom('backups')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .selectAll('backups')
    .where('backups.backup_id', '=', p.backupId)
    .where('databases.account_id', '=', p.accountId),
)

/** A backup of any database of the account, for other transactions. */
export function* backupOfAccount(accountId: string, backupId: string): Transaction<BackupRow | undefined> {
  return yield* first(ofAccount, { accountId, backupId })
}

/** A backup of any database of the account. */
export const get = read('backups.get', function* (args: { accountId: string; backupId: string }): Transaction<
  BackupRow | undefined
> {
  return yield* backupOfAccount(args.accountId, args.backupId)
})

const deleteObjectsOf = query<{ databaseId: string; at: number }>(({ db, p }) =>
  db.updateTable('backup_objects').set({ state: 'deleting', changed_at: p.at }).where('database_id', '=', p.databaseId),
)

/** More rows than a database has. */
const MAX_ROWS = 100_000

/** The outcome of `remove`. */
export type RemoveOutcome = { readonly kind: 'removed' } | { readonly kind: 'no_backup' } | Refusal

/** Deletes the row of a backup, unless its database is busy. */
export const remove = write(
  'backups.remove',
  function* (args: {
    accountId: string
    databaseId: string
    backupId: string
    home?: string
    audit: NewAuditRow
  }): Transaction<RemoveOutcome> {
    const found = yield* lockForChange(args.databaseId, args.accountId, args.home)
    if (found.kind !== 'free') return found
    const backup = yield* first(backupOf, { backupId: args.backupId })
    if (backup?.database_id !== args.databaseId) return { kind: 'no_backup' }
    yield* dropBackups([backup], args.audit.at)
    yield* recordAudit(args.audit)
    return { kind: 'removed' }
  },
)

const intermediate = query<{ databaseId: string; keep: number }, BackupIds>(({ db, p }) =>
  db
    .selectFrom('backups')
    .select(['database_id', 'backup_id'])
    .where('database_id', '=', p.databaseId)
    .where('kind', 'in', ['safety', 'import'])
    .where('state', '=', 'completed')
    .orderBy('created_at', 'desc')
    .orderBy('backup_id', 'desc')
    // SQLite knows an offset only after a limit.
    .limit(MAX_ROWS)
    .offset(p.keep),
)

/** Deletes the rows of all safety and import backups of a database but the newest; returns them. */
export const prune = write(
  'backups.prune',
  function* (args: { databaseId: string; keep: number; at: number }): Transaction<BackupIds[]> {
    const gone = yield* all(intermediate, args)
    yield* dropBackups(gone, args.at)
    return gone
  },
)

const dropOfDatabase = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('backups').where('database_id', '=', p.databaseId),
)

/** Forgets the last import of a database. */
export const dropImportOf = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('imports').where('database_id', '=', p.databaseId),
)

/** Deletes the rows of all backups of a database that is being deleted. */
export const removeAll = write(
  'backups.removeAll',
  function* (args: { databaseId: string; at: number }): Transaction<void> {
    yield* change(dropOfDatabase, { databaseId: args.databaseId })
    yield* forgetDeletedOf(args.databaseId)
    yield* change(dropImportOf, { databaseId: args.databaseId })
    yield* change(deleteObjectsOf, args)
  },
)

const names = query<object, BackupFile>(({ db }) =>
  db.selectFrom('backups').select(['database_id', 'backup_id', 'state']),
)

/** All backups of all databases. A failed one has no file. */
export const everyName = read('backups.everyName', function* (_: object): Transaction<BackupFile[]> {
  return yield* all(names, {})
})
