import { HomeportError } from '../../contract/errors/errors.js'
import { read, write } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { all, change, only, type Transaction } from '../../store/statement.js'

/** A node as the operator sees it. */
export interface ListedNode {
  readonly incarnation: number
  readonly name: string
  readonly state: 'live' | 'draining' | 'dead' | 'left'
  readonly advertise: string
  readonly version: string
  readonly started_at: number
  readonly partitions: number
  readonly leader: number
  readonly region: string | null
  /** Databases whose home it is. */
  readonly databases: number
}

/** The newest incarnation of each node. */
const everyNode = query<object, ListedNode>(({ db }) =>
  db
    .selectFrom('nodes')
    .select(['incarnation', 'name', 'state', 'advertise', 'version', 'started_at'])
    .select((q) => [
      q
        .selectFrom('partitions')
        .select((p) => p.fn.countAll<number>().as('count'))
        .whereRef('partitions.owner', '=', 'nodes.incarnation')
        .as('partitions'),
      q
        .selectFrom('leases')
        .select((p) => p.fn.countAll<number>().as('count'))
        .whereRef('leases.owner', '=', 'nodes.incarnation')
        .where('leases.name', '=', 'leader')
        .as('leader'),
      q
        .selectFrom('databases')
        .select((p) => p.fn.countAll<number>().as('count'))
        .whereRef('databases.home', '=', 'nodes.name')
        .as('databases'),
      q
        .selectFrom('node_regions')
        .select('region')
        .whereRef('node_regions.incarnation', '=', 'nodes.incarnation')
        .as('region'),
    ])
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('nodes as later')
            .select('later.incarnation')
            .whereRef('later.name', '=', 'nodes.name')
            .whereRef('later.incarnation', '>', 'nodes.incarnation'),
        ),
      ),
    )
    .orderBy('name')
    .$narrowType<{ partitions: number; leader: number; databases: number }>(),
)

/** All nodes, ordered by name, each with its newest incarnation. */
export const list = read('nodesAdmin.list', function* (args: object): Transaction<ListedNode[]> {
  return yield* all(everyNode, args)
})

const newest = query<{ name: string }, Pick<ListedNode, 'incarnation' | 'state'>>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('nodes')
      .select(['incarnation', 'state'])
      .where('name', '=', p.name)
      .orderBy('incarnation', 'desc')
      .limit(1),
  ),
)

const setState = query<{ incarnation: number; state: 'live' | 'draining' }>(({ db, p }) =>
  db.updateTable('nodes').set({ state: p.state }).where('incarnation', '=', p.incarnation),
)

/** The lives of a node up to this incarnation. A newer one may begin meanwhile. */
interface EndedLives {
  readonly name: string
  readonly incarnation: number
}

const livesOf = ({ db, p }: Pick<Building<EndedLives>, 'db' | 'p'>) =>
  db.selectFrom('nodes').select('incarnation').where('name', '=', p.name).where('incarnation', '<=', p.incarnation)

const removeAll = query<EndedLives>(({ db, p }) =>
  db.deleteFrom('nodes').where('name', '=', p.name).where('incarnation', '<=', p.incarnation),
)

/** Frees the partitions that no node has taken yet: once the owner's row is deleted, no node would take them. */
const freePartitions = query<EndedLives>(({ db, p }) =>
  db
    .updateTable('partitions')
    .set((row) => ({ owner: null, epoch: row('epoch', '+', 1), notes: null }))
    .where('owner', 'in', livesOf({ db, p })),
)

const freeLeases = query<EndedLives>(({ db, p }) =>
  db
    .updateTable('leases')
    .set((row) => ({ owner: null, epoch: row('epoch', '+', 1) }))
    .where('owner', 'in', livesOf({ db, p })),
)

const databasesOf = query<{ name: string }, { databases: number }>(({ db, p }) =>
  db
    .selectFrom('databases')
    .select((q) => q.fn.countAll<number>().as('databases'))
    .where('home', '=', p.name),
)

/** Ends the moving state of databases that were moving to the node. Their home will find no move that it could end. */
const endMoving = query<{ name: string }>(({ db, p }) =>
  db
    .updateTable('databases')
    .set({ modifying_state: '' })
    .where('modifying_state', '=', 'updating_regions')
    .where(
      'database_id',
      'in',
      db.selectFrom('database_moves').select('database_id').where('target', '=', p.name).where('state', '=', 'copying'),
    ),
)

/** Deletes the moves from or to the node, which can no longer be completed. */
const dropMoves = query<{ name: string }>(({ db, p }) =>
  db.deleteFrom('database_moves').where((e) => e.or([e('source', '=', p.name), e('target', '=', p.name)])),
)

const dropStandbys = query<{ name: string }>(({ db, p }) =>
  db.deleteFrom('database_standbys').where('node', '=', p.name).where('placement', '=', 'named'),
)

/** Resets the standbys on the node. The home of each database chooses another node when there is one. */
const unplaceStandbys = query<{ name: string }>(({ db, p }) =>
  db
    .updateTable('database_standbys')
    .set((e) => ({
      node: e
        .selectFrom('databases')
        .select((q) => q.fn.coalesce('databases.home', 'database_standbys.node').as('home'))
        .whereRef('databases.database_id', '=', 'database_standbys.database_id'),
      state: 'asked',
      complete_until: null,
      home_offset: null,
      standby_offset: null,
      problem: null,
      stand_life: null,
      stand_replid: null,
      stand_offset: null,
    }))
    .where('node', '=', p.name),
)

function* nodeNamed(name: string): Transaction<Pick<ListedNode, 'incarnation' | 'state'>> {
  const [found] = yield* all(newest, { name })
  if (!found) throw new HomeportError('node_not_found', { name })
  return found
}

const isRunning = (state: ListedNode['state']): boolean => state === 'live' || state === 'draining'

/**
 * Sets whether a running node drains. The node notices at its next look.
 * @throws HomeportError `node_not_found`, `node_not_running`.
 */
export const setNodeState = write(
  'nodesAdmin.steer',
  function* (args: { name: string; state: 'live' | 'draining' }): Transaction<void> {
    const { incarnation, state } = yield* nodeNamed(args.name)
    if (!isRunning(state)) throw new HomeportError('node_not_running', { name: args.name, state })
    yield* change(setState, { incarnation, state: args.state })
  },
)

/**
 * Forgets a node that is gone.
 * @throws HomeportError `node_not_found`, `node_running`, `node_has_databases`.
 */
export const remove = write('nodesAdmin.remove', function* (args: { name: string }): Transaction<void> {
  yield* forgetNode(args.name)
  const { databases } = yield* only(databasesOf, args)
  if (databases > 0) throw new HomeportError('node_has_databases', { name: args.name, databases })
})

/** Like `remove`, within another transaction, and also for a node that is the home of databases. */
export function* forgetNode(name: string): Transaction<void> {
  const args = { name }
  const { state, incarnation } = yield* nodeNamed(name)
  if (isRunning(state)) throw new HomeportError('node_running', args)
  yield* change(endMoving, args)
  yield* change(dropMoves, args)
  yield* change(dropStandbys, args)
  yield* change(unplaceStandbys, args)
  const lives = { ...args, incarnation }
  yield* change(freePartitions, lives)
  yield* change(freeLeases, lives)
  yield* change(removeAll, lives)
}
