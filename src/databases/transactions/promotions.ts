/** A standby becomes the home of its database, because the home is dead. */
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { holdRegistrations } from '../../cluster/transactions/cluster-nodes.js'
import { change, first, insertAll, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { DatabaseStandbysTable } from '../../store/schema/index.js'
import { takeHome } from './homes.js'
import { turnStandby } from './standbys.js'

/** Who takes a database over from whom. */
export interface Promotion {
  readonly databaseId: string
  readonly from: string
  readonly to: string
  /** Of the database, before it changes. */
  readonly epoch: number
  /** Unix milliseconds. */
  readonly at: number
  readonly audit: NewAuditRow
}

/** The result: why nothing was changed is for the log. */
export type Promoted = { readonly kind: 'promoted' } | { readonly kind: 'refused'; readonly why: string }

const lockDatabase = query<
  { databaseId: string },
  { home: string | null; modifying_state: string; epoch: number | null }
>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('databases')
      .select(['home', 'modifying_state'])
      .select((q) =>
        q
          .selectFrom('database_epochs')
          .select('epoch')
          .whereRef('database_epochs.database_id', '=', 'databases.database_id')
          .as('epoch'),
      )
      .where('database_id', '=', p.databaseId),
  ),
)

const newestLife = query<{ name: string }, { state: string }>(({ db, p }) =>
  db.selectFrom('nodes').select('state').where('name', '=', p.name).orderBy('incarnation', 'desc').limit(1),
)

const standbyAt = query<{ databaseId: string; node: string }, DatabaseStandbysTable>(({ db, p }) =>
  db
    .selectFrom('database_standbys')
    .selectAll()
    .where('database_id', '=', p.databaseId)
    .where('node', '=', p.node)
    .where('state', '=', 'following'),
)

const dropEpoch = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('database_epochs').where('database_id', '=', p.databaseId),
)

const dropTaken = query<{ databaseId: string; from: string }>(({ db, p }) =>
  db.deleteFrom('taken_homes').where('database_id', '=', p.databaseId).where('from_node', '=', p.from),
)

const failPending = query<{ databaseId: string; at: number }>(({ db, p }) =>
  db
    .updateTable('backups')
    .set({ state: 'failed', failure: 'its node was gone', finished_at: p.at })
    .where('database_id', '=', p.databaseId)
    .where('state', '=', 'pending'),
)

/**
 * Makes the node of a standby the home, with the next epoch. No node begins a life meanwhile: one that begins before is
 * seen here, one that begins later reads the new home.
 */
export const promote = write('promotions.promote', function* (args: Promotion): Transaction<Promoted> {
  const { databaseId, from, to, at } = args
  yield* holdRegistrations()
  const row = yield* first(lockDatabase, { databaseId })
  const why = yield* refusalOf(args, row)
  if (why !== undefined) return { kind: 'refused', why }
  yield* takeHome(databaseId, from, to)
  yield* change(dropEpoch, { databaseId })
  const epoch = args.epoch + 1
  yield* insertAll('database_epochs', [{ database_id: databaseId, epoch }])
  yield* turnStandby(databaseId, from, epoch)
  yield* change(failPending, { databaseId, at })
  yield* change(dropTaken, { databaseId, from })
  const taken = { database_id: databaseId, from_node: from, to_node: to, backup_id: '', taken_at: at }
  yield* insertAll('taken_homes', [taken])
  yield* recordAudit(args.audit)
  return { kind: 'promoted' }
})

function* refusalOf(
  { databaseId, from, to, epoch }: Promotion,
  row: { home: string | null; modifying_state: string; epoch: number | null } | undefined,
): Transaction<string | undefined> {
  if (row?.home !== from || (row.epoch ?? 1) !== epoch) return 'the home has changed'
  if (row.modifying_state !== '') return `a change was not complete: ${row.modifying_state}`
  if (!(yield* first(standbyAt, { databaseId, node: to }))) return 'the standby is not following'
  const own = yield* first(newestLife, { name: to })
  if (own?.state !== 'live' && own?.state !== 'draining') return 'this node was declared dead'
  const life = yield* first(newestLife, { name: from })
  return life?.state === 'dead' ? undefined : `the node ${from} is ${life?.state ?? 'unknown'}`
}
