import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, type Transaction } from '../../store/statement.js'

const touchNothing = query<{ nobody: string }, unknown>(({ db, p }) =>
  db.updateTable('accounts').set({ email: p.nobody }).where('account_id', '=', p.nobody),
)

/**
 * Runs a write that changes no row and thus writes nothing to the disk. Fails if the store cannot commit: its thread is
 * gone, its lock is held, or the PostgreSQL server is unavailable or read-only.
 */
export const probe = write('storeProbe.probe', function* (): Transaction<void> {
  yield* change(touchNothing, { nobody: '' })
})
