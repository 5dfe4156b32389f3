import type * as bulkAction from '../../../bulk/transactions/bulk-action.js'
import * as bulkRetention from '../../../bulk/transactions/bulk-retention.js'
import { sweepKeys } from '../../../queue/key-sweep.js'
import * as messagesRetention from '../../../queue/transactions/messages-retention.js'
import type { Store } from '../../../store/index.js'
import { read, write } from '../../../store/operation.js'
import { query } from '../../../store/query.js'
import type { Tables } from '../../../store/schema/index.js'
import type { MessageState } from '../../../store/schema/messages.js'
import { all, change, only, type Transaction } from '../../../store/statement.js'
import { sweepRunKeys } from '../../runs/key-sweep.js'
import * as runsRetention from '../../transactions/runs-retention.js'
import type { RunRow } from '../../transactions/runs-rows.js'

/** Reads of the tables of runs and messages for checks, and checks of retention. */

/** Pass it to `openStore`: the threads of the store must load the operations of this file. */
export const CENSUS_MODULE = import.meta.url

const TABLES = [
  ...(['runs', 'steps', 'run_waits', 'run_events', 'run_webhooks', 'run_remains', 'run_attempts'] as const),
  ...(['messages', 'message_attempts', 'message_keys', 'queues', 'queue_turns', 'schedules', 'flow_keys'] as const),
  ...(['bulk_actions', 'bulk_chunks', 'cancelled_deliveries', 'run_returns'] as const),
] as const satisfies readonly (keyof Tables)[]

const counts = TABLES.map(
  (table) =>
    [
      table,
      query<object, { rows: number }>(({ db }) =>
        db.selectFrom(table).select((q) => q.fn.countAll<number>().as('rows')),
      ),
    ] as const,
)

/** Counts the rows of each table of runs and messages, for all accounts. */
const countRows = read('model.countRows', function* (_: object): Transaction<[string, number][]> {
  const found: [string, number][] = []
  for (const [table, count] of counts) found.push([table, (yield* only(count, {})).rows])
  return found
})

const removals = TABLES.map((table) => query<object>(({ db }) => db.deleteFrom(table)))
const removeAll = write('model.removeAll', function* (_: object): Transaction<void> {
  for (const removal of removals) yield* change(removal, {})
})

/** Empties the tables. Otherwise the runs of a failed simulation would continue in the next ones. */
export const clear = (store: Store): Promise<void> => store.run(removeAll, {})

const newestRuns = query<{ accountId: string }, RunRow>(({ db, p }) =>
  db.selectFrom('runs').selectAll().where('account_id', '=', p.accountId).orderBy('seq', 'desc'),
)
const readRuns = read('model.runs', function* (args: { accountId: string }): Transaction<RunRow[]> {
  return yield* all(newestRuns, args)
})

/** The runs of an account, newest first, without their lists. */
export const runsOf = (store: Store, accountId: string): Promise<readonly RunRow[]> =>
  store.run(readRuns, { accountId })

/** The list, messages and waits of runs, which must survive a cancel and its undo. */
export interface StandingRows {
  readonly elements: readonly { readonly run_seq: number; readonly message_id: string }[]
  readonly messages: readonly {
    readonly seq: number
    readonly group_key: number | null
    readonly message_id: string
    readonly next_at: number
    readonly retried: number
    readonly created_at: number
  }[]
  readonly waits: readonly {
    readonly run_seq: number
    readonly event_id: string
    readonly message_id: string
    readonly deadline: number
    readonly created_at: number
  }[]
}

type OfRuns = { seqs: readonly number[] }
const listsOf = query<OfRuns, StandingRows['elements'][number]>(({ db, p, d }) =>
  db
    .selectFrom('steps')
    .select(['run_seq', 'message_id', 'kind', 'created_at', 'body_crc'])
    .where(d.inNumbers('run_seq', p.seqs))
    .orderBy('run_seq')
    .orderBy('position'),
)
const deliveriesOf = query<OfRuns, StandingRows['messages'][number]>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'group_key', 'message_id', 'next_at', 'retried', 'created_at'])
    .select(['url', 'method', 'headers', 'config', 'max_retries', 'labels', 'flow_key', 'caller_ip', 'host', 'path'])
    .where(d.inNumbers('group_key', p.seqs))
    .where('state', '=', 'pending')
    .orderBy('message_id'),
)
const waitsOf = query<OfRuns, StandingRows['waits'][number]>(({ db, p, d }) =>
  db
    .selectFrom('run_waits')
    .select(['run_seq', 'event_id', 'message_id', 'deadline', 'created_at', 'wait'])
    .where(d.inNumbers('run_seq', p.seqs))
    .orderBy('message_id'),
)

/** Reads the lists, messages and waits of runs. */
export const readStandings = read('model.standings', function* (args: OfRuns): Transaction<StandingRows> {
  return {
    elements: yield* all(listsOf, args),
    messages: yield* all(deliveriesOf, args),
    waits: yield* all(waitsOf, args),
  }
})

interface Kept {
  accountId: string
  /** Rows that ended at this time or later are kept; Unix milliseconds. */
  since: number
}

