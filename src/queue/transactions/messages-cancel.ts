import { type RawBuilder, sql } from 'kysely'
import { encodeResult, read, write } from '../../store/operation.js'
import { queriesByShape, query } from '../../store/query.js'
import { all, first, type Transaction } from '../../store/statement.js'
import type { DuePlace, PendingRow } from './messages.js'
import {
  type FilterParams,
  type FilterShape,
  filterParams,
  type MessageFilter,
  passesShape,
  shapeOf,
} from './messages-filter.js'
import { endTurns } from './queue-turns.js'

/**
 * A bulk cancel selects messages with reads, page by page, and cancels them by number. A filter that few messages pass
 * makes the search long, and a long search must not block other writes.
 */

/** Which pending messages to select. */
export interface PendingSelector {
  readonly accountId: string
  readonly kind: string
  /** `held`: messages that wait for their turn in a queue. */
  readonly state: 'pending' | 'held'
  /** With ids, only those messages. Dates apply to the creation time. */
  readonly filter: MessageFilter
  /** Only messages created up to this time, so that the set does not grow meanwhile. */
  readonly createdUpTo: number
  /** The page begins after this place in due order. */
  readonly after: DuePlace
  readonly limit: number
}

/** The first place in due order. */
export const FIRST_DUE: DuePlace = { nextAt: Number.MIN_SAFE_INTEGER, seq: 0 }

/** Rows scanned in one read, even if few of them match, so that other reads do not wait long. */
const MAX_SCANNED = 4_000

/** The last place in due order. */
const LAST_DUE: DuePlace = { nextAt: Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER }

interface SelectQuery extends FilterParams {
  accountId: string
  kind: string
  state: 'pending' | 'held'
  createdUpTo: number
  nextAt: number
  seq: number
  limit: number
  /** Set for a walk over one flow-control key or one queue. */
  flowKey: string | undefined
  queue: string | undefined
}
type BoundedQuery = SelectQuery & { untilAt: number; untilSeq: number }

/**
 * Which index a selection walks: pending messages of the account; held messages of all accounts (they are few);
 * messages of one flow-control key in either state; held messages of one queue.
 */
type Walk = 'pending' | 'held' | 'flowPending' | 'flowHeld' | 'queueHeld'

type WalkParams = Pick<SelectQuery, 'accountId' | 'flowKey' | 'queue'>

const walkOf = ({ state, filter: { flowKeys, queues } }: PendingSelector): Walk => {
  if (flowKeys.length === 1) return state === 'pending' ? 'flowPending' : 'flowHeld'
  return state === 'held' && queues.length === 1 ? 'queueHeld' : state
}

const ofAccount = (p: WalkParams): RawBuilder<boolean> => sql<boolean>`account_id = ${p.accountId}`
const ofFlow = (p: WalkParams): RawBuilder<boolean> =>
  sql<boolean>`${ofAccount(p)} and flow_key = ${p.flowKey} and finished_at is null`
const ofQueue = (p: WalkParams): RawBuilder<boolean> =>
  sql<boolean>`${ofAccount(p)} and queue = ${p.queue} and finished_at is null`
/** Written so that no index on the account is used, which would walk all ended messages. */
const ofAccountUnindexed = (p: WalkParams): RawBuilder<boolean> => sql<boolean>`(account_id || '') = ${p.accountId}`

/** Condition of each walk. The state is part of the SQL text, because it decides which index fits. */
const STEPS = {
  pending: (p) => sql<boolean>`state = 'pending' and ${ofAccount(p)}`,
  held: () => sql<boolean>`state = 'held'`,
  flowPending: (p) => sql<boolean>`state = 'pending' and ${ofFlow(p)}`,
  flowHeld: (p) => sql<boolean>`state = 'held' and ${ofFlow(p)}`,
  queueHeld: (p) => sql<boolean>`state = 'held' and ${ofQueue(p)}`,
} as const satisfies Record<Walk, (p: WalkParams) => RawBuilder<boolean>>

/** Whether a walk is in order of arrival. The index of a queue is; all others are in due order. */
const isInOrderOfArrival = (walk: Walk): boolean => walk === 'queueHeld'

