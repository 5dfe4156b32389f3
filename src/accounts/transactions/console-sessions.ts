import type { Selectable } from 'kysely'
import { change, first, insertAll, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { ApiKeysTable, ConsoleSessionsTable } from '../../store/schema/accounts.js'

/** A session of the console as it is stored. */
export type ConsoleSessionRow = Selectable<ConsoleSessionsTable>

const deleteExpired = query<{ at: number }>(({ db, p }) =>
  db.deleteFrom('console_sessions').where('expires_at', '<=', p.at),
)

type KeySecret = { readonly keyId: string; readonly keyHash: string; readonly at: number }

const keyWithSecret = query<KeySecret, { key_id: string }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('api_keys')
      .select('key_id')
      .where('key_id', '=', p.keyId)
      .where((eb) =>
        eb.or([
          eb('key_hash', '=', p.keyHash),
          eb.and([eb('previous_hash', '=', p.keyHash), eb('previous_until', '>', p.at)]),
        ]),
      ),
  ),
)

/**
 * Inserts a session, and deletes expired ones. Answers false when the secret that it begins with was replaced meanwhile: a
 * rotation ends the sessions that exist at its commit, so none may follow it.
 * @param args.keyHash SHA-256 of that secret.
 */
export const create = write(
  'consoleSessions.create',
  function* ({ session, keyHash }: { session: ConsoleSessionRow; keyHash: string }): Transaction<boolean> {
    const { key_id: keyId, created_at: at } = session
    if (!(yield* first(keyWithSecret, { keyId, keyHash, at }))) return false
    yield* change(deleteExpired, { at })
    yield* insertAll('console_sessions', [session])
    return true
  },
)

const deleteOlder = query<{ keyId: string; before: number }>(({ db, p }) =>
  db.deleteFrom('console_sessions').where('key_id', '=', p.keyId).where('created_at', '<', p.before),
)

/**
 * Ends sessions of a key in the transaction that rotates it.
 * @param row the key before: a rotation ends the overlap of the one before it.
 * @param overlapMs of this rotation. Without one, all sessions end.
 */
export function* endSessionsOf(
  { key_id: keyId, previous_until }: Pick<Selectable<ApiKeysTable>, 'key_id' | 'previous_until'>,
  overlapMs: number,
): Transaction<void> {
  const before = overlapMs === 0 ? Number.MAX_SAFE_INTEGER : previous_until
  if (before !== null) yield* change(deleteOlder, { keyId, before })
}

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

/** Extends a session. One that was deleted meanwhile stays deleted. */
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
