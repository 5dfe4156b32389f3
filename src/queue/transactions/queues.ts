import type { Selectable } from 'kysely'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { QueuesTable } from '../../store/schema/queues.js'
import { all, change, first, only, type Transaction } from '../../store/statement.js'
import type { PendingRow } from './messages.js'
import { endMessages } from './messages-cancel.js'
import { advanceQueue, lockQueue } from './queue-turns.js'

/** A queue and its settings. */
export type QueueRow = Selectable<QueuesTable>

interface Writing {
  accountId: string
  name: string
  parallelism: number
  paused: number
  now: number
}

const put = query<Writing>(({ db, p }) =>
  db
    .insertInto('queues')
    .values({
      account_id: p.accountId,
      name: p.name,
      parallelism: p.parallelism,
      paused: p.paused,
      created_at: p.now,
      updated_at: p.now,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'name'])
        .doUpdateSet({ parallelism: p.parallelism, paused: p.paused, updated_at: p.now }),
    ),
)

/** Creates or changes a queue. Returns the messages that get a turn because of it. */
export const upsert = write('queues.upsert', function* (args: Writing): Transaction<PendingRow[]> {
  yield* change(put, args)
  return yield* advanceQueue(args)
})

const pause = query<{ accountId: string; name: string; paused: number; now: number }>(({ db, p }) =>
  db
    .updateTable('queues')
    .set({ paused: p.paused, updated_at: p.now })
    .where('account_id', '=', p.accountId)
    .where('name', '=', p.name),
)

/**
 * Pauses or resumes a queue. Returns the messages that get a turn because of it;
 * `undefined` if the queue does not exist.
 */
export const setPaused = write(
  'queues.setPaused',
  function* (args: {
    accountId: string
    name: string
    paused: 0 | 1
    now: number
  }): Transaction<PendingRow[] | undefined> {
    if ((yield* change(pause, args)) === 0) return undefined
    return yield* advanceQueue(args)
  },
)

const COLUMNS = ['account_id', 'name', 'parallelism', 'paused', 'created_at', 'updated_at'] as const

interface QueuePage {
  accountId: string
  /** Only queues after this one. */
  after: string
  limit: number
}

const pageOfQueues = query<QueuePage, QueueRow>(({ db, p }) =>
  db
    .selectFrom('queues')
    .select(COLUMNS)
    .where('account_id', '=', p.accountId)
    .where('name', '>', p.after)
    .orderBy('name')
    .limit(p.limit),
)
const oneQueue = query<{ accountId: string; name: string }, QueueRow>(({ db, p }) =>
  db.selectFrom('queues').select(COLUMNS).where('account_id', '=', p.accountId).where('name', '=', p.name),
)

/** The queues of an account, ordered by name, in pages: there may be a hundred thousand. */
export const list = read('queues.list', function* (args: QueuePage): Transaction<QueueRow[]> {
  return yield* all(pageOfQueues, args)
})

/** One queue. */
export const get = read('queues.get', function* (args: { accountId: string; name: string }): Transaction<
  QueueRow | undefined
> {
  return yield* first(oneQueue, args)
})

interface CountRange {
  accountId: string
  name: string
  /** Messages after this number are counted. */
  after: number
  limit: number
}

const countBatch = query<CountRange, { count: number; last: number | null }>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('messages')
        .select('seq')
        .where('account_id', '=', p.accountId)
        .where('queue', '=', p.name)
        .where('finished_at', 'is', null)
        .where('seq', '>', p.after)
        .orderBy('seq')
        .limit(p.limit)
        .as('part'),
    )
    .select(({ fn }) => [fn.countAll<number>().as('count'), fn.max<number | null>('seq').as('last')]),
)

/** The count of one batch, and where the next batch starts; `undefined` at the end. */
export interface CountBatch {
  readonly count: number
  readonly next: number | undefined
}

/**
 * Counts the next messages of a queue that have not ended, at most `limit`: counting a queue of millions at once would
 * block other reads.
 */
export const countWaiting = read(
  'queues.countWaiting',
  function* (args: CountRange): Transaction<CountBatch> {
    const { count, last } = yield* only(countBatch, args)
    return { count, next: count < args.limit ? undefined : (last ?? undefined) }
  },
  { turn: 'background' },
)

const anyLeft = query<{ accountId: string; name: string }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .where('queue', '=', p.name)
    .where('finished_at', 'is', null)
    .limit(1),
)
const removeQueue = query<{ accountId: string; name: string }>(({ db, p }) =>
  db.deleteFrom('queues').where('account_id', '=', p.accountId).where('name', '=', p.name),
)
const removeTurns = query<{ accountId: string; name: string }>(({ db, p }) =>
  db.deleteFrom('queue_turns').where('account_id', '=', p.accountId).where('queue', '=', p.name),
)

/** Deletes a queue without messages. Returns whether it is gone. */
export const removeEmpty = write(
  'queues.removeEmpty',
  function* (args: { accountId: string; name: string }): Transaction<boolean> {
    // A publisher holds this lock until its message is visible.
    yield* first(lockQueue, args)
    if (yield* first(anyLeft, args)) return false
    yield* change(removeTurns, args)
    yield* change(removeQueue, args)
    return true
  },
)

const someLeft = query<{ accountId: string; name: string; limit: number }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .where('queue', '=', p.name)
    .where('finished_at', 'is', null)
    .orderBy('seq')
    .limit(p.limit),
)

/**
 * Cancels the messages that are left in a queue and deletes the queue, in one transaction, for a queue that never
 * becomes empty. Publishers wait for its lock meanwhile, so it is for few messages. Returns the numbers of the cancelled
 * messages; `undefined`, without any change, if more than `most` are left.
 */
export const removeWithRest = write(
  'queues.removeWithRest',
  function* (args: {
    accountId: string
    name: string
    most: number
    at: number
  }): Transaction<readonly number[] | undefined> {
    const { accountId, name, most, at } = args
    yield* first(lockQueue, { accountId, name })
    const left = yield* all(someLeft, { accountId, name, limit: most + 1 })
    if (left.length > most) return undefined
    const ended = yield* endMessages(
      left.map(({ seq }) => seq),
      at,
    )
    yield* change(removeTurns, { accountId, name })
    yield* change(removeQueue, { accountId, name })
    return ended.map(({ seq }) => seq)
  },
)
