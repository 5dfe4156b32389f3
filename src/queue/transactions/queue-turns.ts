import { sql } from 'kysely'
import { query } from '../../store/query.js'
import { all, change, first, insertAll, only, type Transaction } from '../../store/statement.js'
import {
  bodyColumns,
  insertMessages,
  MAX_ROW_BODY_BYTES,
  type NewMessage,
  PENDING_COLUMNS,
  type PendingRow,
  partitionColumn,
  type StoredPending,
  toPendingRow,
  withIntactBodies,
} from './messages.js'

/**
 * Messages of a queue take turns. A message is `held` until its turn. Then it becomes `pending` like any other, and a
 * row in `queue_turns` records the turn until the message and all its callbacks have ended. A queue never has more
 * turns than its parallelism.
 *
 * Turns are given in the transactions that free or add one: storing a message, ending one, changing the queue. So
 * nothing has to search for stalled queues, and a crash leaves none behind.
 */

interface QueueKey {
  accountId: string
  name: string
}

const ensure = query<QueueKey & { now: number }>(({ db, p }) =>
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

/**
 * Locks a queue until the commit: the transaction sees what was committed before, and no other gives or ends turns in
 * it.
 */
export const lockQueue = query<QueueKey, { parallelism: number; paused: number }>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('queues')
      .select(['parallelism', 'paused'])
      .where('account_id', '=', p.accountId)
      .where('name', '=', p.name),
  ),
)

const countTurns = query<QueueKey, { turns: number }>(({ db, p }) =>
  db
    .selectFrom('queue_turns')
    .select((q) => q.fn.countAll<number>().as('turns'))
    .where('account_id', '=', p.accountId)
    .where('queue', '=', p.name),
)

const nextHeld = query<QueueKey & { limit: number }, StoredPending>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(PENDING_COLUMNS)
    .select(partitionColumn(d))
    .select(bodyColumns(MAX_ROW_BODY_BYTES))
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

/** Gives the next messages of a queue their turns, up to its parallelism. Returns those messages. */
export function* advanceQueue(queue: QueueKey): Transaction<PendingRow[]> {
  return (yield* advanceIfThere(queue)) ?? []
}

/** `undefined`: the queue does not exist. */
function* advanceIfThere(queue: QueueKey): Transaction<PendingRow[] | undefined> {
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

/** A message read as held may be cancelled before its turn is written. Then the next one gets the turn. */
function* beginNext(queue: QueueKey, free: number): Transaction<PendingRow[]> {
  const begun: PendingRow[] = []
  while (begun.length < free) {
    const rows = yield* all(nextHeld, { ...queue, limit: free - begun.length })
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

/** Two callbacks of one message may end in parallel. The lock makes the later one see the end of the other. */
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
 * A message or callback of these turns has ended. Ends the turns that have nothing left, and gives the next messages of
 * their queues a turn. Returns those messages.
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

/**
 * Makes held messages pending whose turn has not ended, because a callback of an earlier attempt is pending.
 * @returns the numbers of these messages.
 */
export function* continueTurns(seqs: readonly number[]): Transaction<ReadonlySet<number>> {
  const turns = (yield* all(lockTurns, { seqs })).map((row) => row.message_seq)
  const begun = turns.length > 0 ? yield* all(begin, { seqs: turns }) : []
  return new Set(begun.map(({ seq }) => seq))
}

/** Distinct queues in the order in which every transaction locks them. */
function inLockOrder(queues: readonly QueueKey[]): QueueKey[] {
  const distinct = new Map(queues.map((queue) => [`${queue.accountId}/${queue.name}`, queue]))
  return [...distinct].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, queue]) => queue)
}

function* advanceQueues(
  queues: readonly QueueKey[],
  advance: (queue: QueueKey) => Transaction<PendingRow[]> = advanceQueue,
): Transaction<PendingRow[]> {
  const rows: PendingRow[] = []
  for (const queue of inLockOrder(queues)) rows.push(...(yield* advance(queue)))
  return rows
}

/** Result of storing new messages. */
export interface Accepted {
  /** The numbers of the messages, in order. */
  readonly seqs: readonly number[]
  /** Messages of queues that got a turn. */
  readonly turns: readonly PendingRow[]
}

/**
 * Stores new messages within another transaction. Messages of queues are added to their queue, which is created if it
 * does not exist.
 */
export function* acceptMessages(messages: readonly NewMessage[], now: number): Transaction<Accepted> {
  const seqs = messages.length > 0 ? yield* insertMessages(messages) : []
  const queues: QueueKey[] = []
  for (const { account_id: accountId, queue: name } of messages) if (name) queues.push({ accountId, name })
  return { seqs, turns: yield* advanceOrMakeAll(queues, now) }
}

/** Gives the next messages of these queues their turns; queues that do not exist are created. Returns those messages. */
export function* advanceOrMakeAll(queues: readonly QueueKey[], now: number): Transaction<PendingRow[]> {
  return yield* advanceQueues(queues, (queue) => advanceOrMake(queue, now))
}

/**
 * Advances a queue, and creates it first if it does not exist. It tries again until the queue is locked: before that,
 * another transaction may delete the queue, because it does not see the new messages yet.
 */
function* advanceOrMake(queue: QueueKey, now: number): Transaction<PendingRow[]> {
  for (;;) {
    const rows = yield* advanceIfThere(queue)
    if (rows) return rows
    yield* change(ensure, { ...queue, now })
  }
}

/**
 * What to offer to the dispatcher after messages were accepted: messages that may be sent, and held messages with a
 * flow-control key, whose limits apply from now on. Held messages are offered without body.
 */
export function offersOf(messages: readonly NewMessage[], { seqs, turns }: Accepted): PendingRow[] {
  const fresh: PendingRow[] = []
  for (const [index, message] of messages.entries()) {
    const seq = seqs[index] ?? Number.NaN
    if (!message.queue) fresh.push(toPendingRow(message, seq))
    else if (message.flow_key) fresh.push({ ...toPendingRow({ ...message, body: null }, seq), held: true })
  }
  return turns.length === 0 ? fresh : [...fresh, ...turns]
}
