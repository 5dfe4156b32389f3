/** Rows of nodes: one for each incarnation of a process. Each change checks the state that it starts from. */
import type { Selectable } from 'kysely'
import { endConnectionsOf, unterminableUsers } from '../../store/incarnation.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import {
  canRunBeside,
  FIRST_RANGE,
  type LeasesTable,
  type NodesTable,
  type SchemaRange,
} from '../../store/schema/cluster.js'
import { all, change, first, type Transaction } from '../../store/statement.js'
import { differences } from '../agreement.js'

/** A node that takes part, as it is stored. */
export type NodeRow = Selectable<NodesTable>

/** The states in which a node takes part. */
const TAKING_PART: NodesTable['state'][] = ['live', 'draining']

/** The nodes that take part. */
export const takingPart = query<object, NodeRow>(({ db }) =>
  db.selectFrom('nodes').selectAll().where('state', 'in', TAKING_PART).orderBy('incarnation'),
)

/** Locks and returns the version of the last announcement. The lock makes versions visible in order. */
export const lockAnnouncements = query<object, Selectable<LeasesTable>>(({ db, d }) =>
  d.forUpdate(db.selectFrom('leases').selectAll().where('name', '=', 'announcements')),
)

/** Prevents nodes from registering until the end of the calling transaction. */
export function* holdRegistrations(): Transaction<void> {
  yield* first(lockAnnouncements, {})
}

const retire = query<{ dir: string }, { incarnation: number }>(({ db, p }) =>
  db
    .updateTable('nodes')
    .set({ state: 'dead' })
    .where('dir', '=', p.dir)
    .where('state', 'in', TAKING_PART)
    .returning('incarnation'),
)

/** The properties that a node stores when it starts. */
export type NewNode = Pick<NodeRow, 'name' | 'dir' | 'advertise' | 'version' | 'config'> & {
  /** The schemas that the node works with. */
  readonly range: SchemaRange
  /** The region that the node serves; NULL: all. */
  readonly region: string | null
}

const insertNode = query<Omit<NewNode, 'range' | 'region'> & { seen: number; now: number }, { incarnation: number }>(
  ({ db, p }) =>
    db
      .insertInto('nodes')
      .values({
        name: p.name,
        dir: p.dir,
        advertise: p.advertise,
        version: p.version,
        config: p.config,
        state: 'live',
        is_open: 0,
        beat: 0,
        seen: p.seen,
        started_at: p.now,
        beat_at: p.now,
      })
      .returning('incarnation'),
)

const insertRange = query<SchemaRange & { incarnation: number }>(({ db, p }) =>
  db.insertInto('node_generations').values({
    incarnation: p.incarnation,
    generation: p.generation,
    schema_from: p.schema_from,
    schema_to: p.schema_to,
  }),
)

const insertRegion = query<{ incarnation: number; region: string | null }>(({ db, p }) =>
  db.insertInto('node_regions').values({ incarnation: p.incarnation, region: p.region }),
)

const rangesOfLive = query<object, SchemaRange & { incarnation: number }>(({ db }) =>
  db
    .selectFrom('node_generations')
    .innerJoin('nodes', 'nodes.incarnation', 'node_generations.incarnation')
    .select(['nodes.incarnation', 'generation', 'schema_from', 'schema_to'])
    .where('nodes.state', 'in', TAKING_PART),
)

/** Migrations that a node of this generation does not work with. They may have run since the node opened its store. */
const tooNew = query<{ generation: number }, { number: number; name: string }>(({ db, p }) =>
  db
    .selectFrom('schema_migrations')
    .select(['number', 'name'])
    .where('breaking', '=', 1)
    .where('works_from', '>', p.generation)
    .orderBy('number'),
)

const setNeeded = query<{ migration: string; generation: number }>(({ db, p }) =>
  db
    .updateTable('schema_migrations')
    .set({ breaking: 1, works_from: p.generation })
    .where('name', '=', p.migration)
    .where('breaking', '=', 0),
)

/**
 * Call it before something is stored that nodes of earlier generations would misread, although they work with the
 * migration that added its columns. Returns the names of such nodes that take part. If there are none, such nodes are
 * refused from this commit on. The calling transaction must not have locked other rows before.
 */