const placeAhead = (walk: Walk) =>
  query<WalkParams & DuePlace & { ahead: number }, DuePlace>(({ db, p }) => {
    const steps = db.selectFrom('messages').select(['next_at as nextAt', 'seq']).where(STEPS[walk](p))
    const ahead = isInOrderOfArrival(walk)
      ? steps.where('seq', '>', p.seq)
      : steps.where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`).orderBy('next_at')
    return ahead.orderBy('seq').offset(p.ahead).limit(1)
  })

/** Held messages are selected separately, because they have no due order, and are cancelled first. */
const filtering = queriesByShape<[Walk, FilterShape], BoundedQuery, DuePlace>(({ db, p, d }, walk, shape) => {
  const steps = db
    .selectFrom('messages')
    .select(['next_at as nextAt', 'seq'])
    .where(STEPS[walk](p))
    .$if(walk === 'held', (held) => held.where(ofAccountUnindexed(p)))
    .where('kind', '=', p.kind)
    .where('created_at', '<=', p.createdUpTo)
    .where(passesShape(p, d, 'created_at', shape))
  const within = isInOrderOfArrival(walk)
    ? steps.where('seq', '>', p.seq).where('seq', '<=', p.untilSeq)
    : steps
        .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
        .where(sql<boolean>`(next_at, seq) <= (${p.untilAt}, ${p.untilSeq})`)
        .orderBy('next_at')
  return within.orderBy('seq').limit(p.limit)
})

const AHEAD = {
  pending: placeAhead('pending'),
  held: placeAhead('held'),
  flowPending: placeAhead('flowPending'),
  flowHeld: placeAhead('flowHeld'),
  queueHeld: placeAhead('queueHeld'),
}

const byIds = query<SelectQuery, DuePlace>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['next_at as nextAt', 'seq'])
    .where('account_id', '=', p.accountId)
    .where(d.inTexts('message_id', p.messageIds))
    .where('finished_at', 'is', null)
    .where('state', '=', p.state)
    .where(sql<boolean>`(next_at, seq) > (${p.nextAt}, ${p.seq})`)
    .where('kind', '=', p.kind)
    .orderBy('next_at')
    .orderBy('seq')
    .limit(p.limit),
)

/** A page of selected messages. A page that is not full may have a next one. */
export interface PendingPage {
  readonly places: readonly DuePlace[]
  /** Where the next page begins; `undefined` at the end. */
  readonly next: DuePlace | undefined
}

interface PackedPage {
  /** Time and number of each place, alternating. */
  readonly numbers: Float64Array
  readonly next: DuePlace | undefined
}

/** Packs a page so that thousands of places cross threads as one block of memory. */
function packPage({ places, next }: PendingPage): PackedPage {
  const numbers = new Float64Array(places.length * 2)
  for (const [index, { nextAt, seq }] of places.entries()) {
    numbers[index * 2] = nextAt
    numbers[index * 2 + 1] = seq
  }
  return { numbers, next }
}

function unpackPage({ numbers, next }: PackedPage): PendingPage {
  const places = Array.from({ length: numbers.length / 2 }, (_, index) => ({
    nextAt: numbers[index * 2] ?? 0,
    seq: numbers[index * 2 + 1] ?? 0,
  }))
  return { places, next }
}

/**
 * Pending messages of an account in due order; held messages of one queue in order of arrival. Each page scans a
 * bounded number of rows.
 */
export const selectPending = read(
  'messages.selectPending',
  function* (selector: PendingSelector): Transaction<PendingPage> {
    const { filter, after, ...rest } = selector
    const [[flowKey], [queue]] = [filter.flowKeys, filter.queues]
    const params = { ...filterParams(filter), ...after, ...rest, flowKey, queue }
    if (filter.messageIds.length > 0) return pageOf(yield* all(byIds, params), selector.limit, undefined)
    const walk = walkOf(selector)
    const ahead = yield* first(AHEAD[walk], { ...params, ahead: MAX_SCANNED })
    const { nextAt: untilAt, seq: untilSeq } = ahead ?? LAST_DUE
    const found = yield* all(filtering(walk, shapeOf(filter)), { ...params, untilAt, untilSeq })
    return pageOf(found, selector.limit, ahead)
  },
  { turn: 'background', encoding: encodeResult(packPage, unpackPage) },
)

const pageOf = (places: readonly DuePlace[], limit: number, ahead: DuePlace | undefined): PendingPage => ({
  places,
  next: places.length < limit ? ahead : places.at(-1),
})

/** A message that was just cancelled. */
export interface Ended {
  readonly seq: number
  readonly message_id: string
  readonly queue: string | null
  readonly slot_seq: number | null
}

/**
 * On PostgreSQL, where transactions run in parallel, the rows are locked in ascending order before any is changed, so
 * that two overlapping cancels cannot deadlock. SQLite does not need this extra read.
 */
const setCancelled = query<{ seqs: readonly number[]; at: number }, Ended>(({ db, p, d }) => {
  const unfinished = db
    .selectFrom('messages')
    .select('seq')
    .where(d.inNumbers('seq', p.seqs))
    .where('finished_at', 'is', null)
  return db
    .updateTable('messages')
    .set({ state: 'canceled', finished_at: p.at })
    .$if(d.name === 'sqlite', (update) => update.where(d.inNumbers('seq', p.seqs)))
    .$if(d.name === 'postgres', (update) => update.where(d.inLocked('seq', d.forUpdate(unfinished.orderBy('seq')))))
    .where('finished_at', 'is', null)
    .returning(['seq', 'message_id', 'queue', 'slot_seq'])
})

/** Result of a cancel. */
export interface Cancellation {
  /** Numbers of the cancelled messages. The dispatcher must drop them. */
  readonly seqs: readonly number[]
  /** Messages of queues that got a turn because of the cancel. */
  readonly offers: readonly PendingRow[]
}

/** Cancels the messages among these that have not ended, within another transaction. Returns the cancelled ones. */
export function* endMessages(seqs: readonly number[], at: number): Transaction<readonly Ended[]> {
  return seqs.length > 0 ? yield* all(setCancelled, { seqs, at }) : []
}

/** The turns in queues that these messages may have held. */
export const turnsOf = (ended: readonly Ended[]): number[] =>
  ended.map((row) => (row.queue === null ? row.slot_seq : row.seq)).filter((seq) => seq !== null)

/** Cancels the messages among these that have not ended. */
export const cancel = write(
  'messages.cancel',
  function* (args: { seqs: readonly number[]; at: number }): Transaction<Cancellation> {
    const ended = yield* endMessages(args.seqs, args.at)
    return { seqs: ended.map((row) => row.seq), offers: yield* endTurns(turnsOf(ended)) }
  },
)
