/**
 * Moves of databases between nodes. Each transition is one transaction that checks the state it starts from, with the
 * row of the database locked first. `moves/index.ts` has the states.
 */
import { type NewAuditRow, recordAudit } from '../../accounts/transactions/accounts.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { DatabaseMovesTable } from '../../store/schema/index.js'
import { all, change, first, insertAll, type Transaction } from '../../store/statement.js'
import { rowToChange, setModifyingState } from './database-row.js'
import { followHome, forgetStandbys, newestIncarnation, takesPart, vacateStandby } from './standbys.js'

/** A move as it is stored. */
export type MoveRow = DatabaseMovesTable
/** The states of a move. */
export type MoveState = MoveRow['state']

const lockMove = query<{ moveId: string }, MoveRow>(({ db, p, d }) =>
  d.forUpdate(db.selectFrom('database_moves').selectAll().where('move_id', '=', p.moveId)),
)

const epochOf = query<{ databaseId: string }, { epoch: number }>(({ db, p }) =>
  db.selectFrom('database_epochs').select('epoch').where('database_id', '=', p.databaseId),
)

const ofDatabase = query<{ databaseId: string }, MoveRow>(({ db, p }) =>
  db.selectFrom('database_moves').selectAll().where('database_id', '=', p.databaseId),
)

const dropEnded = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('database_moves').where('database_id', '=', p.databaseId).where('state', 'in', ['done', 'failed']),
)

const setState = query<{ moveId: string; state: MoveState; problem: string | null; at: number | null }>(({ db, p }) =>
  db
    .updateTable('database_moves')
    .set({ state: p.state, problem: p.problem, ended_at: p.at })
    .where('move_id', '=', p.moveId),
)

const setHome = query<{ databaseId: string; home: string }>(({ db, p }) =>
  db.updateTable('databases').set({ home: p.home, modifying_state: '' }).where('database_id', '=', p.databaseId),
)

/** Forgets the epoch of a database. */
export const dropEpoch = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('database_epochs').where('database_id', '=', p.databaseId),
)

/** The `modifying_state` of a database that is being moved. The wire has no word of its own for it. */
const MOVING = 'updating_regions'

const isActive = ({ state }: MoveRow): boolean => state === 'asked' || state === 'copying'

/** A request to move a database. */
export interface RequestedMove {
  readonly moveId: string
  readonly databaseId: string
  readonly target: string
  readonly at: number
  readonly audit: NewAuditRow
}

/**
 * The active move of a database from this home. Ends moves from an earlier home that a standby or a recovery has replaced,
 * because nobody carries them out any more.
 */
export function* activeFrom(
  home: string,
  { databaseId, at }: Pick<RequestedMove, 'databaseId' | 'at'>,
): Transaction<MoveRow | undefined> {
  const active = (yield* all(ofDatabase, { databaseId })).filter(isActive)
  for (const { move_id: moveId, source, state } of active) {
    if (source === home) continue
    const ended = state === 'asked' ? 'failed' : 'aborted'
    yield* change(setState, { moveId, state: ended, problem: 'the database has another home', at })
  }
  return active.find(({ source }) => source === home)
}

/**
 * Stores that a database is to move. A repeated request finds the active move.
 * @throws HomeportError `database_not_found`, `database_without_home`, `database_busy`, `node_not_found`,
 * `node_not_running`, `database_is_there`, `database_standby_there`.
 */
export const ask = write('moves.ask', function* (args: RequestedMove): Transaction<MoveRow> {
  const { databaseId, target } = args
  const row = yield* first(rowToChange, { databaseId })
  if (!row || row.modifying_state === 'creating') throw new HomeportError('database_not_found', { databaseId })
  if (row.home === null) throw new HomeportError('database_without_home', { databaseId })
  const pending = yield* activeFrom(row.home, args)
  if (pending?.target === target) return pending
  if (pending) throw new HomeportError('database_busy', { modifyingState: MOVING })
  if (row.home === target) throw new HomeportError('database_is_there', { databaseId, node: target })
  yield* vacateStandby(databaseId, { home: row.home, to: target })
  const newest = yield* first(newestIncarnation, { name: target })
  if (!newest) throw new HomeportError('node_not_found', { name: target })
  if (newest.state !== 'live') throw new HomeportError('node_not_running', { name: target, state: newest.state })
  yield* change(dropEnded, { databaseId })
  const epoch = (yield* first(epochOf, { databaseId }))?.epoch ?? 1
  const { moveId: move_id, at: asked_at } = args
  const move: MoveRow = {
    move_id,
    database_id: databaseId,
    source: row.home,
    target,
    epoch,
    state: 'asked',
    problem: null,
    asked_at,
    ended_at: null,
  }
  yield* insertAll('database_moves', [move])
  yield* recordAudit(args.audit)
  return move
})

/** asked → copying. `busy`: another change of the database is active. `void`: the move is over. */
export type Begun = 'begun' | 'busy' | 'void'

