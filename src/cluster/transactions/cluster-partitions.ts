/**
 * Reads and changes the owners of partitions and the leader. Each change of an
 * owner checks the epoch that it starts from.
 */
import type { Selectable } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { AnnouncementsTable, PartitionsTable } from '../../store/schema/cluster.js'
import { type Ask, all, askAll, askChange, atOnce, change, first, type Transaction } from '../../store/statement.js'
import { type NodeRow, releaseLeases, setDraining, takingPart } from './cluster-nodes.js'

/** A partition without the notes of its previous owner. */
export type PartitionRow = Pick<Selectable<PartitionsTable>, 'partition' | 'owner' | 'epoch'>

const everyPartition = query<object, PartitionRow>(({ db }) =>
  db.selectFrom('partitions').select(['partition', 'owner', 'epoch']).orderBy('partition'),
)
const leaderRow = query<object, { owner: number | null }>(({ db }) =>
  db.selectFrom('leases').select('owner').where('name', '=', 'leader'),
)
const announcedSince = query<{ seen: number }, Selectable<AnnouncementsTable>>(({ db, p }) =>
  db.selectFrom('announcements').selectAll().where('version', '>', p.seen).orderBy('version'),
)

/** The rows that one look reads, in one snapshot. */
export interface Seen {
  /** The nodes that take part. */
  readonly nodes: readonly NodeRow[]
  readonly partitions: readonly PartitionRow[]
  readonly leader: number | null
  /** In the order of their versions. */
  readonly announcements: readonly Selectable<AnnouncementsTable>[]
}

/** Looks at all rows of the cluster, and at the announcements after a version. */
export const look = read('cluster.look', function* (args: { seen: number }): Transaction<Seen> {
  const [nodes, partitions, leases, announcements] = yield* atOnce(
    [askAll(takingPart, {}), askAll(everyPartition, {}), askAll(leaderRow, {}), askAll(announcedSince, args)],
    'last',
  )
  return { nodes, partitions, leader: leases[0]?.owner ?? null, announcements }
})

const notesIn = query<{ partitions: number[] }, Pick<Selectable<PartitionsTable>, 'partition' | 'epoch' | 'notes'>>(
  ({ db, p, d }) =>
    db.selectFrom('partitions').select(['partition', 'epoch', 'notes']).where(d.inNumbers('partition', p.partitions)),
)

/** Reads the notes that previous owners have left. */
export const notes = read(
  'partitions.notes',
  function* (args: {
    partitions: number[]
  }): Transaction<Pick<Selectable<PartitionsTable>, 'partition' | 'epoch' | 'notes'>[]> {
    return yield* all(notesIn, args)
  },
  { isSingle: () => true },
)

/**
 * Locks a node if it may take something, so that it cannot be declared dead meanwhile. A
 * draining node may while no live node can.
 */
const lockTaker = query<{ incarnation: number }, { incarnation: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('nodes')
      .select('incarnation')
      .where('incarnation', '=', p.incarnation)
      .where(({ or, and, eb, not, exists, selectFrom }) =>
        or([
          eb('state', '=', 'live'),
          and([
            eb('state', '=', 'draining'),
            not(
              exists(
                selectFrom('nodes as other')
                  .select('other.incarnation')
                  .where('other.state', '=', 'live')
                  .where('other.is_open', '=', 1),
              ),
            ),
          ]),
        ]),
      ),
  ),
)

/**
 * Locks free partitions and skips those that another taker has locked. Every owner has a row in `nodes`, because lives are
 * deleted only when they own nothing.
 */
const lockFree = query<{ most: number }, PartitionRow>(({ db, p, d }) =>
  d.forUpdateSkipLocked(
    db
      .selectFrom('partitions')
      .select(['partition', 'owner', 'epoch'])
      .where(({ or, eb }) =>
        or([
          eb('owner', 'is', null),
          eb('owner', 'in', eb.selectFrom('nodes').select('incarnation').where('state', 'in', ['dead', 'left'])),
        ]),
      )
      .orderBy('partition')
      .limit(p.most),
  ),
)
const setOwner = query<{ partitions: number[]; incarnation: number }>(({ db, p, d }) =>
  db
    .updateTable('partitions')
    .set((row) => ({ owner: p.incarnation, epoch: row('epoch', '+', 1), notes: null }))
    .where(d.inNumbers('partition', p.partitions)),
)

