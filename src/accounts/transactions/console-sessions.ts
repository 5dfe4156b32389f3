import type { Selectable } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ConsoleSessionsTable } from '../../store/schema/accounts.js'
import { change, first, insertAll, type Transaction } from '../../store/statement.js'

/** A session of the console as it is stored. */
export type ConsoleSessionRow = Selectable<ConsoleSessionsTable>

const deleteExpired = query<{ at: number }>(({ db, p }) =>
  db.deleteFrom('console_sessions').where('expires_at', '<=', p.at),
)

/** Inserts a session, and deletes expired ones. */
export const create = write('consoleSessions.create', function* (session: ConsoleSessionRow): Transaction<void> {
  yield* change(deleteExpired, { at: session.created_at })
  yield* insertAll('console_sessions', [session])
})

const bySecret = query<{ secretHash: string; at: number }, ConsoleSessionRow>(({ db, p }) =>
  db.selectFrom('console_sessions').selectAll().where('secret_hash', '=', p.secretHash).where('expires_at', '>', p.at),
)

/** The session with this secret, unless it has expired. */
export const find = read('consoleSessions.find', function* (args: { secretHash: string; at: number }): Transaction<
  ConsoleSessionRow | undefined
> {
  return yield* first(bySecret, args)
})

const setExpiry = query<{ secretHash: string; expiresAt: number }>(({ db, p }) =>
  db.updateTable('console_sessions').set({ expires_at: p.expiresAt }).where('secret_hash', '=', p.secretHash),
)

/** Extends a session. A session that was deleted meanwhile stays deleted. */
export const extend = write(
  'consoleSessions.extend',
  function* (args: { secretHash: string; expiresAt: number }): Transaction<void> {
    yield* change(setExpiry, args)
  },
)

const deleteSession = query<{ secretHash: string }>(({ db, p }) =>
  db.deleteFrom('console_sessions').where('secret_hash', '=', p.secretHash),
)

/** Deletes a session. */
export const end = write('consoleSessions.end', function* (args: { secretHash: string }): Transaction<void> {
  yield* change(deleteSession, args)
})