/** Begins a move at the home of the database. */
export const begin = write('moves.begin', function* (args: { moveId: string; databaseId: string }): Transaction<Begun> {
  const row = yield* first(rowToChange, args)
  const move = yield* first(lockMove, args)
  if (move?.state !== 'asked') return 'void'
  if (!row || row.home !== move.source) {
    yield* change(setState, {
      moveId: args.moveId,
      state: 'failed',
      problem: 'the database is gone',
      at: move.asked_at,
    })
    return 'void'
  }
  if (row.modifying_state !== '') return 'busy'
  yield* change(setModifyingState, { databaseId: args.databaseId, modifyingState: MOVING })
  yield* change(setState, { moveId: args.moveId, state: 'copying', problem: null, at: null })
  return 'begun'
})

/**
 * copying → switched: the target is the home from now on, with the next epoch. The only step of a move that changes the
 * home. Returns false when the move is not `copying` any more, or the target was declared dead; then nothing has changed.
 */
export const swap = write('moves.swap', function* (args: { moveId: string; databaseId: string }): Transaction<boolean> {
  const { databaseId, moveId } = args
  const row = yield* first(rowToChange, { databaseId })
  const move = yield* first(lockMove, { moveId })
  const epoch = (yield* first(epochOf, { databaseId }))?.epoch ?? 1
  if (move?.state !== 'copying' || row?.home !== move.source || row.modifying_state !== MOVING) return false
  if (epoch !== move.epoch || !(yield* takesPart(move.target))) return false
  yield* change(dropEpoch, { databaseId })
  yield* insertAll('database_epochs', [{ database_id: databaseId, epoch: epoch + 1 }])
  yield* change(setHome, { databaseId, home: move.target })
  yield* followHome({ databaseId, from: move.source, to: move.target })
  yield* change(setState, { moveId, state: 'switched', problem: null, at: null })
  return true
})

/** asked → failed, copying → aborted. Returns the state of the move then. */
export const abort = write(
  'moves.abort',
  function* (args: {
    moveId: string
    databaseId: string
    problem: string
    at: number
  }): Transaction<MoveState | undefined> {
    const { moveId, databaseId, problem, at } = args
    const row = yield* first(rowToChange, { databaseId })
    const move = yield* first(lockMove, { moveId })
    if (!move || !isActive(move)) return move?.state
    const state = move.state === 'asked' ? 'failed' : 'aborted'
    yield* change(setState, { moveId, state, problem, at })
    const isModifying = row?.home === move.source && row.modifying_state === MOVING
    if (state === 'aborted' && isModifying) yield* change(setModifyingState, { databaseId, modifyingState: '' })
    return state
  },
)

/** switched → done when the source has set its files aside, aborted → failed when the target has deleted its copy. */
export const settle = write('moves.settle', function* (args: { moveId: string; at: number }): Transaction<void> {
  const move = yield* first(lockMove, args)
  if (move?.state === 'switched') yield* change(setState, { ...args, state: 'done', problem: null })
  if (move?.state === 'aborted') yield* change(setState, { ...args, state: 'failed', problem: move.problem })
})

/** A move by its id; undefined when there is none. */
export const find = read('moves.find', function* (args: { moveId: string }): Transaction<MoveRow | undefined> {
  return yield* first(oneMove, args)
})

const oneMove = query<{ moveId: string }, MoveRow>(({ db, p }) =>
  db.selectFrom('database_moves').selectAll().where('move_id', '=', p.moveId),
)

const openOf = query<{ node: string }, MoveRow>(({ db, p }) =>
  db
    .selectFrom('database_moves')
    .selectAll()
    .where((e) => e.or([e('source', '=', p.node), e('target', '=', p.node)]))
    .where('state', 'in', ['asked', 'copying', 'switched', 'aborted'])
    .orderBy('asked_at')
    .orderBy('move_id'),
)

/** The moves from and to a node for which something is left to do. */
export const open = read('moves.open', function* (args: { node: string }): Transaction<readonly MoveRow[]> {
  return yield* all(openOf, args)
})

const everyMove = query<object, MoveRow & { name: string }>(({ db }) =>
  db
    .selectFrom('database_moves')
    .innerJoin('databases', 'databases.database_id', 'database_moves.database_id')
    .selectAll('database_moves')
    .select('databases.name')
    .orderBy('asked_at', 'desc')
    .orderBy('move_id', 'desc')
    .limit(1_000),
)

/** All moves, the newest first. */
export const list = read('moves.list', function* (args: object): Transaction<readonly (MoveRow & { name: string })[]> {
  return yield* all(everyMove, args)
})

const dropAll = query<{ databaseId: string }>(({ db, p }) =>
  db.deleteFrom('database_moves').where('database_id', '=', p.databaseId),
)

/** Deletes what is stored about the homes of a database; the transaction that deletes the database calls this. */
export function* forgetMoves(databaseId: string): Transaction<void> {
  yield* forgetStandbys(databaseId)
  yield* change(dropAll, { databaseId })
  yield* change(dropEpoch, { databaseId })
}
