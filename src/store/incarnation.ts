import { sql } from 'kysely'
import { type Building, query } from './query.js'
import { all, type Transaction } from './statement.js'

/**
 * First key of the advisory locks that the connections of an incarnation hold; an arbitrary constant. The second is the
 * incarnation.
 */
export const INCARNATION_LOCKS = 7_210_002
/**
 * Time limit for the end of the server processes: one that has not ended may still commit, so the incarnation is not over.
 */
const ENDS_WITHIN = sql.lit('2s')

const KEY = sql.lit(INCARNATION_LOCKS)

/** Does nothing on SQLite: no other node has connections to it. */
const nothing = ({ db }: Pick<Building<object>, 'db'>) => db.selectNoFrom(sql.lit(0).as('done'))

const waitBriefly = query<object>(({ db, d }) =>
  d.name === 'sqlite'
    ? nothing({ db })
    : db.selectNoFrom(sql`set_config('lock_timeout', ${ENDS_WITHIN}, true)`.as('done')),
)
const endAll = query<{ incarnation: number }>(({ db, p, d }) =>
  d.name === 'sqlite'
    ? nothing({ db })
    : db.selectNoFrom(
        sql`(select count(pg_terminate_backend(pid)) from pg_locks
          where locktype = 'advisory' and classid = ${KEY} and objid = ${p.incarnation}::bigint and objsubid = 2 and granted
            and database = (select oid from pg_database where datname = current_database()))`.as('done'),
      ),
)
const awaitAll = query<{ incarnation: number }>(({ db, p, d }) =>
  d.name === 'sqlite'
    ? nothing({ db })
    : db.selectNoFrom(sql`pg_advisory_xact_lock(${KEY}, ${p.incarnation}::int)`.as('done')),
)

/**
 * Ends the connections of an incarnation of a node (`Store.actFor`), as part of the transaction that ends the incarnation.
 * After its commit no transaction of that incarnation can commit, not even one in flight. If a connection does not end
 * within 2 s, the transaction fails.
 */
export function* endConnectionsOf(incarnation: number): Transaction<void> {
  yield* all(waitBriefly, {})
  yield* all(endAll, { incarnation })
  yield* all(awaitAll, { incarnation })
}

/** Whether a role may end connections of another one, by the rules of `pg_terminate_backend`. */
const mayEnd = (one: 'me' | 'other', two: 'me' | 'other') => {
  const [role, target] = [sql.table(one), sql.table(two)]
  return sql`(${role}.rolsuper or (not ${target}.rolsuper and (pg_has_role(${role}.oid, ${target}.oid, 'USAGE')
    or pg_has_role(${role}.oid, 'pg_signal_backend', 'USAGE'))))`
}

/**
 * Names of PostgreSQL users, separated by commas: users of other Homeport processes on this database whose connections this
 * process may not end, or who may not end the connections of this process.
 */
export const unterminableUsers = query<object, { users: string }>(({ db, d }) =>
  d.name === 'sqlite'
    ? db.selectNoFrom(sql.lit('').$castTo<string>().as('users'))
    : db.selectNoFrom(
        sql<string>`(select coalesce(string_agg(distinct other.rolname, ', '), '')
          from pg_stat_activity join pg_roles other on other.oid = usesysid join pg_roles me on me.rolname = current_user
          where datname = current_database() and application_name = 'homeport' and other.oid <> me.oid
            and not (${mayEnd('me', 'other')} and ${mayEnd('other', 'me')}))`.as('users'),
      ),
)
