/** Rows of nodes: one for each life of a process. Each change checks the state that it starts from. */
import type { Selectable } from 'kysely'
import { endConnectionsOf, usersApart } from '../../store/life.js'
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

/** Takes part: live, or draining. */
const TAKING_PART: NodesTable['state'][] = ['live', 'draining']

/** Those that take part. */
export const takingPart = query<object, NodeRow>(({ db }) =>
  db.selectFrom('nodes').selectAll().where('state', 'in', TAKING_PART).orderBy('incarnation'),
)

/** The last announcement; the lock makes versions visible in their order. */
export const lockAnnouncements = query<object, Selectable<LeasesTable>>(({ db, d }) =>
  d.forUpdate(db.selectFrom('leases').selectAll().where('name', '=', 'announcements')),
)

/** Until the end of the transaction that calls this, no node begins a life. */
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

/** What a node writes of itself when it starts. */
export type NewNode = Pick<NodeRow, 'name' | 'dir' | 'advertise' | 'version' | 'config'> & {
  /** The schemas that it works with. */
  readonly range: SchemaRange
  /** The region that it serves; NULL: all. */
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

/** The schema may have been changed since this node opened its store. */
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
 * Something is about to be stored that nodes of earlier generations would misread, although they work with the migration that
 * brought its columns. Answers the names of those that take part; without any, they are refused from this commit on. Call it
 * before other rows are locked.
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
  /** A node of a version that takes part cannot run beside this one. */
  | { readonly kind: 'apart'; readonly from: NodeRow; readonly isOlder: boolean }
  /** Another node has migrated the store, and this one does not work with it. */
  | { readonly kind: 'too old'; readonly number: number; readonly name: string }
  /** Others use the store as PostgreSQL users that this one's may not end, or the reverse. */
  | { readonly kind: 'users apart'; readonly users: string }

/**
 * Begins a life. An earlier life of the same data directory ends: who holds the lock of the directory knows that it is
 * over. The lock of the announcements lets one node register at a time.
 */
export const register = write(
  'nodes.register',
  function* (args: { node: NewNode; now: number }): Transaction<Registration> {
    const { node, now } = args
    const lease = yield* first(lockAnnouncements, {})
    const users = (yield* first(usersApart, {}))?.users ?? ''
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

/** Beats. False: this life was declared dead. */
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
 * Declares a node dead, unless it has beaten since. Returns whether it is dead by this call. Before the commit its
 * connections end: it may be awake again, and accept by what it knew before what it then commits.
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

/** From now on the node may own partitions. */
export const open = write(
  'nodes.open',
  function* (args: { incarnation: number }): Transaction<void> {
    yield* change(setOpen, args)
  },
  { isSingle: () => true },
)

/** From now on the node is given nothing. */
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
/** From now on the node is not the leader. */
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

/** Ends a life: whatever it owns is free. */
export const leave = write('nodes.leave', function* (args: { incarnation: number }): Transaction<void> {
  if ((yield* change(setLeft, args)) === 0) return
  yield* change(releasePartitions, args)
  yield* change(releaseLeases, args)
})

const stateOf = query<{ incarnation: number }, Pick<NodeRow, 'state'>>(({ db, p }) =>
  db.selectFrom('nodes').select('state').where('incarnation', '=', p.incarnation),
)

/** Whether a life may still act. */
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

/** Ended lives that own nothing are kept this long, for people who look; the last one of the home of databases for good. */
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