const keptMessages = query<Kept, { message_id: string; group_key: number | null }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['message_id', 'group_key'])
    .where('account_id', '=', p.accountId)
    .where((eb) => eb.or([eb('finished_at', 'is', null), eb('finished_at', '>=', p.since)])),
)
const keptRuns = query<Kept, { seq: number; run_id: string }>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id'])
    .where('account_id', '=', p.accountId)
    .where((eb) => eb.or([eb('finished_at', 'is', null), eb('finished_at', '>=', p.since)])),
)
const keptActions = query<Kept, { action_id: string }>(({ db, p }) =>
  db
    .selectFrom('bulk_actions')
    .select('action_id')
    .where('account_id', '=', p.accountId)
    .where((eb) => eb.or([eb('finished_at', 'is', null), eb('finished_at', '>=', p.since)])),
)

/** Ids of an account that retention must keep: runs with their messages, plain messages, bulk actions. */
const kept = read('model.kept', function* (args: Kept): Transaction<string[]> {
  const runs = yield* all(keptRuns, args)
  const seqs = new Set(runs.map(({ seq }) => seq))
  const messages = (yield* all(keptMessages, args)).filter(({ group_key }) => group_key === null || seqs.has(group_key))
  const actions = yield* all(keptActions, args)
  return [
    ...runs.map(({ run_id }) => run_id),
    ...messages.map(({ message_id }) => message_id),
    ...actions.map(({ action_id }) => action_id),
  ]
})

/** The waiting messages of an account. */
export interface Waiting {
  readonly messages: number
  /** Earliest due time; `Infinity` if all wait for their turns. */
  readonly dueAt: number
}

const waitingOf = query<{ accountId: string }, { state: MessageState; next_at: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['state', 'next_at'])
    .where('account_id', '=', p.accountId)
    .where('finished_at', 'is', null),
)
const readWaiting = read('model.waiting', function* (args: { accountId: string }): Transaction<Waiting> {
  const rows = yield* all(waitingOf, args)
  const due = rows.filter(({ state }) => state === 'pending').map(({ next_at }) => next_at)
  return { messages: rows.length, dueAt: Math.min(...due) }
})

/** Reads the waiting messages of an account. */
export const waitingMessages = (store: Store, accountId: string): Promise<Waiting> =>
  store.run(readWaiting, { accountId })

/** Queues with their turns and open messages. */
export interface QueueState {
  readonly queues: readonly { readonly name: string; readonly parallelism: number; readonly paused: number }[]
  readonly turns: readonly { readonly message_seq: number; readonly queue: string }[]
  readonly messages: readonly {
    readonly seq: number
    readonly kind: string
    readonly state: MessageState
    readonly queue: string | null
    readonly slot_seq: number | null
  }[]
}

type OfAccount = { accountId: string }
const queuesOf = query<OfAccount, QueueState['queues'][number]>(({ db, p }) =>
  db.selectFrom('queues').select(['name', 'parallelism', 'paused']).where('account_id', '=', p.accountId),
)
const turnsOf = query<OfAccount, QueueState['turns'][number]>(({ db, p }) =>
  db.selectFrom('queue_turns').select(['message_seq', 'queue']).where('account_id', '=', p.accountId),
)
const openMessages = query<OfAccount, QueueState['messages'][number]>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'kind', 'state', 'queue', 'slot_seq'])
    .where('account_id', '=', p.accountId)
    .where('finished_at', 'is', null),
)

/** Reads the queues of an account, their turns, and all messages that have not ended. */
export const readQueues = read('model.queues', function* (args: OfAccount): Transaction<QueueState> {
  const queues = yield* all(queuesOf, args)
  return { queues, turns: yield* all(turnsOf, args), messages: yield* all(openMessages, args) }
})

const copies = query<OfAccount, { copies: number }>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select((q) => q.fn.countAll<number>().as('copies'))
    .where('account_id', '=', p.accountId)
    .where('kind', '=', 'http')
    .where('body', 'is not', null)
    .where('state', '<>', 'failed')
    .groupBy('body')
    .orderBy('copies', 'desc')
    .limit(1),
)

/** The largest number of plain messages with the same body, failed ones excluded. */
export const maxCopies = read('model.maxCopies', function* (args: OfAccount): Transaction<number> {
  return (yield* all(copies, args))[0]?.copies ?? 0
})

const plainSeqs = query<OfAccount, { seq: number }>(({ db, p }) =>
  db.selectFrom('messages').select('seq').where('account_id', '=', p.accountId).where('kind', '=', 'http'),
)

/** The plain messages of an account in any state. */
export const plainMessages = read('model.plainMessages', function* (args: OfAccount): Transaction<number[]> {
  return (yield* all(plainSeqs, args)).map(({ seq }) => seq)
})

/** The columns of a message that an undo must bring back. */
export interface PlainRow {
  readonly seq: number
  readonly message_id: string
  readonly state: MessageState
  readonly queue: string | null
  readonly flow_key: string | null
  readonly next_at: number
  readonly finished_at: number | null
  readonly created_at: number
  readonly retried: number
  /** The message whose turn in its queue a callback belongs to, `messages.seq`. */
  readonly slot_seq: number | null
  readonly url: string
  readonly headers: string
  readonly config: string
  readonly schedule_id: string | null
}

