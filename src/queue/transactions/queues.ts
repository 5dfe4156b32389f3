import type { Selectable } from 'kysely'
import { all, change, first, only, read, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { QueuesTable } from '../../store/schema/queues.js'
import type { PendingRow } from './messages.js'
import { advanceQueue, lockQueue } from './queue-turns.js'

/** A queue as it is set. */
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

/** Makes a queue or changes it. Answers the messages whose turn comes by that. */
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

/** Pauses a queue or lets it go on; `undefined` when there is none. Answers the messages whose turn comes by that. */
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

const everyQueue = query<{ accountId: string }, QueueRow>(({ db, p }) =>
  db.selectFrom('queues').select(COLUMNS).where('account_id', '=', p.accountId).orderBy('name'),
)
const oneQueue = query<{ accountId: string; name: string }, QueueRow>(({ db, p }) =>
  db.selectFrom('queues').select(COLUMNS).where('account_id', '=', p.accountId).where('name', '=', p.name),
)

/** All queues of an account, by name. */
export const list = read('queues.list', function* (args: { accountId: string }): Transaction<QueueRow[]> {
  return yield* all(everyQueue, args)
})

/** One queue. */
export const get = read('queues.get', function* (args: { accountId: string; name: string }): Transaction<
  QueueRow | undefined
> {
  return yield* first(oneQueue, args)
})

interface WaitingPart {
  accountId: string
  name: string
  /** Messages after this number are counted. */
  after: number
  limit: number
}

const countPart = query<WaitingPart, { count: number; last: number | null }>(({ db, p }) =>
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

/** What was counted, and where to go on after; `undefined` at the end. */
export interface CountedPart {
  readonly count: number
  readonly next: number | undefined
}

/**
 * Counts the next messages of a queue that have not ended, at most `limit`: of a queue of millions all at once would keep
 * other reads waiting.
 */
export const countWaiting = read(
  'queues.countWaiting',
  function* (args: WaitingPart): Transaction<CountedPart> {
    const { count, last } = yield* only(countPart, args)
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

/** Deletes a queue that has no message left. Answers whether it is gone. */
export const removeEmpty = write(
  'queues.removeEmpty',
  function* (args: { accountId: string; name: string }): Transaction<boolean> {
    // Whoever publishes to it holds it until the message can be seen.
    yield* first(lockQueue, args)
    if (yield* first(anyLeft, args)) return false
    yield* change(removeTurns, args)
    yield* change(removeQueue, args)
    return true
  },
)
