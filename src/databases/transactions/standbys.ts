/**
 * Standbys of databases: which nodes keep copies, and how complete they are. `standbys/index.ts` has the states,
 * `standby-sets.ts` what the operator asks for.
 */
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { DatabaseStandbysTable } from '../../store/schema/index.js'
import { all, change, first, type Transaction } from '../../store/statement.js'

/** A standby as it is stored. */
export type StandbyRow = DatabaseStandbysTable

/** A standby with what its nodes need to know of the database. */
export interface PlacedStandby extends StandbyRow {
  readonly name: string
  readonly home: string | null
  /** The epoch of the database now; null means 1. */
  readonly now_epoch: number | null
  /** The state of the newest incarnation of the home, and of the standby's node; null when no node has had that name. */
  readonly home_state: string | null
  readonly node_state: string | null
  /** The newest incarnation of the home. */
  readonly home_incarnation: number | null
}

/** Locks the row of a database. */
export const lockDatabase = query<{ databaseId: string }, { home: string | null; modifying_state: string }>(
  ({ db, p, d }) =>
    d.forUpdate(db.selectFrom('databases').select(['home', 'modifying_state']).where('database_id', '=', p.databaseId)),
)

/** The standbys of a database, by slot. */
export const ofDatabase = query<{ databaseId: string }, StandbyRow>(({ db, p }) =>
  db.selectFrom('database_standbys').selectAll().where('database_id', '=', p.databaseId).orderBy('slot'),
)

/** The move of a database whose files may be in transit between nodes. */
export const openMove = query<{ databaseId: string }, { move_id: string }>(({ db, p }) =>
  db
    .selectFrom('database_moves')
    .select('move_id')
    .where('database_id', '=', p.databaseId)
    .where('state', 'in', ['asked', 'copying', 'switched', 'aborted']),
)

/** The newest incarnation of the nodes with a name. */
export const newestIncarnation = query<{ name: string }, { state: string; incarnation: number }>(({ db, p }) =>
  db
    .selectFrom('nodes')
    .select(['state', 'incarnation'])
    .where('name', '=', p.name)
    .orderBy('incarnation', 'desc')
    .limit(1),
)

/** Whether the newest incarnation of a node takes part in the cluster. */
export function* takesPart(node: string): Transaction<boolean> {
  const state = (yield* first(newestIncarnation, { name: node }))?.state
  return state === 'live' || state === 'draining'
}

/** Ends all standbys of a database. */
export const dropOf = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('database_standbys').where('database_id', '=', p.databaseId),
)

/** The columns of a copy of which nothing is known yet. */
export const UNKNOWN = {
  state: 'asked',
  complete_until: null,
  home_offset: null,
  standby_offset: null,
  problem: null,
  stand_life: null,
  stand_replid: null,
  stand_offset: null,
} as const

/** The node that the home has chosen for a standby. */
export interface ChosenNode {
  readonly databaseId: string
  readonly slot: number
  readonly home: string
  /** The node that the row has named until now. */
  readonly from: string
  readonly node: string
  /** Unix milliseconds. */
  readonly at: number
  readonly audit: NewAuditRow
}

interface NewNode {
  readonly databaseId: string
  readonly slot: number
  readonly node: string
  readonly epoch: number
}

const setNode = query<NewNode>(({ db, p }) =>
  db
    .updateTable('database_standbys')
    .set({ node: p.node, epoch: p.epoch, ...UNKNOWN })
    .where('database_id', '=', p.databaseId)
    .where('slot', '=', p.slot),
)

/**
 * Assigns a standby of a database to another node. False, without a change, when the rows have changed meanwhile, the
 * database has an open move, or the node is not live.
 */
export const choose = write('standbys.choose', function* (args: ChosenNode): Transaction<boolean> {
  const { databaseId, slot, home, from, node } = args
  const row = yield* first(lockDatabase, { databaseId })
  const rows = yield* all(ofDatabase, { databaseId })
  const known = rows.find((one) => one.slot === slot)
  if (row?.home !== home || known?.node !== from || known.placement !== 'auto') return false
  if (node === home || rows.some((one) => one.node === node)) return false
  if ((yield* first(openMove, { databaseId })) || (yield* first(newestIncarnation, { name: node }))?.state !== 'live')
    return false
  yield* change(setNode, { databaseId, slot, node, epoch: known.epoch })
  yield* recordAudit(args.audit)
  return true
})

/** A change of the home of a database. */
export interface NewHome {
  readonly databaseId: string
  readonly from: string
  readonly to: string
}

/**
 * Called when a database has another home. Rows without a node name the old home. One of them stays, so that the old home
 * keeps a copy from now on; the others name the new home, because they still have no node.
 */
export function* followHome({ databaseId, from, to }: NewHome): Transaction<void> {
  const [, ...others] = (yield* all(ofDatabase, { databaseId })).filter((row) => row.node === from)
  for (const { slot, epoch } of others) yield* change(setNode, { databaseId, slot, node: to, epoch })
}

/**
 * Called when a standby has become the home: the old home keeps that standby from now on, and the others follow the new
 * home. The rows get the new epoch, so that notes of an earlier home do not count.
 */
