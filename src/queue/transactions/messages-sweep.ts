import { sql } from 'kysely'
import { GREATEST_PRIORITY } from '../../contract/queue/priority.js'
import { encodeResult, read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, first, type Transaction } from '../../store/statement.js'
import {
  bodyColumns,
  type DuePlace,
  PENDING_COLUMNS,
  partitionColumn,
  type StoredPending,
  withIntactBodies,
} from './messages.js'
import {
  allOf,
  type Bounds,
  between,
  byNode,
  type DuePage,
  isOfAccountOrLane,
  MAX_SCANNED,
  ofOwn,
  pageEncoding,
  placeAhead,
} from './messages-due.js'

/**
 * Reads of the due sweep, which compares the pending messages of the store with those in memory. A page reads places
 * from the index alone, unless accounts or lanes are parked: then it also looks up the account and lane of each message.
 */

/** A page of the due order. */
export interface PlacesPage {
  readonly places: readonly DuePlace[]
  /** Up to which place the page was read. */
  readonly upTo: DuePlace
}

/** A range of the due order, without some accounts and lanes. */
export interface PlacesRange {
  readonly after: DuePlace
  readonly until: DuePlace
  readonly limit: number
  readonly exceptAccounts: readonly string[]
  readonly exceptLanes: readonly string[]
  /** Only messages of these partitions. Absent on a server that is alone: all messages. */
  readonly partitions?: readonly number[] | undefined
}

const placesOfAll = byNode<Bounds & { limit: number }, DuePlace>(({ db, p }, own) =>
  ofOwn(between(db.selectFrom('messages').select(['next_at as nextAt', 'seq']), p), own).limit(p.limit),
)

const placesOfSome = byNode<
  Bounds & { limit: number; exceptAccounts: readonly string[]; exceptLanes: readonly string[] },
  DuePlace
>(({ db, p, d }, own) =>
  ofOwn(between(db.selectFrom('messages').select(['next_at as nextAt', 'seq']), p), own)
    .where(sql<boolean>`not (${isOfAccountOrLane(d, p)})`)
    .limit(p.limit),
)

interface PackedPlaces {
  /** Time and number of each place, alternating. */
  readonly numbers: Float64Array
  readonly upTo: DuePlace
}

/** Packs places so that thousands of them cross threads as one block of memory. */
const placesEncoding = encodeResult(
  ({ places, upTo }: PlacesPage): PackedPlaces => {
    const numbers = new Float64Array(places.length * 2)
    for (const [index, { nextAt, seq }] of places.entries()) {
      numbers[index * 2] = nextAt
      numbers[index * 2 + 1] = seq
    }
    return { numbers, upTo }
  },
  ({ numbers, upTo }) => ({
    places: Array.from({ length: numbers.length / 2 }, (_, index) => ({
      nextAt: numbers[index * 2] ?? 0,
      seq: numbers[index * 2 + 1] ?? 0,
    })),
    upTo,
  }),
)

function* pageOf(range: PlacesRange): Transaction<PlacesPage> {
  const { after, limit, exceptAccounts, exceptLanes, partitions } = range
  const bounds = { nextAt: after.nextAt, seq: after.seq, untilAt: range.until.nextAt, untilSeq: range.until.seq }
  const isOfEverything = exceptAccounts.length + exceptLanes.length === 0
  const until =
    (isOfEverything && !partitions ? undefined : yield* first(placeAhead, { ...bounds, ahead: MAX_SCANNED })) ??
    range.until
  const within = { ...bounds, untilAt: until.nextAt, untilSeq: until.seq, limit }
  const places = isOfEverything
    ? yield* allOf(placesOfAll, within, partitions)
    : yield* allOf(placesOfSome, { ...within, exceptAccounts, exceptLanes }, partitions)
  return { places, upTo: (places.length < limit ? undefined : places.at(-1)) ?? until }
}

/** A page of pending messages that are due soon. */
export const places = read('messagesSweep.places', pageOf, { encoding: placesEncoding })

/** The same page as a batch of a long walk, with the lower priority of background reads. */
export const placesInTurn = read('messagesSweep.placesInTurn', pageOf, {
  turn: 'background',
  encoding: placesEncoding,
})