export function* requireGeneration(needs: { migration: string; generation: number }): Transaction<readonly string[]> {
  yield* holdRegistrations()
  const known = new Map((yield* all(rangesOfLive, {})).map((each) => [each.incarnation, each.generation]))
  const old = (yield* all(takingPart, {})).filter(
    ({ incarnation }) => (known.get(incarnation) ?? FIRST_RANGE.generation) < needs.generation,
  )
  if (old.length === 0) yield* change(setNeeded, needs)
  return old.map(({ name }) => name)
}

/** The result of a registration. */
export type Registration =
  | { readonly kind: 'registered'; readonly incarnation: number; readonly seen: number }
  /** A node of this name takes part, with another data directory. */
  | { readonly kind: 'taken'; readonly by: NodeRow }
  /** The configuration of a node that takes part differs. */
  | { readonly kind: 'differs'; readonly from: NodeRow }
  /** The version of a node that takes part cannot run beside this one. */
  | { readonly kind: 'apart'; readonly from: NodeRow; readonly isOlder: boolean }
  /** Another node has migrated the store, and this one does not work with it. */
  | { readonly kind: 'too old'; readonly number: number; readonly name: string }
  /** Other nodes use PostgreSQL users whose connections this node's user may not end, or the reverse. */
  | { readonly kind: 'users apart'; readonly users: string }

/**
 * Begins an incarnation. It ends an earlier incarnation of the same data directory: this process holds the lock of the
 * directory, so the earlier one is over. The lock of the announcements lets one node register at a time.
 */
export const register = write(
  'nodes.register',
  function* (args: { node: NewNode; now: number }): Transaction<Registration> {
    const { node, now } = args
    const lease = yield* first(lockAnnouncements, {})
    const users = (yield* first(unterminableUsers, {}))?.users ?? ''
    if (users !== '') return { kind: 'users apart', users }
    for (const { incarnation } of yield* all(retire, { dir: node.dir })) yield* endConnectionsOf(incarnation)
    const others = yield* all(takingPart, {})
    const same = others.find(({ name }) => name === node.name)
    if (same) return { kind: 'taken', by: same }
    const migration = yield* first(tooNew, { generation: node.range.generation })
    if (migration) return { kind: 'too old', ...migration }
    const apart = yield* findApart(node.range, others)
    if (apart) return apart
    const differing = others.find(({ config }) => differences(node.config, config).length > 0)
    if (differing) return { kind: 'differs', from: differing }
    const seen = lease?.epoch ?? 0
    const { name, dir, advertise, version, config } = node
    const born = yield* first(insertNode, { name, dir, advertise, version, config, seen, now })
    const incarnation = born?.incarnation ?? 0
    yield* change(insertRange, { ...node.range, incarnation })
    yield* change(insertRegion, { incarnation, region: node.region })
    return { kind: 'registered', incarnation, seen }
  },
)

function* findApart(range: SchemaRange, others: readonly NodeRow[]): Transaction<Registration | undefined> {
  const known = new Map((yield* all(rangesOfLive, {})).map((each) => [each.incarnation, each]))
  const rangeOf = ({ incarnation }: NodeRow): SchemaRange => known.get(incarnation) ?? FIRST_RANGE
  const from = others.find((other) => !canRunBeside(range, rangeOf(other)))
  return from && { kind: 'apart', from, isOlder: rangeOf(from).generation > range.generation }
}

const beatOnce = query<{ incarnation: number; seen: number; now: number }>(({ db, p }) =>
  db
    .updateTable('nodes')
    .set((row) => ({ beat: row('beat', '+', 1), seen: p.seen, beat_at: p.now }))
    .where('incarnation', '=', p.incarnation)
    .where('state', 'in', TAKING_PART),
)

/** Stores a beat. Returns false if this incarnation was declared dead. */
export const beat = write(
  'nodes.beat',
  function* (args: { incarnation: number; seen: number; now: number }): Transaction<boolean> {
    return (yield* change(beatOnce, args)) === 1
  },
  { isSingle: () => true },
)

const bury = query<{ incarnation: number; beat: number }>(({ db, p }) =>
  db
    .updateTable('nodes')
    .set({ state: 'dead' })
    .where('incarnation', '=', p.incarnation)
    .where('beat', '=', p.beat)
    .where('state', 'in', TAKING_PART),
)

/**
 * Declares a node dead, unless it has beaten since. Returns whether this call has declared it dead. It ends the node's
 * connections before the commit: a node that is awake again could otherwise commit requests based on outdated state.
 */
export const declareDead = write(
  'nodes.declareDead',
  function* (args: { incarnation: number; beat: number }): Transaction<boolean> {
    if ((yield* change(bury, args)) === 0) return false
    yield* endConnectionsOf(args.incarnation)
    return true
  },
)