export function* turnStandbys({ databaseId, from, to }: NewHome, epoch: number): Transaction<void> {
  for (const { slot, node } of yield* all(ofDatabase, { databaseId })) {
    const next = node === to ? from : node === from ? to : node
    yield* change(setNode, { databaseId, slot, node: next, epoch })
  }
}

const placed = query<object, Omit<PlacedStandby, 'home_state' | 'node_state' | 'home_incarnation'>>(({ db }) =>
  db
    .selectFrom('database_standbys')
    .innerJoin('databases', 'databases.database_id', 'database_standbys.database_id')
    .leftJoin('database_epochs', 'database_epochs.database_id', 'database_standbys.database_id')
    .selectAll('database_standbys')
    .select(['databases.name', 'databases.home', 'database_epochs.epoch as now_epoch'])
    .orderBy('database_standbys.database_id')
    .orderBy('database_standbys.slot'),
)

const everyIncarnation = query<object, { name: string; state: string; incarnation: number }>(({ db }) =>
  db.selectFrom('nodes').select(['name', 'state', 'incarnation']).orderBy('incarnation'),
)

/** All standbys, by the id of the database and the slot. Every node reads them once a second. */
export const list = read('standbys.list', function* (args: object): Transaction<readonly PlacedStandby[]> {
  const rows = yield* all(placed, args)
  if (rows.length === 0) return []
  // The newest incarnation of a name comes last.
  const newest = new Map((yield* all(everyIncarnation, args)).map((each) => [each.name, each]))
  return rows.map((row) => {
    const home = newest.get(row.home ?? '')
    const own = { home_state: home?.state ?? null, home_incarnation: home?.incarnation ?? null }
    return { ...row, ...own, node_state: newest.get(row.node)?.state ?? null }
  })
})

/** The state of a standby as its home has seen it. */
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
      state: p.state,
      epoch: p.epoch,
      complete_until: p.complete_until,
      problem: p.problem,
      home_offset: p.home_offset,
      standby_offset: p.standby_offset,
      stand_life: null,
      stand_replid: null,
      stand_offset: null,
    })
    .where('database_id', '=', p.databaseId)
    .where('node', '=', p.node)
    .where('mode', '=', p.mode)
    .where('epoch', '<=', p.epoch),
)

/**
 * Stores what the home has seen. Ignores notes of an earlier epoch, of a standby that was replaced, and of a home that does
 * not know the mode yet.
 */
export const note = write('standbys.note', function* (args: { notes: readonly StandbyNote[] }): Transaction<void> {
  for (const one of args.notes) yield* change(setNote, one)
})

/**
 * Refuses to make a node with a standby the home of a database, where that would first delete the copy there.
 * @throws HomeportError `database_standby_there`.
 */
export function* refuseStandbyAt(databaseId: string, node: string): Transaction<void> {
  if (yield* standbyAt(databaseId, node)) throw new HomeportError('database_standby_there', { databaseId, node })
}

function* standbyAt(databaseId: string, node: string): Transaction<StandbyRow | undefined> {
  return (yield* all(ofDatabase, { databaseId })).find((row) => row.node === node)
}

/**
 * Lets a database move to a node. A standby that the home has placed there loses its node until the move has ended.
 * Afterwards the node that the database leaves keeps it.
 * @throws HomeportError `database_standby_there` for one that the operator has placed there.
 */
export function* vacateStandby(databaseId: string, { home, to }: { home: string; to: string }): Transaction<void> {
  const standby = yield* standbyAt(databaseId, to)
  if (!standby) return
  if (standby.placement !== 'auto') yield* refuseStandbyAt(databaseId, to)
  const { slot, epoch } = standby
  yield* change(setNode, { databaseId, slot, node: home, epoch })
}

/** The nodes that keep standbys of a database. */
export const nodesOf = read('standbys.nodesOf', function* (args: { databaseId: string }): Transaction<
  readonly string[]
> {
  return (yield* all(ofDatabase, args)).map(({ node }) => node)
})

/** A copy that a home asks a node for. */
export interface AskedCopy {
  readonly databaseId: string
  readonly home: string
  readonly node: string
}

const dueCopy = query<AskedCopy, { slot: number }>(({ db, p }) =>
  db
    .selectFrom('database_standbys')
    .innerJoin('databases', 'databases.database_id', 'database_standbys.database_id')
    .select('slot')
    .where('databases.database_id', '=', p.databaseId)
    .where('home', '=', p.home)
    .where('node', '=', p.node)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('database_moves')
            .select('move_id')
            .where('database_id', '=', p.databaseId)
            .where('source', '=', p.node)
            .where('state', '=', 'switched'),
        ),
      ),
    )
    .limit(1),
)

/**
 * Whether a node may begin the copy that a home asks for. Not when the standby or the home is another one by now. And not
 * while the node still has to set aside what it served itself: the end of a move removes the engine and the files.
 */
export const mayCopy = read('standbys.mayCopy', function* (args: AskedCopy): Transaction<boolean> {
  return (yield* first(dueCopy, args)) !== undefined
})

/** Deletes what is stored about the standbys of a database; the transaction that deletes the database calls this. */
export function* forgetStandbys(databaseId: string): Transaction<void> {
  yield* change(dropOf, { databaseId })
}
