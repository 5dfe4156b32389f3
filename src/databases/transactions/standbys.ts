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
  /** The state of the newest life of the home, and of the standby's node; null when no node has had that name. */
  readonly home_life: string | null
  readonly node_life: string | null
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

const setWanted = query<Pick<StandbyRow, 'database_id' | 'placement' | 'mode' | 'state'>>(({ db, p }) =>
  db
    .updateTable('database_standbys')
    .set({ placement: p.placement, mode: p.mode, state: p.state })
    .where('database_id', '=', p.database_id),
)

const dropAt = query<{ databaseId: string; node: string }>(({ db, p }) =>
  db.deleteFrom('database_standbys').where('database_id', '=', p.databaseId).where('node', '=', p.node),
)

/** What is stored of a copy of which nothing is known yet. */
const UNKNOWN = {
  state: 'asked',
  complete_until: null,
  home_offset: null,
  standby_offset: null,
  problem: null,
} as const

/** What the operator asks for. */
export interface StandbyArgs {
  readonly databaseId: string
  readonly node: string
  /** Undefined: as it is, or `async`. */
  readonly mode: StandbyRow['mode'] | undefined
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
  const home = yield* lockHome(databaseId)
  if (home === node) throw new HomeportError('database_is_there', { databaseId, node })
  const known = yield* first(ofDatabase, { databaseId })
  const mode = args.mode ?? known?.mode ?? 'async'
  if (known?.node === node) {
    if (!(yield* adjust(known, { placement: 'named', mode }))) return
  } else yield* replace(args, mode)
  yield* recordAudit(args.audit)
})

/** Changes who chooses the node, and whether answers wait. Answers whether that was a change. */
function* adjust(known: StandbyRow, wanted: Pick<StandbyRow, 'placement' | 'mode'>): Transaction<boolean> {
  if (known.placement === wanted.placement && known.mode === wanted.mode) return false
  // The home has to hold answers back first: then it stores again that the copy is complete.
  const state = known.mode !== wanted.mode && known.state === 'following' ? 'behind' : known.state
  yield* change(setWanted, { database_id: known.database_id, ...wanted, state })
  return true
}

function* replace({ databaseId, node, at }: StandbyArgs, mode: StandbyRow['mode']): Transaction<void> {
  if (yield* first(openMove, { databaseId })) {
    throw new HomeportError('database_busy', { modifyingState: 'updating_regions' })
  }
  const life = yield* first(newestLife, { name: node })
  if (!life) throw new HomeportError('node_not_found', { name: node })
  if (life.state !== 'live') throw new HomeportError('node_not_running', { name: node, state: life.state })
  yield* change(dropOf, { databaseId })
  const asked = { database_id: databaseId, node, placement: 'named', mode, epoch: 0, ...UNKNOWN, asked_at: at } as const
  yield* insertAll('database_standbys', [asked])
}

/** The home of a database, whose row is locked. @throws HomeportError `database_not_found`, `database_without_home`. */
function* lockHome(databaseId: string): Transaction<string> {
  const row = yield* first(lockDatabase, { databaseId })
  if (!row || row.modifying_state === 'creating') throw new HomeportError('database_not_found', { databaseId })
  if (row.home === null) throw new HomeportError('database_without_home', { databaseId })
  return row.home
}

/**
 * Has the home choose the node of the standby from now on; one that was named stays until it is gone. Until the home has
 * chosen, the row names the home itself. A repeated request changes nothing.
 * @throws HomeportError `database_not_found`, `database_without_home`.
 */
export const putAuto = write('standbys.putAuto', function* (args: Omit<StandbyArgs, 'node'>): Transaction<void> {
  const { databaseId, at } = args
  const home = yield* lockHome(databaseId)
  const known = yield* first(ofDatabase, { databaseId })
  const mode = args.mode ?? known?.mode ?? 'async'
  if (known) {
    if (!(yield* adjust(known, { placement: 'auto', mode }))) return
  } else yield* insertAll('database_standbys', [{ ...unplaced(databaseId, home, at), mode }])
  yield* recordAudit(args.audit)
})

const withoutStandby = query<object, { database_id: string; home: string }>(({ db, d }) =>
  d.forUpdate(
    db
      .selectFrom('databases')
      .select(['database_id', 'home'])
      .where('home', 'is not', null)
      .where('modifying_state', 'not in', ['creating', 'deleting'])
      .where((e) =>
        e.not(
          e.exists(
            e
              .selectFrom('database_standbys')
              .select('node')
              .whereRef('database_standbys.database_id', '=', 'databases.database_id'),
          ),
        ),
      )
      .orderBy('database_id')
      .$narrowType<{ home: string }>(),
  ),
)

/** The same for every database without a standby. Answers how many there were. */
export const putAutoAll = write(
  'standbys.putAutoAll',
  function* (args: { at: number; audit: NewAuditRow }): Transaction<number> {
    const rows = yield* all(withoutStandby, {})
    if (rows.length === 0) return 0
    yield* insertAll(
      'database_standbys',
      rows.map(({ database_id, home }) => unplaced(database_id, home, args.at)),
    )
    yield* recordAudit(args.audit)
    return rows.length
  },
)

/** The row of a standby whose node the home is to choose. */
const unplaced = (databaseId: string, home: string, at: number): StandbyRow => ({
  ...{ database_id: databaseId, node: home, placement: 'auto', mode: 'async', epoch: 0, ...UNKNOWN, asked_at: at },
})

