import type { Selectable } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { SetAsideFilesTable, TakenHomesTable } from '../../store/schema/backups.js'
import { all, change, insertAll, type Transaction } from '../../store/statement.js'
import { takeHome } from './homes.js'
import { followHome, refuseStandbyAt } from './standbys.js'

/** A database that another node has taken over. */
export type TakenHome = Selectable<TakenHomesTable>

/** Forgets that a database was taken from a node. */
export const dropTaken = query<{ databaseId: string; from: string }>(({ db, p }) =>
  db.deleteFrom('taken_homes').where('database_id', '=', p.databaseId).where('from_node', '=', p.from),
)
/** Forgets the active restore of a database. */
export const dropRestore = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('restores').where('database_id', '=', p.databaseId),
)
/** Marks the backups as failed that the lost node of a database was making. */
export const failPending = query<{ databaseId: string; at: number }>(({ db, p }) =>
  db
    .updateTable('backups')
    .set({ state: 'failed', failure: 'its node was gone', finished_at: p.at })
    .where('database_id', '=', p.databaseId)
    .where('state', '=', 'pending'),
)
const setRestoring = query<{ databaseId: string }>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: 'restoring' })
    .where('database_id', '=', p.databaseId)
    .where('modifying_state', 'not in', ['creating', 'deleting']),
)

/**
 * Gives a database to another node, which is to serve the data of a backup: from this commit on, its old home does not
 * serve it. Work of the old home on it has ended. False when the home has changed meanwhile, or the database is being
 * created or deleted.
 */
export const begin = write(
  'recoveries.begin',
  function* (args: { taken: TakenHome; audit: NewAuditRow }): Transaction<boolean> {
    const { database_id: databaseId, from_node: from, to_node: to, backup_id, taken_at: at } = args.taken
    if ((yield* change(setRestoring, { databaseId })) === 0) return false
    yield* refuseStandbyAt(databaseId, to)
    if (!(yield* takeHome(databaseId, from, to))) {
      throw new Error('the home of the database has changed')
    }
    yield* followHome({ databaseId, from, to })
    yield* change(dropRestore, { databaseId })
    yield* insertAll('restores', [{ database_id: databaseId, backup_id, phase: 'replacing', started_at: at }])
    yield* change(failPending, { databaseId, at })
    yield* change(dropTaken, { databaseId, from })
    yield* insertAll('taken_homes', [args.taken])
    yield* recordAudit(args.audit)
    return true
  },
)

const takenQuery = query<{ from: string }, TakenHome>(({ db, p }) =>
  db.selectFrom('taken_homes').selectAll().where('from_node', '=', p.from),
)

/** The databases that others have taken over from a node. */
export const takenFrom = read('recoveries.takenFrom', function* (args: { from: string }): Transaction<TakenHome[]> {
  return yield* all(takenQuery, args)
})

const dropTakenAt = query<{ databaseId: string; from: string; at: number }>(({ db, p }) =>
  db
    .deleteFrom('taken_homes')
    .where('database_id', '=', p.databaseId)
    .where('from_node', '=', p.from)
    .where('taken_at', '=', p.at),
)

/** Files that a node has set aside. */
export type SetAsideRow = Selectable<SetAsideFilesTable>

/** A database that was taken over from this node, and its files that this node has set aside. */
export interface SettledTaken {
  readonly databaseId: string
  readonly from: string
  /** When it was taken over, Unix milliseconds. */
  readonly at: number
  /** Undefined: there were no files. */
  readonly kept: { readonly row: SetAsideRow; readonly audit: NewAuditRow | undefined } | undefined
}

/**
 * Stores that the old home has set aside the files of a database. Changes nothing when it was taken over again meanwhile.
 */
export const forgetTaken = write(
  'recoveries.forgetTaken',
  function* ({ kept, ...args }: SettledTaken): Transaction<void> {
    if ((yield* change(dropTakenAt, args)) === 0 || !kept) return
    yield* insertAll('set_aside_files', [kept.row])
    if (kept.audit) yield* recordAudit(kept.audit)
  },
)

const setAsideOfDatabase = query<{ databaseId: string }, SetAsideRow>(({ db, p }) =>
  db.selectFrom('set_aside_files').selectAll().where('database_id', '=', p.databaseId).orderBy('taken_at'),
)

/** The files of a database that nodes have set aside, the oldest first. */
export const setAsideOf = read('recoveries.setAsideOf', function* (args: { databaseId: string }): Transaction<
  SetAsideRow[]
> {
  return yield* all(setAsideOfDatabase, args)
})

const setAsideAtNode = query<{ node: string }, SetAsideRow>(({ db, p }) =>
  db.selectFrom('set_aside_files').selectAll().where('node', '=', p.node),
)

/** The files that a node has set aside. */
export const setAsideAt = read('recoveries.setAsideAt', function* (args: { node: string }): Transaction<SetAsideRow[]> {
  return yield* all(setAsideAtNode, args)
})

const dropSetAside = query<{ node: string; path: string }>(({ db, p }) =>
  db.deleteFrom('set_aside_files').where('node', '=', p.node).where('path', '=', p.path),
)

/** Forgets set-aside files that the operator has deleted. */
export const forgetSetAside = write(
  'recoveries.forgetSetAside',
  function* (args: { node: string; path: string }): Transaction<void> {
    yield* change(dropSetAside, args)
  },
)
