/**
 * States that last, such as a full disk: an account is alerted once, again when it gets worse, and again every day. A
 * state that has not been seen for a while is forgotten; when it comes back, it is alerted again.
 */
import { type Selectable, sql } from 'kysely'
import { all, change, insertAll, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AlertConditionsTable } from '../../store/schema/alerts.js'
import { type Occurrences, raise } from './alerts-history.js'
import { isEnabled } from './alerts-rules.js'

/** A state that an account has been alerted of, as it is stored. */
export type ConditionRow = Selectable<AlertConditionsTable>

const everyCondition = query<object, ConditionRow>(({ db }) => db.selectFrom('alert_conditions').selectAll())

/** All states that accounts have been alerted of. */
export const list = read('alertConditions.list', function* (_: object): Transaction<ConditionRow[]> {
  return yield* all(everyCondition, {})
})

interface Key {
  accountId: string
  kind: string
  subject: string
}

const drop = query<Key>(({ db, p }) =>
  db
    .deleteFrom('alert_conditions')
    .where('account_id', '=', p.accountId)
    .where('kind', '=', p.kind)
    .where('subject', '=', p.subject),
)

/** An alert to raise, with the id that it gets if it begins one. */
export interface Raised {
  readonly accountId: string
  readonly alertId: string
  readonly found: Occurrences
}

/** What one look at the states changes. */
export interface ConditionChanges {
  /** Rows to write, new or not. */
  readonly put: readonly ConditionRow[]
  readonly forget: readonly ConditionRow[]
  readonly raised: readonly Raised[]
}

/** Stores what one look has changed, and raises its alerts. */
export const apply = write(
  'alertConditions.apply',
  function* (args: ConditionChanges & { now: number }): Transaction<void> {
    for (const row of [...args.put, ...args.forget]) {
      yield* change(drop, { accountId: row.account_id, kind: row.kind, subject: row.subject })
    }
    yield* insertAll('alert_conditions', args.put)
    for (const { accountId, alertId, found } of args.raised) {
      if (yield* isEnabled(accountId, found.kind)) yield* raise(accountId, found, { alertId, now: args.now })
    }
  },
)

/** A schedule that did not fire as it should. */
export interface LateSchedule {
  readonly account_id: string
  readonly schedule_id: string
  readonly next_at: number | null
  /** Why the last fire published nothing. */
  readonly error: string | null
}

const lateSchedules = query<{ dueBefore: number; limit: number }, LateSchedule>(({ db, p }) =>
  db
    .selectFrom('schedules')
    .select(['account_id', 'schedule_id', 'next_at', 'error'])
    .where('paused', '=', 0)
    .where((eb) => eb.or([eb('error', 'is not', null), eb('next_at', '<', p.dueBefore)]))
    .orderBy('account_id')
    .orderBy('schedule_id')
    .limit(p.limit),
)

/** A database that should have a backup every day, with the time of its newest one; NULL: none. */
export interface BackedUp {
  readonly account_id: string
  readonly database_id: string
  readonly name: string
  readonly created_at: number
  readonly newest: number | null
}

const dailyBackups = query<{ createdBefore: number }, BackedUp>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select([
      'account_id',
      'database_id',
      'name',
      'created_at',
      sql<number | null>`(select max(backups.finished_at) from backups
        where backups.database_id = databases.database_id and backups.state = 'completed')`.as('newest'),
    ])
    .where('next_daily_backup_at', 'is not', null)
    .where('created_at', '<', p.createdBefore)
    .where('modifying_state', '!=', 'deleting')
    .orderBy('account_id')
    .orderBy('database_id'),
)

/** Schedules read in one look. */
const MOST_SCHEDULES = 1_000

/** What the store knows of states that may last. */
export const stored = read(
  'alertConditions.stored',
  function* (args: { dueBefore: number; createdBefore: number }): Transaction<{
    schedules: LateSchedule[]
    backups: BackedUp[]
  }> {
    const { dueBefore, createdBefore } = args
    const schedules = yield* all(lateSchedules, { dueBefore, limit: MOST_SCHEDULES })
    return { schedules, backups: yield* all(dailyBackups, { createdBefore }) }
  },
)
