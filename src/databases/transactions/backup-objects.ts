import { type Selectable, sql } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { BackupObjectsTable } from '../../store/schema/backups.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import type { BackupRow } from './backups.js'
import { isHomeOf } from './home-check.js'
import { isOfHome, type OfHome } from './homes.js'

/** Where a backup is in object storage. */
export type ObjectRow = Selectable<BackupObjectsTable>

/** Backups of these kinds are uploaded. The others are made by restores and imports, and kept for days only. */
const UPLOADED = ['manual', 'daily'] as const

/** A backup with the name of its database. */
export type DueBackup = BackupRow & { readonly database_name: string }

interface Due extends OfHome {
  /** `new`: those that were never tried. */
  readonly which: 'all' | 'new'
  readonly limit: number
}

const triedAt = sql<number>`coalesce((select changed_at from backup_objects where backup_objects.backup_id = backups.backup_id), 0)`
const accountOf = sql<string>`(select account_id from databases where databases.database_id = backups.database_id)`

const dueQuery = query<Due, DueBackup>(({ db, p }) =>
  db
    .selectFrom('backups')
    .selectAll('backups')
    .select(({ selectFrom }) =>
      selectFrom('databases')
        .select('databases.name')
        .whereRef('databases.database_id', '=', 'backups.database_id')
        .$castTo<string>()
        .as('database_name'),
    )
    .where('state', '=', 'completed')
    .where('kind', 'in', UPLOADED)
    .where((eb) => isOfHome(eb, p))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('backup_objects')
            .select('backup_objects.backup_id')
            .whereRef('backup_objects.backup_id', '=', 'backups.backup_id')
            .where((eb) => eb.or([eb('backup_objects.state', '!=', 'waiting'), sql<boolean>`${p.which} = 'new'`])),
        ),
      ),
    )
    .orderBy(sql`${triedAt} > 0`)
    .orderBy(sql`row_number() over (partition by ${accountOf}, ${triedAt} > 0 order by ${triedAt}, created_at desc)`)
    .orderBy(triedAt)
    .orderBy('created_at', 'desc')
    .limit(p.limit),
)

/**
 * Completed backups that are not in object storage yet: the newest, then those that failed the longest ago. Accounts take
 * turns in both.
 */
export const due = read('backupObjects.due', function* (args: Due): Transaction<DueBackup[]> {
  return yield* all(dueQuery, args)
})

const objectOf = query<{ backupId: string }, ObjectRow>(({ db, p }) =>
  db.selectFrom('backup_objects').selectAll().where('backup_id', '=', p.backupId),
)
const homeOf = query<{ backupId: string }, { home: string | null }>(({ db, p }) =>
  db
    .selectFrom('backups')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .select('databases.home')
    .where('backup_id', '=', p.backupId),
)

/** Whether the backup exists and its file belongs to a node: a database may have moved with its backups. */
function* isOfNode(backupId: string, node: string | undefined): Transaction<boolean> {
  const found = yield* first(homeOf, { backupId })
  return found !== undefined && isHomeOf(found, node)
}

const setWaiting = query<{ backupId: string; node: string; object: string; at: number }>(({ db, p }) =>
  db
    .updateTable('backup_objects')
    .set({ node: p.node, object: p.object, changed_at: p.at })
    .where('backup_id', '=', p.backupId)
    .where('state', '=', 'waiting'),
)

/**
 * Records that an object may exist from now on. False when the backup has been deleted meanwhile, or belongs to another
 * node.
 */
export const begin = write(
  'backupObjects.begin',
  function* (args: {
    backupId: string
    databaseId: string
    node: string
    object: string
    at: number
  }): Transaction<boolean> {
    const { backupId, databaseId, node, object, at } = args
    if (!(yield* isOfNode(backupId, node))) return false
    if ((yield* change(setWaiting, { backupId, node, object, at })) > 0) return true
    if (yield* first(objectOf, { backupId })) return false
    const row = { backup_id: backupId, database_id: databaseId, state: 'waiting' as const, node, object }
    yield* insertAll('backup_objects', [{ ...row, size_bytes: 0, changed_at: at, failure: null }])
    return true
  },
)

