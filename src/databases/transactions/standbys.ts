/** Standbys of databases: which node keeps a copy, and how complete it is. `standbys/index.ts` has the states. */
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { all, change, first, insertAll, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { DatabaseStandbysTable } from '../../store/schema/index.js'

/** A standby as it is stored. */
export type StandbyRow = DatabaseStandbysTable

/** A standby with what its nodes need to know of the database. */
export interface PlacedStandby extends StandbyRow {
  readonly name: string
  readonly home: string | null
  /** Of the database now; null is 1. */
  readonly now_epoch: number | null
  /** The state of the home's newest life; null when no node has had its name. */
  readonly home_life: string | null
}

const lockDatabase = query<{ databaseId: string }, { home: string | null; modifying_state: string }>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('databases').select(['home', 'modifying_state']).where('database_id', '=', p.databaseId)),
)

const ofDatabase = query<{ databaseId: string }, StandbyRow>(({ db, p }) =>
  db.selectFrom('database_standbys').selectAll().where('database_id', '=', p.databaseId),
)

const openMove = query<{ databaseId: string }, { move_id: string }>(({ db, p }) =>
  db
    .selectFrom('database_moves')
    .select('move_id')
    .where('database_id', '=', p.databaseId)
    .where('state', 'in', ['asked', 'copying', 'switched', 'aborted']),
)

const newestLife = query<{ name: string }, { state: string }>(({ db, p }) =>
  db.selectFrom('nodes').select('state').where('name', '=', p.name).orderBy('incarnation', 'desc').limit(1),
)

const dropOf = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('database_standbys').where('database_id', '=', p.databaseId),
)

const dropAt = query<{ databaseId: string; node: string }>(({ db, p }) =>
  db.deleteFrom('database_standbys').where('database_id', '=', p.databaseId).where('node', '=', p.node),
)

/** What the operator asks for. */
export interface StandbyArgs {
  readonly databaseId: string
  readonly node: string
  /** Unix milliseconds. */
  readonly at: number
  readonly audit: NewAuditRow
}

/**
 * Stores which node keeps the standby of a database, in place of another one. A repeated request changes nothing.
 * @throws HomeportError `database_not_found`, `database_without_home`, `database_is_there`, `database_busy` while files of
 * the database are on their way between nodes, `node_not_found`, `node_not_running`.
 */
export const put = write('standbys.put', function* (args: StandbyArgs): Transaction<void> {
  const { databaseId, node } = args
  const row = yield* first(lockDatabase, { databaseId })
  if (!row || row.modifying_state === 'creating') throw new HomeportError('database_not_found', { databaseId })
  if (row.home === null) throw new HomeportError('database_without_home', { databaseId })
  if (row.home === node) throw new HomeportError('database_is_there', { databaseId, node })
  if ((yield* first(ofDatabase, { databaseId }))?.node === node) return
  if (yield* first(openMove, { databaseId })) {
    throw new HomeportError('database_busy', { modifyingState: 'updating_regions' })
  }
  const life = yield* first(newestLife, { name: node })
  if (!life) throw new HomeportError('node_not_found', { name: node })
  if (life.state !== 'live') throw new HomeportError('node_not_running', { name: node, state: life.state })
  yield* change(dropOf, { databaseId })
  const nothing = { complete_until: null, home_offset: null, standby_offset: null, problem: null }
  const asked = { database_id: databaseId, node, state: 'asked', epoch: 0, ...nothing, asked_at: args.at } as const
  yield* insertAll('database_standbys', [asked])
  yield* recordAudit(args.audit)
})

/** Ends the standby of a database at a node. Its node deletes the copy at its next look. May be repeated. */
export const drop = write('standbys.drop', function* (args: StandbyArgs): Transaction<void> {
  const { databaseId, node } = args
  if (!(yield* first(lockDatabase, { databaseId }))) throw new HomeportError('database_not_found', { databaseId })
  if ((yield* change(dropAt, { databaseId, node })) > 0) yield* recordAudit(args.audit)
})

const placed = query<object, PlacedStandby>(({ db }) =>
  db
    .selectFrom('database_standbys')
    .innerJoin('databases', 'databases.database_id', 'database_standbys.database_id')
    .leftJoin('database_epochs', 'database_epochs.database_id', 'database_standbys.database_id')
    .selectAll('database_standbys')
    .select(['databases.name', 'databases.home', 'database_epochs.epoch as now_epoch'])
    .select((q) =>
      q
        .selectFrom('nodes')
        .select('nodes.state')
        .whereRef('nodes.name', '=', 'databases.home')
        .orderBy('nodes.incarnation', 'desc')
        .limit(1)
        .as('home_life'),
    )
    .orderBy('database_standbys.database_id'),
)

/** All standbys, by the id of the database. */
export const list = read('standbys.list', function* (args: object): Transaction<readonly PlacedStandby[]> {
  return yield* all(placed, args)
})

/** What the home has seen of a standby. */
export interface StandbyNote
  extends Pick<StandbyRow, 'state' | 'epoch' | 'complete_until' | 'home_offset' | 'standby_offset' | 'problem'> {
  readonly databaseId: string
  readonly node: string
}

const setNote = query<StandbyNote>(({ db, p }) =>
  db
    .updateTable('database_standbys')
    .set({
      ...{ state: p.state, epoch: p.epoch, complete_until: p.complete_until, problem: p.problem },
      ...{ home_offset: p.home_offset, standby_offset: p.standby_offset },
    })
    .where('database_id', '=', p.databaseId)
    .where('node', '=', p.node)
    .where('epoch', '<=', p.epoch),
)

/** Stores what the home has seen. A home of an earlier epoch, or of a standby that was replaced, changes nothing. */
export const note = write('standbys.note', function* (args: { notes: readonly StandbyNote[] }): Transaction<void> {
  for (const one of args.notes) yield* change(setNote, one)
})

/**
 * Refuses to make a node the home of a database by a way that first deletes the copy there.
 * @throws HomeportError `database_standby_there`.
 */
export function* refuseStandbyAt(databaseId: string, node: string): Transaction<void> {
  const standby = yield* first(ofDatabase, { databaseId })
  if (standby?.node === node) throw new HomeportError('database_standby_there', { databaseId, node })
}

/** Deletes what is stored about the standby of a database; the transaction that deletes the database calls this. */
export function* forgetStandby(databaseId: string): Transaction<void> {
  yield* change(dropOf, { databaseId })
}