/** Takes free partitions: those without an owner that takes part. Returns the taken ones with their new epochs. */
export const take = write('partitions.take', function* (args: { incarnation: number; most: number }): Transaction<
  PartitionRow[]
> {
  const { incarnation, most } = args
  if (!(yield* first(lockTaker, { incarnation }))) return []
  const free = yield* all(lockFree, { most })
  if (free.length === 0) return []
  yield* change(setOwner, { partitions: free.map(({ partition }) => partition), incarnation })
  return free.map(({ partition, epoch }) => ({ partition, owner: incarnation, epoch: epoch + 1 }))
})

/** A partition that its owner gives away. */
export interface Gift {
  readonly partition: number
  /** The epoch in which the giver owns it. */
  readonly epoch: number
  readonly to: number
  /** JSON. */
  readonly notes: string | null
}

interface GiftParams extends Gift {
  from: number
}

const giveOne = query<GiftParams>(({ db, p }) =>
  db
    .updateTable('partitions')
    .set((row) => ({ owner: p.to, epoch: row('epoch', '+', 1), notes: p.notes }))
    .where('partition', '=', p.partition)
    .where('owner', '=', p.from)
    .where('epoch', '=', p.epoch)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('nodes')
          .select('incarnation')
          .where('incarnation', '=', p.to)
          .where(({ or, and, eb }) =>
            or([
              and([eb('state', '=', 'live'), eb('is_open', '=', 1)]),
              // A node that drains keeps what it could not give away.
              and([eb('state', '=', 'draining'), eb('incarnation', '=', p.from)]),
            ]),
          ),
      ),
    ),
)

const takeLease = query<{ incarnation: number }>(({ db, p }) =>
  db
    .updateTable('leases')
    .set((row) => ({ owner: p.incarnation, epoch: row('epoch', '+', 1) }))
    .where('name', '=', 'leader')
    .where(({ or, eb }) =>
      or([
        eb('owner', 'is', null),
        eb('owner', 'in', eb.selectFrom('nodes').select('incarnation').where('state', 'in', ['dead', 'left'])),
      ]),
    ),
)

/** Becomes the leader, if no node that takes part is the leader. */
export const lead = write('leases.lead', function* (args: { incarnation: number }): Transaction<boolean> {
  if (!(yield* first(lockTaker, args))) return false
  return (yield* change(takeLease, args)) === 1
})

/**
 * The state of the giver afterwards. `owner`: as before. `resigned`: no longer the leader. `draining`: no longer the leader,
 * and given no partitions.
 */
export type GiverState = 'owner' | 'resigned' | 'draining'

interface GiveParams {
  readonly from: number
  readonly gifts: readonly Gift[]
  readonly becomes: GiverState
}

/** The statements by which the giver gives up its other duties. */
function dutiesOf({ from: incarnation, becomes }: GiveParams): readonly Ask<number>[] {
  if (becomes === 'owner') return []
  const leader = askChange(releaseLeases, { incarnation })
  return becomes === 'draining' ? [askChange(setDraining, { incarnation }), leader] : [leader]
}

/** Gives partitions to live nodes, or to the giver itself in a new epoch. Returns the partitions whose epoch has changed. */
export const give = write('partitions.give', function* (args: GiveParams): Transaction<number[]> {
  const { from, gifts } = args
  const duties = dutiesOf(args)
  const counts = yield* atOnce([...duties, ...gifts.map((gift) => askChange(giveOne, { ...gift, from }))], 'last')
  return gifts.filter((_, index) => counts[duties.length + index] === 1).map(({ partition }) => partition)
})