/** Which urgent messages to read. Times are Unix milliseconds. */
export interface UrgentRange extends Pick<PlacesRange, 'exceptAccounts' | 'exceptLanes' | 'partitions' | 'limit'> {
  /** Only messages with a place before this time that were created in the range below. */
  readonly dueBefore: number
  readonly createdAfter: number
  readonly createdUntil: number
}

const urgentPlaces = byNode<Bounds & Omit<UrgentRange, 'partitions' | 'dueBefore'> & { limit: number }, DuePlace>(
  ({ db, p, d }, own) =>
    ofOwn(between(db.selectFrom('messages').select(['next_at as nextAt', 'seq']), p), own)
      .where('created_at', '>', p.createdAfter)
      .where('created_at', '<=', p.createdUntil)
      .where(sql<boolean>`not (${isOfAccountOrLane(d, p)})`)
      .limit(p.limit),
)

/**
 * New messages that a priority has placed before those that have just become due (`priority.ts`). In a long backlog,
 * only its oldest part is searched; the comparison of everything finds the others.
 */
export const urgent = read('messagesSweep.urgent', function* (range: UrgentRange): Transaction<DuePlace[]> {
  const { partitions, dueBefore, ...about } = range
  const nextAt = range.createdAfter - GREATEST_PRIORITY * 1_000
  const bounds = { nextAt, seq: 0, untilAt: dueBefore, untilSeq: 0 }
  const until = yield* first(placeAhead, { ...bounds, ahead: MAX_SCANNED })
  const within = until ? { ...bounds, untilAt: until.nextAt, untilSeq: until.seq } : bounds
  return yield* allOf(urgentPlaces, { ...about, ...within }, partitions)
})

/** Which turns of queues to read. */
export interface TurnsRange {
  readonly dueBefore: number
  readonly limit: number
  readonly exceptAccounts: readonly string[]
  readonly exceptLanes: readonly string[]
  readonly partitions: readonly number[]
}

const placesOfTurns = query<TurnsRange, DuePlace>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['next_at as nextAt', 'seq'])
    .where('seq', 'in', db.selectFrom('queue_turns').select('message_seq'))
    .where('state', '=', sql.lit('pending'))
    .where('next_at', '<', p.dueBefore)
    .where(d.inNumbers('partition', p.partitions))
    .where(sql<boolean>`not (${isOfAccountOrLane(d, p)})`)
    .orderBy('seq')
    .limit(p.limit),
)

/**
 * Messages of queues that have their turn and were due long before. A message keeps its due time while it
 * waits for its turn. So if another node's hint about the turn is lost, the owner does not find the
 * message among those that have just become due.
 */
export const turns = read('messagesSweep.turns', function* (range: TurnsRange): Transaction<DuePlace[]> {
  return yield* all(placesOfTurns, range)
})

const rowsByNumber = query<{ seqs: readonly number[]; largestBody: number }, StoredPending>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(PENDING_COLUMNS)
    .select(partitionColumn(d))
    .select(bodyColumns(p.largestBody))
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('pending')),
)

/** The pending messages among these. Bodies larger than `largestBody` bytes are left out. */
export const rows = read(
  'messagesSweep.rows',
  function* (args: { seqs: readonly number[]; largestBody: number; upTo: DuePlace }): Transaction<DuePage> {
    const found = withIntactBodies(yield* all(rowsByNumber, args))
    const inDueOrder = found.sort((a, b) => a.next_at - b.next_at || a.seq - b.seq)
    return { rows: inDueOrder, upTo: args.upTo }
  },
  { encoding: pageEncoding },
)

const stillPending = query<{ seqs: readonly number[] }, { seq: number }>(({ db, p, d }) =>
  db.selectFrom('messages').select('seq').where(d.inNumbers('seq', p.seqs)).where('state', '=', sql.lit('pending')),
)

/** Numbers of the pending messages among these. */
export const pendingAmong = read(
  'messagesSweep.pendingAmong',
  function* (args: { seqs: readonly number[] }): Transaction<number[]> {
    return (yield* all(stillPending, args)).map(({ seq }) => seq)
  },
)
