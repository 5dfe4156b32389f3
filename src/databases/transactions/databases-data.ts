import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, first, type Transaction } from '../../store/statement.js'
import { lockForChange, moveModifying, type Refusal } from './backups.js'
import { type DatabaseRow, rowOf } from './database-row.js'
import type { DatabaseOfAccount } from './home-check.js'

const setProblem = query<{ databaseId: string; problem: string | null }>(({ db, p }) =>
  db.updateTable('databases').set({ data_problem: p.problem }).where('database_id', '=', p.databaseId),
)

/** Stores the data problem of a database; `null` clears it. */
export const note = write(
  'databasesData.note',
  function* (args: { databaseId: string; problem: string | null }): Transaction<number> {
    return yield* change(setProblem, args)
  },
)

/** The outcome of `beginAccept`. */
export type BeginOutcome =
  | { readonly kind: 'begun'; readonly database: DatabaseRow }
  /** There is no loss to accept. */
  | { readonly kind: 'whole' }
  | Refusal

/** (empty) becomes `restoring`, because the files of the database will change. */
export const beginAccept = write(
  'databasesData.beginAccept',
  function* (args: DatabaseOfAccount & { audit: NewAuditRow }): Transaction<BeginOutcome> {
    const { accountId, databaseId, home, audit } = args
    const found = yield* lockForChange(databaseId, accountId, home)
    if (found.kind !== 'free') return found
    if (found.database.data_problem === null) return { kind: 'whole' }
    yield* moveModifying(databaseId, '', 'restoring')
    yield* recordAudit(audit)
    return { kind: 'begun', database: found.database }
  },
)

const freeAccepting = query<{ databaseId: string }>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: '' })
    .where('database_id', '=', p.databaseId)
    .where('modifying_state', '=', 'restoring')
    .where('database_id', 'not in', (q) => q.selectFrom('restores').select('database_id')),
)

/** `restoring` becomes (empty), unless a restore is active. Called when nobody carries out the acceptance of a loss. */
export const giveUpAccept = write(
  'databasesData.giveUpAccept',
  function* (args: { databaseId: string }): Transaction<void> {
    yield* change(freeAccepting, args)
  },
)

/** `restoring` becomes (empty). The problem is cleared only when the loss was `accepted`. May be repeated. */
export const endAccept = write(
  'databasesData.endAccept',
  function* (args: { databaseId: string; outcome: 'accepted' | 'failed' }): Transaction<DatabaseRow | undefined> {
    const { databaseId, outcome } = args
    const moved = yield* moveModifying(databaseId, 'restoring', '')
    if (moved && outcome === 'accepted') yield* change(setProblem, { databaseId, problem: null })
    return yield* first(rowOf, { databaseId })
  },
)
