import { sql } from 'kysely'
import { all, change, first, insertAll, only, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'
import {
  bodyColumns,
  insertMessages,
  LARGEST_BODY_ALONG,
  type NewMessage,
  PENDING_COLUMNS,
  type PendingRow,
  type StoredPending,
  toPendingRow,
  withIntactBodies,
} from './messages.js'

/**
 * Messages of a queue take turns. A message is `held` until its turn comes: then it is `pending` like any other, and
 * the turn is a row of `queue_turns`, which stays until the message and every callback of it have ended. A queue has
 * never more turns than its parallelism.
 *
 * Turns are given within the transactions that make room for them: storing a message, ending one, changing the queue.
 * So nothing has to look for queues that stand still, and a crash leaves none behind.
 */

interface OfQueue {
  accountId: string
  name: string
}

const ensure = query<OfQueue & { now: number }>(({ db, p }) =>
  db
    .insertInto('queues')
    .values({
      account_id: p.accountId,
      name: p.name,
      parallelism: 1,
      paused: 0,
      created_at: p.now,
      updated_at: p.now,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'name']).doNothing()),
)

/** A queue, held until the commit: it has what was committed before, and nobody else gives or takes anything of it. */
export const lockQueue = query<OfQueue, { parallelism: number; paused: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('queues')
      .select(['parallelism', 'paused'])
      .where('account_id', '=', p.accountId)
      .where('name', '=', p.name),
  ),
)

const countTurns = query<OfQueue, { turns: number }>(({ db, p }) =>
  db
    .selectFrom('queue_turns')
    .select((q) => q.fn.countAll<number>().as('turns'))
    .where('account_id', '=', p.accountId)
    .where('queue', '=', p.name),
)

const nextHeld = query<OfQueue & { limit: number }, StoredPending>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(PENDING_COLUMNS)
    .select(bodyColumns(LARGEST_BODY_ALONG))
    .where('account_id', '=', p.accountId)
    .where('queue', '=', p.name)
    .where('finished_at', 'is', null)
    .where('state', '=', sql.lit('held'))
    .orderBy('seq')
    .limit(p.limit),
)

const begin = query<{ seqs: readonly number[] }, { seq: number }>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({ state: 'pending' })
    .where(d.inNumbers('seq', p.seqs))
    .where('state', '=', sql.lit('held'))
    .returning('seq'),
)

/** Gives the next messages of a queue their turns, as far as it has room. Answers those messages. */
export function* advanceQueue(queue: OfQueue): Transaction<PendingRow[]> {
  return (yield* advanceIfThere(queue)) ?? []
}

/** `undefined`: there is no such queue. */
function* advanceIfThere(queue: OfQueue): Transaction<PendingRow[] | undefined> {
  const found = yield* first(lockQueue, queue)
  if (!found) return undefined
  if (found.paused === 1) return []
  const rows = yield* beginNext(queue, found.parallelism - (yield* only(countTurns, queue)).turns)
  const { accountId: account_id, name } = queue
  yield* insertAll(
    'queue_turns',
    rows.map((row) => ({ message_seq: row.seq, account_id, queue: name })),
  )
  return rows
}

/** A message that was read as held may be cancelled by the time that it is to begin: the next one takes its place. */
function* beginNext(queue: OfQueue, room: number): Transaction<PendingRow[]> {
  const begun: PendingRow[] = []
  while (begun.length < room) {
    const rows = yield* all(nextHeld, { ...queue, limit: room - begun.length })
    if (rows.length === 0) break
    const ours = new Set((yield* all(begin, { seqs: rows.map((row) => row.seq) })).map((row) => row.seq))
    begun.push(...withIntactBodies(rows.filter((row) => ours.has(row.seq))))
    if (ours.size === rows.length) break
  }
  return begun
}

interface TurnQueue {
  readonly account_id: string
  readonly queue: string
}