/** The standby of a new database. */
export interface FirstStandby {
  readonly home: string
  readonly mode: StandbyRow['mode']
  /** Unix milliseconds. */
  readonly at: number
}

/** Has the home of a new database choose the node of its standby, in the transaction that completes the creation. */
export function* placeFirst(databaseId: string, { home, mode, at }: FirstStandby): Transaction<void> {
  yield* insertAll('database_standbys', [{ ...unplaced(databaseId, home, at), mode }])
}

/** What the home has chosen. */
export interface ChosenNode extends Omit<StandbyArgs, 'mode'> {
  readonly home: string
  /** The node that the row has named until now. */
  readonly from: string
}

const setNode = query<{ databaseId: string; node: string; epoch: number }>(({ db, p }) =>
  db
    .updateTable('database_standbys')
    .set({ node: p.node, epoch: p.epoch, ...UNKNOWN })
    .where('database_id', '=', p.databaseId),
)

/** Another node is to keep the standby of a database. False, and nothing is changed, when the rows have changed meanwhile. */
export const choose = write('standbys.choose', function* (args: ChosenNode): Transaction<boolean> {
  const { databaseId, home, from, node } = args
  const row = yield* first(lockDatabase, { databaseId })
  const known = yield* first(ofDatabase, { databaseId })
  if (row?.home !== home || known?.node !== from || known.placement !== 'auto') return false
  if ((yield* first(openMove, { databaseId })) || (yield* first(newestLife, { name: node }))?.state !== 'live')
    return false
  yield* change(setNode, { databaseId, node, epoch: known.epoch })
  yield* recordAudit(args.audit)
  return true
})

/**
 * The standby has become the home: the old home is to keep the standby from now on. Under the new epoch, so that nothing
 * that an earlier home still stores counts.
 */
export function* turnStandby(databaseId: string, oldHome: string, epoch: number): Transaction<void> {
  yield* change(setNode, { databaseId, node: oldHome, epoch })
}

/** Which standby ends. */
export interface EndedStandby extends Omit<StandbyArgs, 'node' | 'mode'> {
  /** Only one at this node. */
  readonly node: string | undefined
}

/** Ends the standby of a database. Its node deletes the copy at its next look. May be repeated. */
export const drop = write('standbys.drop', function* (args: EndedStandby): Transaction<void> {
  const { databaseId, node } = args
  if (!(yield* first(lockDatabase, { databaseId }))) throw new HomeportError('database_not_found', { databaseId })
  const ended = node === undefined ? yield* change(dropOf, { databaseId }) : yield* change(dropAt, { databaseId, node })
  if (ended > 0) yield* recordAudit(args.audit)
})

const placed = query<object, Omit<PlacedStandby, 'home_life' | 'node_life'>>(({ db }) =>
  db
    .selectFrom('database_standbys')
    .innerJoin('databases', 'databases.database_id', 'database_standbys.database_id')
    .leftJoin('database_epochs', 'database_epochs.database_id', 'database_standbys.database_id')
    .selectAll('database_standbys')
    .select(['databases.name', 'databases.home', 'database_epochs.epoch as now_epoch'])
    .orderBy('database_standbys.database_id'),
)

const everyLife = query<object, { name: string; state: string }>(({ db }) =>
  db.selectFrom('nodes').select(['name', 'state']).orderBy('incarnation'),
)

/** All standbys, by the id of the database. Every node reads them once a second. */
export const list = read('standbys.list', function* (args: object): Transaction<readonly PlacedStandby[]> {
  const rows = yield* all(placed, args)
  if (rows.length === 0) return []
  // The newest life of a name comes last.
  const lives = new Map((yield* all(everyLife, args)).map(({ name, state }) => [name, state]))
  const lifeOf = (name: string | null): string | null => lives.get(name ?? '') ?? null
  return rows.map((row) => ({ ...row, home_life: lifeOf(row.home), node_life: lifeOf(row.node) }))
})

/** What the home has seen of a standby. */
export interface StandbyNote
  extends Pick<
    StandbyRow,
    'mode' | 'state' | 'epoch' | 'complete_until' | 'home_offset' | 'standby_offset' | 'problem'
  > {
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
    .where('mode', '=', p.mode)
    .where('epoch', '<=', p.epoch),
)

/**
 * Stores what the home has seen. A home of an earlier epoch, of a standby that was replaced, or that does not know the mode
 * yet, changes nothing.
 */
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

/**
 * Lets a database move to a node. A standby that the home has placed there makes way: the node that the database leaves is to
 * keep it afterwards.
 * @throws HomeportError `database_standby_there` for one that the operator has placed there.
 */
export function* makeWay(databaseId: string, { home, to }: { home: string; to: string }): Transaction<void> {
  const standby = yield* first(ofDatabase, { databaseId })
  if (standby?.node !== to) return
  if (standby.placement !== 'auto') yield* refuseStandbyAt(databaseId, to)
  else yield* change(setNode, { databaseId, node: home, epoch: standby.epoch })
}

/** The node that keeps the standby of a database. */
export const nodeOf = read('standbys.nodeOf', function* (args: { databaseId: string }): Transaction<
  string | undefined
> {
  return (yield* first(ofDatabase, args))?.node
})

/** Deletes what is stored about the standby of a database; the transaction that deletes the database calls this. */
export function* forgetStandby(databaseId: string): Transaction<void> {
  yield* change(dropOf, { databaseId })
}
