/**
 * States that last, such as a full disk. An account is alerted of a state when it begins, when it gets worse, every day, and
 * when it has ended. A state from its beginning to its end is one episode; when it returns, another episode begins.
 */
import { type Selectable, sql } from 'kysely'
import { SUSPENDED_FIRE } from '../../queue/transactions/schedules.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AlertConditionsTable } from '../../store/schema/alerts.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { type Occurrences, raise, resolve } from './alerts-history.js'
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

/** Occurrences to raise. `alertId` is used if they begin a new alert. */
export interface Raised {
  readonly accountId: string
  readonly alertId: string
  /** Absent for an alert about several states that each have their own episode. */
  readonly episodeId: string | undefined
  readonly found: Occurrences
}

/** The changes of one look at the states. */
export interface ConditionChanges {
  /** Rows to write, new or not. */
  readonly put: readonly ConditionRow[]
  readonly forget: readonly ConditionRow[]
  readonly raised: readonly Raised[]
  /** The alerts for episodes that have ended. */
  readonly resolved: readonly Raised[]
}

/** Stores the changes of one look, and raises its alerts. */
export const apply = write(
  'alertConditions.apply',
  function* (args: ConditionChanges & { now: number }): Transaction<void> {
    for (const row of [...args.put, ...args.forget]) {
      yield* change(drop, { accountId: row.account_id, kind: row.kind, subject: row.subject })
    }
    yield* insertAll('alert_conditions', args.put)
    const { now } = args
    for (const { accountId, alertId, episodeId, found } of args.raised) {
      if (yield* isEnabled(accountId, found.kind)) yield* raise(accountId, found, { alertId, now, episodeId })
    }
    for (const { accountId, alertId, episodeId, found } of args.resolved) {
      if (yield* isEnabled(accountId, found.kind)) yield* resolve(accountId, found, { alertId, now, episodeId })
    }
  },
)

const oneCondition = query<Key, ConditionRow>(({ db, p }) =>
  db
    .selectFrom('alert_conditions')
    .selectAll()
    .where('account_id', '=', p.accountId)
    .where('kind', '=', p.kind)
    .where('subject', '=', p.subject),
)

/** Begins or continues an episode, within the transaction that raises the alert of an event in it. Returns its id. */
export function* beginEpisode(key: Key, { freshId, now }: { freshId: string; now: number }): Transaction<string> {
  const row = yield* first(oneCondition, key)
  const episodeId = row?.episode_id ?? freshId
  yield* change(drop, key)
  yield* insertAll('alert_conditions', [
    {
      account_id: key.accountId,
      kind: key.kind,
      subject: key.subject,
      level: 1,
      alerted_at: now,
      gone_at: null,
      episode_id: episodeId,
      alert_subject: null,
      began_at: row?.began_at ?? now,
    },
  ])
  return episodeId
}

/** A schedule that is late, or whose last fire published nothing. */
export interface LateSchedule {
  readonly account_id: string
  readonly schedule_id: string
  readonly next_at: number | null
  /** Why the last fire published nothing. */
  readonly error: string | null
}

/**
 * A fire that was skipped because the account is suspended is not a failure. The limit applies to each account, so that an
 * account with thousands of broken schedules does not hide those of other accounts.
 */
const lateSchedules = query<{ dueBefore: number; limit: number }, LateSchedule>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('schedules')
        .select(['account_id', 'schedule_id', 'next_at', 'error'])
        .select(sql<number>`row_number() over (partition by account_id order by schedule_id)`.as('place'))
        .where('paused', '=', 0)
        .where((eb) => eb.or([eb('error', '<>', SUSPENDED_FIRE), eb('next_at', '<', p.dueBefore)]))
        .as('late'),
    )
    .select(['account_id', 'schedule_id', 'next_at', 'error'])
    .where('place', '<=', p.limit)
    .orderBy('account_id')
    .orderBy('schedule_id'),
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

/** A database whose newest backup failed. */
export interface FailingBackup {
  readonly account_id: string
  readonly database_id: string
  readonly name: string
  readonly failure: string | null
}

const failingBackups = query<{ databaseIds: readonly string[] }, FailingBackup>(({ db, p, d }) =>
  db
    .selectFrom('backups')
    .innerJoin('databases', 'databases.database_id', 'backups.database_id')
    .select(['databases.account_id', 'databases.database_id', 'databases.name', 'backups.failure'])
    .where(d.inTexts('backups.database_id', p.databaseIds))
    .where('backups.state', '=', 'failed')
    .where('backups.kind', '!=', 'import')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('backups as later')
            .select('later.backup_id')
            .whereRef('later.database_id', '=', 'backups.database_id')
            .whereRef('later.finished_at', '>=', 'backups.finished_at')
            .whereRef('later.backup_id', '!=', 'backups.backup_id')
            .where('later.state', '!=', 'pending')
            .where('later.kind', '!=', 'import')
            .where((eb) =>
              eb.or([eb('later.state', '=', 'completed'), eb('later.finished_at', '>', eb.ref('backups.finished_at'))]),
            ),
        ),
      ),
    )
    .orderBy('databases.account_id')
    .orderBy('databases.database_id'),
)

/**
 * A database with a state that its account was alerted of. `home`: the node that
 * serves it; NULL on a server that is alone.
 */
export interface KnownDatabase {
  readonly database_id: string
  readonly name: string
  readonly home: string | null
}

const databasesBy = query<{ databaseIds: readonly string[] }, KnownDatabase>(({ db, p, d }) =>
  db.selectFrom('databases').select(['database_id', 'name', 'home']).where(d.inTexts('database_id', p.databaseIds)),
)

/** Most schedules of one account that one look reads. */
const MAX_SCHEDULES = 200

/** Reads the states that can be judged from the store. */
export const stored = read(
  'alertConditions.stored',
  function* (args: {
    dueBefore: number
    createdBefore: number
    /** Databases to check for a failed newest backup. */
    failing: readonly string[]
    /** Subjects that may be databases. */
    known: readonly string[]
  }): Transaction<{
    schedules: LateSchedule[]
    backups: BackedUp[]
    failing: FailingBackup[]
    known: KnownDatabase[]
  }> {
    const { dueBefore, createdBefore, failing, known } = args
    return {
      schedules: yield* all(lateSchedules, { dueBefore, limit: MAX_SCHEDULES }),
      backups: yield* all(dailyBackups, { createdBefore }),
      failing: failing.length === 0 ? [] : yield* all(failingBackups, { databaseIds: failing }),
      known: known.length === 0 ? [] : yield* all(databasesBy, { databaseIds: known }),
    }
  },
)