/** Two callbacks of one message may end side by side: the later one has to see the end of the other. */
const lockTurns = query<{ seqs: readonly number[] }, { message_seq: number }>(({ db, p, d }) =>
  d.forUpdate(
    db.selectFrom('queue_turns').select('message_seq').where(d.inNumbers('message_seq', p.seqs)).orderBy('message_seq'),
  ),
)

const stillOpen = query<{ seqs: readonly number[] }, { turn: number }>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select('seq as turn')
    .where(d.inNumbers('seq', p.seqs))
    .where('finished_at', 'is', null)
    .union(
      db
        .selectFrom('messages')
        .select('slot_seq as turn')
        .where(d.inNumbers('slot_seq', p.seqs))
        .where('finished_at', 'is', null)
        .$narrowType<{ turn: number }>(),
    ),
)

const removeTurns = query<{ seqs: readonly number[] }, TurnQueue>(({ db, p, d }) =>
  db.deleteFrom('queue_turns').where(d.inNumbers('message_seq', p.seqs)).returning(['account_id', 'queue']),
)

/**
 * Something of these turns has ended: turns of which nothing is left are over, and the next messages of their queues
 * get theirs. Answers those messages.
 */
export function* endTurns(seqs: readonly number[]): Transaction<PendingRow[]> {
  if (seqs.length === 0) return []
  const turns = (yield* all(lockTurns, { seqs })).map((row) => row.message_seq)
  if (turns.length === 0) return []
  const open = new Set((yield* all(stillOpen, { seqs: turns })).map((row) => row.turn))
  const over = turns.filter((seq) => !open.has(seq))
  const freed = over.length > 0 ? yield* all(removeTurns, { seqs: over }) : []
  return yield* advanceQueues(freed.map(({ account_id, queue }) => ({ accountId: account_id, name: queue })))
}

function* advanceQueues(
  queues: readonly OfQueue[],
  advance: (queue: OfQueue) => Transaction<PendingRow[]> = advanceQueue,
): Transaction<PendingRow[]> {
  const distinct = new Map(queues.map((queue) => [`${queue.accountId}/${queue.name}`, queue]))
  const rows: PendingRow[] = []
  // In one order everywhere, so that transactions over several queues do not wait for each other in a circle.
  for (const key of [...distinct.keys()].sort()) {
    const queue = distinct.get(key)
    if (queue) rows.push(...(yield* advance(queue)))
  }
  return rows
}

/** What storing new messages brought. */
export interface Accepted {
  /** The numbers of the messages, in order. */
  readonly seqs: readonly number[]
  /** Messages of queues whose turn has come. */
  readonly turns: readonly PendingRow[]
}

/**
 * Stores new messages as part of another transaction: those of queues take their places there, and queues that nobody
 * has made before are made.
 */
export function* acceptMessages(messages: readonly NewMessage[], now: number): Transaction<Accepted> {
  const seqs = messages.length > 0 ? yield* insertMessages(messages) : []
  const queues: OfQueue[] = []
  for (const { account_id: accountId, queue: name } of messages) if (name) queues.push({ accountId, name })
  return { seqs, turns: yield* advanceQueues(queues, (queue) => advanceOrMake(queue, now)) }
}

/** A queue may be deleted until it is locked, because what is stored here cannot be seen before the commit. */
function* advanceOrMake(queue: OfQueue, now: number): Transaction<PendingRow[]> {
  for (;;) {
    const rows = yield* advanceIfThere(queue)
    if (rows) return rows
    yield* change(ensure, { ...queue, now })
  }
}

/**
 * Of messages that were accepted, those that the engine may have now, and those with a flow-control key that wait for
 * their turns: what they ask of it holds from now on. Bodies need not travel for it.
 */
export function offersOf(messages: readonly NewMessage[], { seqs, turns }: Accepted): PendingRow[] {
  const fresh = messages.flatMap((message, index) => {
    const seq = seqs[index] ?? Number.NaN
    if (!message.queue) return [toPendingRow(message, seq)]
    return message.flow_key ? [{ ...toPendingRow({ ...message, body: null }, seq), held: true as const }] : []
  })
  return turns.length === 0 ? fresh : [...fresh, ...turns]
}
