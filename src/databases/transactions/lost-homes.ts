/**
 * Databases whose node the operator has given up: the node was removed although it was their home, so no row of a node has
 * the name of their home. The rows of the databases stay as they are. The node serves them again if it comes back; until
 * then their owners may recover or delete them.
 */
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { holdRegistrations } from '../../cluster/transactions/cluster-nodes.js'
import { forgetNode } from '../../cluster/transactions/nodes-admin.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { change, first, only, type Transaction } from '../../store/statement.js'
import { rowToChange } from './database-row.js'
import { dropRestore } from './recoveries.js'
import { newestIncarnation } from './standbys.js'

const copiedElsewhere = query<{ name: string }, { databases: number }>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select((q) => q.fn.countAll<number>().as('databases'))
    .where('home', '=', p.name)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('database_standbys')
          .select('database_standbys.node')
          .whereRef('database_standbys.database_id', '=', 'databases.database_id')
          .where('database_standbys.node', '!=', p.name)
          .where('database_standbys.state', '=', 'following'),
      ),
    ),
)

/**
 * Forgets a node that is gone for good although it is the home of databases.
 * @param args.audits one entry for each of its databases.
 * @throws HomeportError `node_not_found`, `node_running`, `node_has_standbys`: another node has a whole copy of one of them.
 */
export const remove = write(
  'lostHomes.remove',
  function* ({ name, audits }: { name: string; audits: readonly NewAuditRow[] }): Transaction<void> {
    yield* holdRegistrations()
    const { databases } = yield* only(copiedElsewhere, { name })
    if (databases > 0) throw new HomeportError('node_has_standbys', { name, databases })
    yield* forgetNode(name)
    for (const audit of audits) yield* recordAudit(audit)
  },
)

function* isGivenUp(home: string | null): Transaction<boolean> {
  return home !== null && (yield* first(newestIncarnation, { name: home })) === undefined
}

/** Whether the operator has given up the node that is the home of databases. */
export const isLost = read('lostHomes.isLost', function* (args: { home: string }): Transaction<boolean> {
  return yield* isGivenUp(args.home)
})

const setDeleting = query<{ databaseId: string; node: string }>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ home: p.node, modifying_state: 'deleting' })
    .where('database_id', '=', p.databaseId),
)

/**
 * Gives a database whose home is given up to a node that deletes it. If a crash interrupts the deletion, the next start of
 * that node completes it. Work of the old home on the database has ended. False: its home is not given up, or the account
 * does not have it.
 */
export const takeToDelete = write(
  'lostHomes.takeToDelete',
  function* (args: { accountId: string; databaseId: string; node: string; audit: NewAuditRow }): Transaction<boolean> {
    const { accountId, databaseId, node, audit } = args
    yield* holdRegistrations()
    const row = yield* first(rowToChange, { databaseId })
    if (row?.account_id !== accountId || !(yield* isGivenUp(row.home))) return false
    yield* change(setDeleting, { databaseId, node })
    yield* change(dropRestore, { databaseId })
    yield* recordAudit(audit)
    return true
  },
)