type Outcome = Pick<ObjectRow, 'state' | 'size_bytes' | 'failure' | 'changed_at'>
const setOutcome = query<Outcome & { backupId: string }>(({ db, p }) =>
  db
    .updateTable('backup_objects')
    .set({ state: p.state, size_bytes: p.size_bytes, failure: p.failure, changed_at: p.changed_at })
    .where('backup_id', '=', p.backupId)
    .where('state', '=', 'waiting'),
)

/**
 * Stores the outcome of an upload. A backup that was deleted meanwhile stays `deleting`. A backup whose file a node could
 * not read because the database has moved does not become `unusable`: the new home has the file, and uploads it.
 * @param args.node the node that has uploaded it. Default: whichever is the home.
 */
export const finish = write(
  'backupObjects.finish',
  function* ({ backupId, node, outcome }: { backupId: string; node?: string; outcome: Outcome }): Transaction<void> {
    if (outcome.state === 'unusable' && !(yield* isOfNode(backupId, node))) return
    yield* change(setOutcome, { backupId, ...outcome })
  },
)

const deletingQuery = query<{ node: string; before: number; limit: number }, ObjectRow>(({ db, p }) =>
  db
    .selectFrom('backup_objects')
    .selectAll()
    .where('state', '=', 'deleting')
    .where(({ or, eb }) => or([eb('node', '=', p.node), eb('changed_at', '<', p.before)]))
    .orderBy('changed_at')
    .limit(p.limit),
)

/**
 * Objects of deleted backups: those that a node has uploaded, and older ones of any node, because that node may be gone.
 */
export const deleting = read(
  'backupObjects.deleting',
  function* (args: { node: string; before: number; limit: number }): Transaction<ObjectRow[]> {
    return yield* all(deletingQuery, args)
  },
)

const dropQuery = query<{ backupId: string }>(({ db, p }) =>
  db.deleteFrom('backup_objects').where('backup_id', '=', p.backupId).where('state', '=', 'deleting'),
)

/** Forgets an object that was deleted. */
export const drop = write('backupObjects.drop', function* (args: { backupId: string }): Transaction<void> {
  yield* change(dropQuery, args)
})

const ofDatabaseQuery = query<{ databaseId: string }, ObjectRow>(({ db, p }) =>
  db.selectFrom('backup_objects').selectAll().where('database_id', '=', p.databaseId).where('state', '!=', 'deleting'),
)

/** Where the backups of a database are in object storage. */
export const ofDatabase = read('backupObjects.ofDatabase', function* (args: { databaseId: string }): Transaction<
  ObjectRow[]
> {
  return yield* all(ofDatabaseQuery, args)
})

/** Where a backup is in object storage. */
export const find = read('backupObjects.find', function* (args: { backupId: string }): Transaction<
  ObjectRow | undefined
> {
  return yield* first(objectOf, args)
})

/** A daily backup in object storage. */
export interface StoredDaily {
  readonly backup_id: string
  readonly database_id: string
  readonly created_at: number
  readonly size_bytes: number
  readonly production_pack: number
}

const storedQuery = query<OfHome, StoredDaily>(({ db, p }) =>
  db
    .selectFrom('backup_objects')
    .innerJoin('backups', 'backups.backup_id', 'backup_objects.backup_id')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .select([
      'backups.backup_id',
      'backups.database_id',
      'backups.created_at',
      'backup_objects.size_bytes',
      'databases.production_pack',
    ])
    .where('backup_objects.state', '=', 'stored')
    .where('backups.kind', '=', 'daily')
    .where(({ or, eb }) => or([eb(eb.val(p.home), '=', ''), eb('databases.home', '=', p.home)]))
    .orderBy('backups.created_at', 'desc'),
)

/** The daily backups in object storage, newest first. */
export const storedDaily = read('backupObjects.storedDaily', function* (args: OfHome): Transaction<StoredDaily[]> {
  return yield* all(storedQuery, args)
})
