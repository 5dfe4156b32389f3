import { type SqlBool, sql } from 'kysely'
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import { type BackupIds, dropBackups } from './backup-deletions.js'
import { lockForChange, type Refusal } from './backups.js'
import type { DatabaseRow } from './database-row.js'
import { isOfHome, type OfHome } from './homes.js'

const setNext = query<{ databaseId: string; nextAt: number | null }>(({ db, p }) =>
  db.updateTable('databases').set({ next_daily_backup_at: p.nextAt }).where('database_id', '=', p.databaseId),
)

/**
 * Switches daily backups on or off. If they are on already, the schedule stays.
 * @param args.firstAt when the first one is due; `undefined` switches them off.
 */
export const set = write(
  'backupsDaily.set',
  function* (args: {
    accountId: string
    databaseId: string
    firstAt: number | undefined
    audit: NewAuditRow
  }): Transaction<{ kind: 'set' } | Refusal> {
    const found = yield* lockForChange(args.databaseId, args.accountId)
    if (found.kind !== 'free') return found
    const { plan, next_daily_backup_at: present } = found.database
    if (args.firstAt !== undefined && plan === 'free') return { kind: 'plan', plan }
    const nextAt = args.firstAt === undefined ? null : (present ?? args.firstAt)
    if (nextAt === present) return { kind: 'set' }
    yield* change(setNext, { databaseId: args.databaseId, nextAt })
    yield* recordAudit(args.audit)
    return { kind: 'set' }
  },
)

const moveNext = query<{ databaseId: string; nextAt: number }>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ next_daily_backup_at: p.nextAt })
    .where('database_id', '=', p.databaseId)
    .where('next_daily_backup_at', 'is not', null),
)

/** Moves the next daily backup of a database to another time, unless they were switched off. */
export const postpone = write(
  'backupsDaily.postpone',
  function* (args: { databaseId: string; nextAt: number }): Transaction<void> {
    yield* change(moveNext, args)
  },
)
/**
 * A database whose daily backup is due. Only three columns, because very many databases may be due, and they are read
 * before each backup.
 */
export type DueDatabase = Pick<DatabaseRow, 'database_id' | 'account_id' | 'next_daily_backup_at'>

const dueQuery = query<{ now: number } & OfHome, DueDatabase>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select(['database_id', 'account_id', 'next_daily_backup_at'])
    .where('next_daily_backup_at', 'is not', null)
    .where('next_daily_backup_at', '<=', p.now)
    .where((eb) => isOfHome(eb, p))
    .orderBy('next_daily_backup_at'),
)
const earliest = query<{ after: number } & OfHome, { next_daily_backup_at: number | null }>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select('next_daily_backup_at')
    .where('next_daily_backup_at', '>', p.after)
    .where((eb) => isOfHome(eb, p))
    .orderBy('next_daily_backup_at')
    .limit(1),
)

/** The databases whose daily backup is due, the most overdue first. */
export const due = read('backupsDaily.due', function* (args: { now: number } & OfHome): Transaction<DueDatabase[]> {
  return yield* all(dueQuery, args)
})

const limitNext = query<{ latest: number } & OfHome>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ next_daily_backup_at: p.latest })
    .where('next_daily_backup_at', '>', p.latest)
    .where((eb) => isOfHome(eb, p)),
)

/** Moves daily backups that are due after `latest` to that time: they were scheduled while the clock was ahead. */
export const pullBack = write(
  'backupsDaily.pullBack',
  function* (args: { latest: number } & OfHome): Transaction<number> {
    return yield* change(limitNext, args)
  },
)

/** When the next daily backup of these databases becomes due, apart from those that are due already. */
export const next = read('backupsDaily.next', function* (args: { after: number } & OfHome): Transaction<
  number | undefined
> {
  return (yield* first(earliest, args))?.next_daily_backup_at ?? undefined
})

const dropFailed = query<{ backupId: string }>(({ db, p }) =>
  db.deleteFrom('backups').where('backup_id', '=', p.backupId).where('state', '=', 'failed'),
)

/** Deletes the row of a backup that has failed, because an earlier failure of the same day is stored. */
export const forgetFailed = write(
  'backupsDaily.forgetFailed',
  function* (args: { backupId: string }): Transaction<void> {
    yield* change(dropFailed, args)
  },
)

/** Backups created before these times are past their retention, Unix milliseconds. */
export interface Ages {
  readonly daily: number
  /** Daily ones of databases with the production pack. */
  readonly dailyWithPack: number
  /** Safety and import backups. */
  readonly intermediate: number
  /**
   * Which completed daily backups expire in object storage and not here. `all`: all go there first. `stored`: those that
   * are there.
   */
  readonly keep: 'all' | 'stored'
}

/**
 * While daily backups are on, the newest completed one stays, however old: its successors may have failed.
 */
const old = query<Ages & OfHome, BackupIds>(({ db, p }) =>
  db
    .selectFrom('backups')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .select(['backups.database_id', 'backups.backup_id'])
    .where('backups.state', '!=', 'pending')
    .where(({ or, eb }) => or([sql<SqlBool>`${p.home} = ''`, eb('databases.home', '=', p.home)]))
    .where(({ and, or, eb, not, exists, selectFrom }) =>
      or([
        and([eb('backups.kind', 'in', ['safety', 'import']), eb('backups.created_at', '<', p.intermediate)]),
        and([
          eb('backups.kind', '=', 'daily'),
          or([eb('backups.state', '=', 'failed'), sql<SqlBool>`${p.keep} = 'stored'`]),
          not(
            exists(
              selectFrom('backup_objects')
                .select('backup_objects.backup_id')
                .whereRef('backup_objects.backup_id', '=', 'backups.backup_id')
                .where('backup_objects.state', '=', 'stored'),
            ),
          ),
          or([
            and([eb('databases.production_pack', '=', 0), eb('backups.created_at', '<', p.daily)]),
            eb('backups.created_at', '<', p.dailyWithPack),
          ]),
          or([
            eb('databases.next_daily_backup_at', 'is', null),
            eb('backups.state', '=', 'failed'),
            exists(
              selectFrom('backups as newer')
                .select('newer.backup_id')
                .whereRef('newer.database_id', '=', 'backups.database_id')
                .where('newer.kind', '=', 'daily')
                .where('newer.state', '=', 'completed')
                .whereRef('newer.created_at', '>', 'backups.created_at'),
            ),
          ]),
        ]),
      ]),
    ),
)

/** Deletes the rows of backups past their retention; returns them, so that the caller deletes their files. */
export const expire = write('backupsDaily.expire', function* (args: Ages & OfHome & { at: number }): Transaction<
  BackupIds[]
> {
  const gone = yield* all(old, args)
  yield* dropBackups(gone, args.at)
  return gone
})
