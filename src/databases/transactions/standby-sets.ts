/** Stores what the operator asks for: how many standbys a database has, and at which nodes. */
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { requireGeneration } from '../../cluster/transactions/cluster-nodes.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { dropOf, lockDatabase, newestIncarnation, openMove, type StandbyRow, UNKNOWN } from './standbys.js'

/** The migration that brings sets, and the first generation whose nodes know them. */
const SETS = { migration: 'standby_sets', generation: 3 } as const

const lockRows = query<{ databaseId: string }, StandbyRow>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('database_standbys').selectAll().where('database_id', '=', p.databaseId).orderBy('slot')),
)

type Slot = Pick<StandbyRow, 'database_id' | 'slot'>

const setWanted = query<Slot & Pick<StandbyRow, 'placement' | 'mode' | 'state'>>(({ db, p }) =>
  db
    .updateTable('database_standbys')
    .set({ placement: p.placement, mode: p.mode, state: p.state })
    .where('database_id', '=', p.database_id)
    .where('slot', '=', p.slot),
)

const dropSlot = query<Slot>(({ db, p }) =>
  db.deleteFrom('database_standbys').where('database_id', '=', p.database_id).where('slot', '=', p.slot),
)

const dropAt = query<{ databaseId: string; node: string }>(({ db, p }) =>
  db.deleteFrom('database_standbys').where('database_id', '=', p.databaseId).where('node', '=', p.node),
)

/** What the operator asks for. */
export interface StandbySetArgs {
  readonly databaseId: string
  /** Undefined: as it is, or `async`. */
  readonly mode: StandbyRow['mode'] | undefined
  /** How many standbys the database is to have, 1 to 3. Undefined: as many as it has, or one. */
  readonly copies: number | undefined
  /** Unix milliseconds. */
  readonly at: number
  readonly audit: NewAuditRow
}

/**
 * Makes a node keep a standby of a database: an additional one while the database has fewer than asked for, otherwise in
 * place of another one. The home chooses the nodes of further standbys. A repeated request changes nothing.
 * @throws HomeportError `database_not_found`, `database_without_home`, `database_is_there`, `database_busy` while files of
 * the database are in transit between nodes, `node_not_found`, `node_not_running`, `standbys_need_upgrade`.
 */
export const put = write('standbys.put', function* (args: StandbySetArgs & { node: string }): Transaction<void> {
  const { databaseId, node } = args
  yield* allow(args)
  const home = yield* lockHome(databaseId)
  if (home === node) throw new HomeportError('database_is_there', { databaseId, node })
  const known = yield* all(lockRows, { databaseId })
  if (!known.some((row) => row.node === node)) yield* checkNode(databaseId, node)
  const wanted = wantedSet(known, { ...args, home })
  if (yield* storeRows(known, wanted)) yield* recordAudit(args.audit)
})

/**
 * Makes the home of a database choose the nodes of its standbys from now on. A node that the operator has named keeps its
 * standby until it is gone. Until the home has chosen, a row names the home itself. A repeated request changes nothing.
 * @throws HomeportError `database_not_found`, `database_without_home`, `standbys_need_upgrade`.
 */
export const putAuto = write('standbys.putAuto', function* (args: StandbySetArgs): Transaction<void> {
  const { databaseId } = args
  yield* allow(args)
  const home = yield* lockHome(databaseId)
  const known = yield* all(lockRows, { databaseId })
  if (yield* storeRows(known, wantedSet(known, { ...args, home, node: undefined }))) yield* recordAudit(args.audit)
})

/** Called before any row is locked, in the same order of locks as a promotion. */
function* allow({ copies = 1 }: StandbySetArgs): Transaction<void> {
  if (copies === 1) return
  const old = yield* requireGeneration(SETS)
  if (old.length > 0) throw new HomeportError('standbys_need_upgrade', { nodes: old })
}

/**
 * Locks the row of a database, and returns its home. @throws HomeportError `database_not_found`, `database_without_home`.
 */
function* lockHome(databaseId: string): Transaction<string> {
  const row = yield* first(lockDatabase, { databaseId })
  if (!row || row.modifying_state === 'creating') throw new HomeportError('database_not_found', { databaseId })
  if (row.home === null) throw new HomeportError('database_without_home', { databaseId })
  return row.home
}

function* checkNode(databaseId: string, node: string): Transaction<void> {
  if (yield* first(openMove, { databaseId })) {
    throw new HomeportError('database_busy', { modifyingState: 'updating_regions' })
  }
  const newest = yield* first(newestIncarnation, { name: node })
  if (!newest) throw new HomeportError('node_not_found', { name: node })
  if (newest.state !== 'live') throw new HomeportError('node_not_running', { name: node, state: newest.state })
}

interface Wanted extends Omit<StandbySetArgs, 'audit'> {
  readonly home: string
  /** The node that has to keep one of the copies; undefined: the home chooses all nodes. */
  readonly node: string | undefined
}

