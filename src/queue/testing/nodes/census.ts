import { read } from '../../../store/operation.js'
import { query } from '../../../store/query.js'
import { all, type Transaction } from '../../../store/statement.js'
import type { MessageRow } from '../../transactions/messages.js'

/** The columns of a message that the checks read. */
export type CensusRow = Pick<
  MessageRow,
  'seq' | 'url' | 'state' | 'partition' | 'next_at' | 'retried' | 'queue' | 'flow_key' | 'message_id' | 'schedule_id'
>

const READ = [
  ...(['seq', 'url', 'state', 'partition', 'next_at', 'retried', 'queue', 'flow_key', 'message_id'] as const),
  'schedule_id',
] as const

const everyMessage = query<object, CensusRow>(({ db }) => db.selectFrom('messages').select(READ))

/** All messages. */
export const messages = read('simulation.messages', function* (_: object): Transaction<CensusRow[]> {
  return yield* all(everyMessage, {})
})

const openMessages = query<object, CensusRow>(({ db }) =>
  db.selectFrom('messages').select(READ).where('finished_at', 'is', null),
)

/** Messages that have not ended. */
export const pending = read('simulation.pending', function* (_: object): Transaction<CensusRow[]> {
  return yield* all(openMessages, {})
})

const byUrl = query<{ url: string }, { seq: number }>(({ db, p }) =>
  db.selectFrom('messages').select('seq').where('url', '=', p.url),
)

const turnsByQueue = query<object, { queue: string; turns: number; parallelism: number }>(({ db }) =>
  db
    .selectFrom('queue_turns')
    .innerJoin('queues', (join) =>
      join.onRef('queues.name', '=', 'queue_turns.queue').onRef('queues.account_id', '=', 'queue_turns.account_id'),
    )
    .select((q) => [
      'queue_turns.queue as queue',
      'queues.parallelism as parallelism',
      q.fn.countAll<number>().as('turns'),
    ])
    .groupBy(['queue_turns.queue', 'queues.parallelism']),
)

/** The queues that have turns, with their number of turns. */
export const turns = read('simulation.turns', function* (_: object): Transaction<
  { queue: string; turns: number; parallelism: number }[]
> {
  return yield* all(turnsByQueue, {})
})

const unended = query<{ queue: string; seq: number }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select('seq')
    .where('queue', '=', p.queue)
    .where('seq', '<', p.seq)
    .where('finished_at', 'is', null)
    .orderBy('seq'),
)

/** Messages of a queue that have not ended and come before the message with this URL. */
export const unendedBefore = read('simulation.unended', function* (args: { queue: string; url: string }): Transaction<
  { seq: number }[]
> {
  const [message] = yield* all(byUrl, args)
  return message ? yield* all(unended, { queue: args.queue, seq: message.seq }) : []
})

const byIncarnation = query<{ incarnation: number }, { state: string; beat: number }>(({ db, p }) =>
  db.selectFrom('nodes').select(['state', 'beat']).where('incarnation', '=', p.incarnation),
)

/** The row of an incarnation of a node. */
export const incarnation = read('simulation.incarnation', function* (args: { incarnation: number }): Transaction<
  { state: string; beat: number } | undefined
> {
  return (yield* all(byIncarnation, args))[0]
})

const takers = query<object, { incarnation: number }>(({ db }) =>
  db.selectFrom('nodes').select('incarnation').where('state', '=', 'live').where('is_open', '=', 1),
)

/** Whether a node may be given partitions. */
export const hasTaker = read('simulation.hasTaker', function* (_: object): Transaction<boolean> {
  return (yield* all(takers, {})).length > 0
})
