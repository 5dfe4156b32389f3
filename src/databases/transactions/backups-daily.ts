import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { all, change, first, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { lockForChange, type Refusal } from './backups.js'
import type { DatabaseRow } from './databases.js'

const setNext = query<{ databaseId: string; nextAt: number | null }>(({ db, p }) =>
  db.updateTable('databases').set({ next_daily_backup_at: p.nextAt }).where('database_id', '=', p.databaseId),
)

/**
 * Switches daily backups on or off. One that is on already keeps its time.
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

/** Moves the next daily backup of a database that has them to another time. */
export const postpone = write(
  'backupsDaily.postpone',
  function* (args: { databaseId: string; nextAt: number }): Transaction<void> {
    yield* change(moveNext, args)
  },
)
const dueQuery = query<{ now: number }, DatabaseRow>(({ db, p }) =>
  db
    .selectFrom('databases')
    .selectAll()
    .where('next_daily_backup_at', 'is not', null)
    .where('next_daily_backup_at', '<=', p.now)
    .orderBy('next_daily_backup_at'),
)
const earliest = query<object, { next_daily_backup_at: number | null }>(({ db }) =>
  db
    .selectFrom('databases')
    .select('next_daily_backup_at')
    .where('next_daily_backup_at', 'is not', null)
    .orderBy('next_daily_backup_at')
    .limit(1),
)

/** The databases whose daily backup is due, most overdue first. */
export const due = read('backupsDaily.due', function* (args: { now: number }): Transaction<DatabaseRow[]> {
  return yield* all(dueQuery, args)
})

const nearer = query<{ latest: number }>(({ db, p }) =>
  db.updateTable('databases').set({ next_daily_backup_at: p.latest }).where('next_daily_backup_at', '>', p.latest),
)

/** Lets no daily backup be further away than a time: those that were planned while the clock was ahead are. */
export const pullBack = write('backupsDaily.pullBack', function* (args: { latest: number }): Transaction<number> {
  return yield* change(nearer, args)
})

/** When the next daily backup of any database is due. */
export const next = read('backupsDaily.next', function* (_: object): Transaction<number | undefined> {
  return (yield* first(earliest, {}))?.next_daily_backup_at ?? undefined
})

/** Backups made before these times are old, Unix milliseconds. */
export interface Ages {
  readonly daily: number
  /** Daily ones of databases with the production pack. */
  readonly dailyWithPack: number
  /** Those that were made along the way of a restore or an import. */
  readonly intermediate: number
}

interface OldBackup {
  readonly database_id: string
  readonly backup_id: string
}

/**
 * The newest daily backup stays while daily backups are on, however old: the one that should follow it may have failed.
 */
const old = query<Ages, OldBackup>(({ db, p }) =>
  db
    .selectFrom('backups')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .select(['backups.database_id', 'backups.backup_id'])
    .where('backups.state', '!=', 'pending')
    .where(({ and, or, eb, exists, selectFrom }) =>
      or([
        and([eb('backups.kind', 'in', ['safety', 'import']), eb('backups.created_at', '<', p.intermediate)]),
        and([
          eb('backups.kind', '=', 'daily'),
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
const dropAll = query<{ ids: readonly string[] }>(({ db, p, d }) =>
  db.deleteFrom('backups').where(d.inTexts('backup_id', p.ids)),
)

/** Forgets backups that are past their time; answers them, so that their files can follow. */
export const expire = write('backupsDaily.expire', function* (args: Ages): Transaction<OldBackup[]> {
  const gone = yield* all(old, args)
  yield* change(dropAll, { ids: gone.map((backup) => backup.backup_id) })
  return gone
})