/** The desired rows of a database. A row that does not change is the same object. */
function wantedSet(known: readonly StandbyRow[], asked: Wanted): readonly StandbyRow[] {
  const { databaseId, home, node, at } = asked
  const mode = asked.mode ?? known[0]?.mode ?? 'async'
  const copies = asked.copies ?? Math.max(1, known.length)
  const isNamed = (row: StandbyRow): boolean => row.node === node
  const fresh = (slot: number, of: string, placement: StandbyRow['placement']): StandbyRow => ({
    database_id: databaseId,
    slot,
    node: of,
    placement,
    mode,
    epoch: 0,
    ...UNKNOWN,
    asked_at: at,
  })
  const rows = known.map((row) =>
    adjusted(row, node === undefined ? 'auto' : isNamed(row) ? 'named' : row.placement, mode),
  )
  if (node !== undefined && !rows.some(isNamed)) {
    const [spare] = rows.length < copies ? [] : inOrderOfEnding(rows, home)
    if (spare) rows.splice(rows.indexOf(spare), 1)
    rows.push(fresh(spare?.slot ?? freeSlot(rows), node, 'named'))
  }
  for (const spare of inOrderOfEnding(rows, home)) {
    if (rows.length > copies && !isNamed(spare)) rows.splice(rows.indexOf(spare), 1)
  }
  while (rows.length < copies) rows.push(fresh(freeSlot(rows), home, 'auto'))
  return rows
}

const freeSlot = (rows: readonly StandbyRow[]): number =>
  [1, 2, 3].find((slot) => !rows.some((row) => row.slot === slot)) ?? 0

/** The rows in the order in which they are given up: without a node, chosen by the home, not complete, the last slot. */
function inOrderOfEnding(rows: readonly StandbyRow[], home: string): readonly StandbyRow[] {
  const worth = (row: StandbyRow): number =>
    (row.node === home ? 0 : 4) + (row.placement === 'auto' ? 0 : 2) + (row.state === 'following' ? 1 : 0)
  return [...rows].sort((one, other) => worth(one) - worth(other) || other.slot - one.slot)
}

function adjusted(row: StandbyRow, placement: StandbyRow['placement'], mode: StandbyRow['mode']): StandbyRow {
  if (row.placement === placement && row.mode === mode) return row
  // The home has to hold back answers first. Then it stores again that the copy is complete.
  const state = row.mode !== mode && row.state === 'following' ? 'behind' : row.state
  return { ...row, placement, mode, state }
}

/** Stores the rows. Returns whether that was a change. */
function* storeRows(known: readonly StandbyRow[], wanted: readonly StandbyRow[]): Transaction<boolean> {
  const isKept = (row: StandbyRow): boolean =>
    wanted.some(({ slot, node, asked_at }) => slot === row.slot && node === row.node && asked_at === row.asked_at)
  const gone = known.filter((row) => !isKept(row))
  const changed = wanted.filter((row) => !known.includes(row))
  for (const { database_id, slot } of gone) yield* change(dropSlot, { database_id, slot })
  for (const row of changed) {
    const { database_id, slot, placement, mode, state } = row
    if (known.some((one) => one.slot === slot && !gone.includes(one))) {
      yield* change(setWanted, { database_id, slot, placement, mode, state })
    } else yield* insertAll('database_standbys', [row])
  }
  return gone.length + changed.length > 0
}

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

/** Adds a standby whose node the home chooses to every database without one. Returns how many there were. */
export const putAutoAll = write(
  'standbys.putAutoAll',
  function* (args: { at: number; audit: NewAuditRow }): Transaction<number> {
    const rows = yield* all(withoutStandby, {})
    if (rows.length === 0) return 0
    yield* insertAll(
      'database_standbys',
      rows.map(({ database_id, home }) => unplaced(database_id, { home, mode: 'async', at: args.at })),
    )
    yield* recordAudit(args.audit)
    return rows.length
  },
)

/** The first standby of a database, whose node the home chooses. */
export interface FirstStandby {
  readonly home: string
  readonly mode: StandbyRow['mode']
  /** Unix milliseconds. */
  readonly at: number
}

const unplaced = (databaseId: string, { home, mode, at }: FirstStandby): StandbyRow => ({
  database_id: databaseId,
  slot: 1,
  node: home,
  placement: 'auto',
  mode,
  epoch: 0,
  ...UNKNOWN,
  asked_at: at,
})

/** Adds a standby whose node the home chooses to a new database, in the transaction that completes the creation. */
export function* placeFirst(databaseId: string, standby: FirstStandby): Transaction<void> {
  yield* insertAll('database_standbys', [unplaced(databaseId, standby)])
}

/** The standbys to end. */
export interface EndedStandbys {
  readonly databaseId: string
  /** Only the standby at this node; undefined: all. */
  readonly node: string | undefined
  readonly audit: NewAuditRow
}

/** Ends standbys of a database. Their nodes delete the copies at their next look. May be repeated. */
export const drop = write('standbys.drop', function* (args: EndedStandbys): Transaction<void> {
  const { databaseId, node } = args
  if (!(yield* first(lockDatabase, { databaseId }))) throw new HomeportError('database_not_found', { databaseId })
  const ended = node === undefined ? yield* change(dropOf, { databaseId }) : yield* change(dropAt, { databaseId, node })
  if (ended > 0) yield* recordAudit(args.audit)
})
