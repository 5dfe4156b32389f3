import type { Selectable } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RestoresTable } from '../../store/schema/backups.js'
import { all, change, insertAll, type Transaction } from '../../store/statement.js'
import {
  type BackupRow,
  backupOfAccount,
  INTERRUPTED,
  lockForChange,
  moveModifying,
  type NewBackup,
  type Refusal,
  settle,
} from './backups.js'
import type { DatabaseRow } from './database-row.js'
import { isOfHome, type OfHome } from './homes.js'

/** An active restore. */
export type RestoreRow = Selectable<RestoresTable>

/** The outcome of `begin`. */
export type BeginOutcome =
  | { readonly kind: 'begun'; readonly database: DatabaseRow; readonly backup: BackupRow }
  | { readonly kind: 'no_backup' }
  | { readonly kind: 'not_ready'; readonly state: string }
  | Refusal

/** (empty) becomes `restoring`, and the restore is inserted: the first step of restores and imports. */
export function* beginRestore(databaseId: string, backupId: string, at: number): Transaction<void> {
  yield* moveModifying(databaseId, '', 'restoring')
  const row = { database_id: databaseId, backup_id: backupId, phase: 'preparing' as const, started_at: at }
  yield* insertAll('restores', [row])
}

/** Starts the restore of a completed backup. */
export const begin = write(
  'restores.begin',
  function* (args: {
    accountId: string
    databaseId: string
    backupId: string
    home?: string
    at: number
    audit: NewAuditRow
  }): Transaction<BeginOutcome> {
    const { accountId, databaseId, backupId, home, at, audit } = args
    const found = yield* lockForChange(databaseId, accountId, home)
    if (found.kind !== 'free') return found
    const backup = yield* backupOfAccount(accountId, backupId)
    if (!backup) return { kind: 'no_backup' }
    if (backup.state !== 'completed') return { kind: 'not_ready', state: backup.state }
    yield* beginRestore(databaseId, backupId, at)
    yield* recordAudit(audit)
    return { kind: 'begun', database: found.database, backup }
  },
)

const setReplacing = query<{ databaseId: string }>(({ db, p }) =>
  db
    .updateTable('restores')
    .set({ phase: 'replacing' })
    .where('database_id', '=', p.databaseId)
    .where('phase', '=', 'preparing'),
)

/** The point of no return: from now on the old data may be deleted, and a crash does not stop the restore. */
export const replace = write('restores.replace', function* (args: { databaseId: string }): Transaction<void> {
  const changed = yield* change(setReplacing, args)
  if (changed === 0) throw new Error('no restore of this database is being prepared')
})

const drop = query<{ databaseId: string; phase: RestoreRow['phase'] }>(({ db, p }) =>
  db.deleteFrom('restores').where('database_id', '=', p.databaseId).where('phase', '=', p.phase),
)

function* end(databaseId: string, phase: RestoreRow['phase']): Transaction<boolean> {
  const dropped = yield* change(drop, { databaseId, phase })
  if (dropped > 0) yield* moveModifying(databaseId, 'restoring', '')
  return dropped > 0
}

const forgetProblem = query<{ databaseId: string }>(({ db, p }) =>
  db.updateTable('databases').set({ data_problem: null }).where('database_id', '=', p.databaseId),
)

/** The new data is in place: ends the restore and clears a data problem. May be repeated. */
export const finish = write('restores.finish', function* (args: { databaseId: string }): Transaction<void> {
  if (yield* end(args.databaseId, 'replacing')) yield* change(forgetProblem, args)
})

/** Cancels a restore that has replaced nothing. False when it is past that point, or unknown. */
export const undo = write('restores.undo', function* (args: { databaseId: string }): Transaction<boolean> {
  return yield* end(args.databaseId, 'preparing')
})

/** A backup, restore or import, from its begin to its end. */
export interface Job {
  readonly databaseId: string
  /** The backup that is made, restored or filled. */
  readonly backupId: string
  /** Unix milliseconds. */
  readonly startedAt: number
}

/** The job that makes a backup. */
export const jobOf = ({ database_id: databaseId, backup_id: backupId, created_at: startedAt }: NewBackup): Job => ({
  databaseId,
  backupId,
  startedAt,
})