const plainRows = query<OfAccount, PlainRow>(({ db, p }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'message_id', 'state', 'queue', 'flow_key', 'next_at', 'finished_at', 'created_at', 'retried'])
    .select(['url', 'headers', 'config', 'schedule_id', 'slot_seq'])
    .where('account_id', '=', p.accountId)
    .where('kind', '=', 'http')
    .orderBy('seq'),
)

/** The plain messages of an account, without their bodies. */
export const readPlain = read('model.plain', function* (args: OfAccount): Transaction<PlainRow[]> {
  return yield* all(plainRows, args)
})

interface ChunkState {
  readonly action_seq: number
  readonly seqs: Uint8Array | null
  readonly outcomes: Uint8Array | null
}

const actionsOf = query<OfAccount, bulkAction.BulkActionRow>(({ db, p }) =>
  db.selectFrom('bulk_actions').selectAll().where('account_id', '=', p.accountId),
)
const everyChunk = query<object, ChunkState>(({ db }) =>
  db.selectFrom('bulk_chunks').select(['action_seq', 'seqs', 'outcomes']),
)

/** The bulk actions of an account with their chunks. */
export const readActions = read('model.actions', function* (args: OfAccount): Transaction<
  { action: bulkAction.BulkActionRow; chunks: ChunkState[] }[]
> {
  const chunks = yield* all(everyChunk, {})
  const actions = yield* all(actionsOf, args)
  return actions.map((action) => ({ action, chunks: chunks.filter(({ action_seq }) => action_seq === action.seq) }))
})

const LIMIT = 50
/** Runs all retention sweeps. */
async function sweep(store: Store, finishedBefore: number, now: number): Promise<void> {
  const args = { finishedBefore, now, limit: LIMIT }
  await sweepKeys(
    store,
    { now, before: finishedBefore },
    () => Promise.resolve(),
    () => true,
  )
  await sweepRunKeys(store, finishedBefore, () => true)
  for (const operation of [messagesRetention.sweep, runsRetention.sweepRuns, bulkRetention.sweepActions]) {
    let after: number | undefined = 0
    while (after !== undefined) after = await store.run(operation, { ...args, after })
  }
}

/** Selects what retention deletes: ended runs up to a `runs.seq`, or everything that ended before a time. */
export type Old = { readonly upTo: number } | { readonly endedBefore: number }

/** Runs retention, and checks that it deletes nothing else. */
export async function retain(store: Store, accountId: string, old: Old, now: number): Promise<void> {
  const since = 'upTo' in old ? Number.MAX_SAFE_INTEGER : old.endedBefore
  const before = await store.run(kept, { accountId, since })
  if ('upTo' in old) await store.run(runsRetention.trimRuns, { after: 0, upTo: old.upTo, limit: 1_000 })
  else await sweep(store, since, now)
  const after = new Set(await store.run(kept, { accountId, since }))
  const lost = before.filter((id) => !after.has(id))
  if (lost.length > 0) throw new Error(`retention has deleted ${lost}, which had not ended, or just now`)
}

const ENDING = ['messages', 'runs', 'bulk_actions'] as const
const newestEnds = ENDING.map((table) =>
  query<{ accountId: string }, { at: number | null }>(({ db, p }) =>
    db
      .selectFrom(table)
      .select((q) => q.fn.max('finished_at').as('at'))
      .where('account_id', '=', p.accountId),
  ),
)
const readNewestEnds = read('model.newestEnds', function* (args: { accountId: string }): Transaction<number[]> {
  const found: number[] = []
  for (const newest of newestEnds) found.push((yield* only(newest, args)).at ?? 0)
  return found.sort((a, b) => a - b)
})

/** Runs retention with the newest end time of each table: rows that began earlier must stay. */
export async function retainLast(store: Store, accountId: string, now: number): Promise<void> {
  for (const endedBefore of await store.run(readNewestEnds, { accountId }))
    await retain(store, accountId, { endedBefore }, now)
}

/** Number of rows of each table. */
export type Census = ReadonlyMap<string, number>

/**
 * Deletes everything that has ended; returns the remaining rows. Sweeps several times, because a run stays until a sweep
 * finds that the run that resumed it is gone.
 */
export async function remains(store: Store): Promise<Census> {
  for (let before = ''; ; ) {
    await sweep(store, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    const counted = await store.run(countRows, {})
    if (JSON.stringify(counted) === before) return new Map(counted)
    before = JSON.stringify(counted)
  }
}

/** Checks that an ended simulation leaves no rows. @param before rows of earlier simulations. */
export async function checkNothingLeft(store: Store, before: Census): Promise<void> {
  const after = [...(await remains(store))]
  const left = after.filter(([table, rows]) => rows > (before.get(table) ?? 0))
  if (left.length > 0) throw new Error(`rows are never deleted from ${left.map(([table]) => table)}`)
}