const setOpen = query<{ incarnation: number }>(({ db, p }) =>
  db
    .updateTable('nodes')
    .set({ is_open: 1 })
    .where('incarnation', '=', p.incarnation)
    .where('state', 'in', TAKING_PART),
)

/** Opens a node: from now on it may own partitions. */
export const open = write(
  'nodes.open',
  function* (args: { incarnation: number }): Transaction<void> {
    yield* change(setOpen, args)
  },
  { isSingle: () => true },
)

/** Sets a node to draining: from now on it is given no partitions. */
export const setDraining = query<{ incarnation: number }>(({ db, p }) =>
  db
    .updateTable('nodes')
    .set({ state: 'draining' })
    .where('incarnation', '=', p.incarnation)
    .where('state', '=', 'live'),
)

const releasePartitions = query<{ incarnation: number }>(({ db, p }) =>
  db
    .updateTable('partitions')
    .set((row) => ({ owner: null, epoch: row('epoch', '+', 1), notes: null }))
    .where('owner', '=', p.incarnation),
)
/** Releases the leases of a node: from now on it is not the leader. */
export const releaseLeases = query<{ incarnation: number }>(({ db, p }) =>
  db
    .updateTable('leases')
    .set((row) => ({ owner: null, epoch: row('epoch', '+', 1) }))
    .where('owner', '=', p.incarnation),
)
const setLeft = query<{ incarnation: number }>(({ db, p }) =>
  db
    .updateTable('nodes')
    .set({ state: 'left' })
    .where('incarnation', '=', p.incarnation)
    .where('state', 'in', TAKING_PART),
)

/** Ends an incarnation and frees everything that it owns. */
export const leave = write('nodes.leave', function* (args: { incarnation: number }): Transaction<void> {
  if ((yield* change(setLeft, args)) === 0) return
  yield* change(releasePartitions, args)
  yield* change(releaseLeases, args)
})

const stateOf = query<{ incarnation: number }, Pick<NodeRow, 'state'>>(({ db, p }) =>
  db.selectFrom('nodes').select('state').where('incarnation', '=', p.incarnation),
)

/** Whether an incarnation may still act. */
export const isLive = read(
  'nodes.isLive',
  function* (args: { incarnation: number }): Transaction<boolean> {
    const state = (yield* first(stateOf, args))?.state
    return state !== undefined && TAKING_PART.includes(state)
  },
  { isSingle: () => true },
)

/** The nodes that take part. */
export const list = read(
  'nodes.list',
  function* (_: object): Transaction<NodeRow[]> {
    return yield* all(takingPart, {})
  },
  { isSingle: () => true },
)

/**
 * Ended incarnations that own nothing are kept this long, so that the operator can see them. The last incarnation of a node
 * that is the home of databases is kept for good.
 */
const KEPT_MS = 7 * 86_400_000

const dropEnded = query<{ before: number }>(({ db, p }) =>
  db
    .deleteFrom('nodes')
    .where('state', 'in', ['dead', 'left'])
    .where('beat_at', '<', p.before)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('partitions').select('partition').whereRef('partitions.owner', '=', 'nodes.incarnation'))),
    )
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('leases').select('leases.name').whereRef('leases.owner', '=', 'nodes.incarnation'))),
    )
    .where(({ or, not, exists, selectFrom }) =>
      or([
        exists(
          selectFrom('nodes as later')
            .select('later.incarnation')
            .whereRef('later.name', '=', 'nodes.name')
            .whereRef('later.incarnation', '>', 'nodes.incarnation'),
        ),
        not(exists(selectFrom('databases').select('home').whereRef('databases.home', '=', 'nodes.name'))),
      ]),
    ),
)

const dropRanges = query<object>(({ db }) =>
  db.deleteFrom('node_generations').where('incarnation', 'not in', db.selectFrom('nodes').select('incarnation')),
)

const dropRegions = query<object>(({ db }) =>
  db.deleteFrom('node_regions').where('incarnation', 'not in', db.selectFrom('nodes').select('incarnation')),
)

/** Deletes the rows of lives that ended long ago. */
export const dropOld = write('nodes.dropOld', function* (args: { now: number }): Transaction<number> {
  const dropped = yield* change(dropEnded, { before: args.now - KEPT_MS })
  if (dropped === 0) return 0
  yield* change(dropRanges, {})
  yield* change(dropRegions, {})
  return dropped
})