const dropJob = query<Job>(({ db, p }) =>
  db
    .deleteFrom('restores')
    .where('database_id', '=', p.databaseId)
    .where('backup_id', '=', p.backupId)
    .where('started_at', '=', p.startedAt)
    .where('phase', '=', 'preparing'),
)
const failImportOf = query<Job & { at: number; failure: string }>(({ db, p }) =>
  db
    .updateTable('imports')
    .set({ state: 'failed', failure: p.failure, finished_at: p.at })
    .where('database_id', '=', p.databaseId)
    .where('backup_id', '=', p.backupId)
    .where('started_at', '=', p.startedAt)
    .where('state', '=', 'reading'),
)

/** Settles one job that nobody carries out, as `recover` settles all of them. Other jobs of its database continue. */
export const giveUp = write('restores.giveUp', function* ({ at, ...job }: Job & { at: number }): Transaction<void> {
  if ((yield* change(dropJob, job)) > 0) yield* moveModifying(job.databaseId, 'restoring', '')
  yield* settle({ backupId: job.backupId, result: { kind: 'failed', failure: INTERRUPTED }, at })
  yield* change(failImportOf, { ...job, at, failure: INTERRUPTED })
})

const failPending = query<{ at: number; failure: string; kept: readonly string[] } & OfHome>(({ db, p, d }) =>
  db
    .updateTable('backups')
    .set({ state: 'failed', failure: p.failure, finished_at: p.at })
    .where('state', '=', 'pending')
    .where((eb) => eb.not(d.inTexts('backup_id', p.kept)))
    .where((eb) => isOfHome(eb, p)),
)
const failImports = query<{ at: number; failure: string } & OfHome>(({ db, p }) =>
  db
    .updateTable('imports')
    .set({ state: 'failed', failure: p.failure, finished_at: p.at })
    .where('state', 'not in', ['completed', 'failed'])
    .where((eb) => isOfHome(eb, p)),
)
const freeBackingUp = query<OfHome>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: '' })
    .where('modifying_state', '=', 'backing_up')
    .where((eb) => isOfHome(eb, p)),
)
/** Other changes of a database wait until its kept backup is completed. */
const holdPending = query<OfHome>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: 'backing_up' })
    .where('modifying_state', '=', '')
    .where('database_id', 'in', (q) => q.selectFrom('backups').select('database_id').where('state', '=', 'pending'))
    .where((eb) => isOfHome(eb, p)),
)
/** An interrupted acceptance of a loss is simply undone: the owner can accept the loss again. */
const freeAccepting = query<OfHome>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: '' })
    .where('modifying_state', '=', 'restoring')
    .where('database_id', 'not in', (q) => q.selectFrom('restores').select('database_id'))
    .where((eb) => isOfHome(eb, p)),
)
const everyRestore = query<OfHome, RestoreRow>(({ db, p }) =>
  db
    .selectFrom('restores')
    .selectAll()
    .where((eb) => isOfHome(eb, p)),
)
const completeImport = query<{ databaseId: string; backupId: string; at: number }>(({ db, p }) =>
  db
    .updateTable('imports')
    .set({ state: 'completed', finished_at: p.at })
    .where('database_id', '=', p.databaseId)
    .where('backup_id', '=', p.backupId)
    .where('state', '=', 'restoring'),
)

/** Arguments of `recover`. */
export interface RecoverArgs extends OfHome {
  readonly at: number
  /** Pending backups that stay pending, and keep their databases `backing_up`: the start completes them. */
  readonly kept: readonly string[]
}

/**
 * Settles what a crash interrupted: other pending backups have failed, and restores that were only prepared are cancelled.
 * Returns the restores that must be completed before their databases may start.
 */
export const recover = write('restores.recover', function* (args: RecoverArgs): Transaction<RestoreRow[]> {
  const { home, kept } = args
  const restores = yield* all(everyRestore, { home })
  const replacing = restores.filter((restore) => restore.phase === 'replacing')
  for (const { database_id: databaseId, backup_id: backupId } of replacing) {
    yield* change(completeImport, { databaseId, backupId, at: args.at })
  }
  for (const restore of restores) yield* end(restore.database_id, 'preparing')
  yield* change(failPending, { at: args.at, failure: INTERRUPTED, kept, home })
  yield* change(failImports, { at: args.at, failure: INTERRUPTED, home })
  yield* change(freeBackingUp, { home })
  yield* change(freeAccepting, { home })
  yield* change(holdPending, { home })
  return replacing
})
