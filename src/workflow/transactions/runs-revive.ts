import { sql } from 'kysely'
import { configUnder } from '../../queue/transactions/flow-keys.js'
import { insertMessages, type NewMessage, type PendingRow, toPendingRows } from '../../queue/transactions/messages.js'
import { intact } from '../../store/checksum.js'
import { read, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, change, insertAll, only, type Transaction } from '../../store/statement.js'
import { insertElements } from './runs-append.js'
import { type DeadRunPlace, type DeadRunSelector, deadAmong, removeDeadLetters, selectPlaces } from './runs-dead.js'
import { insertRun } from './runs-locked.js'
import { answered } from './runs-notify.js'
import { notifyParents } from './runs-parents.js'
import { type PausedWorkflow, parkBegun } from './runs-pause.js'
import { dropRemains, type RemainRow, readRemains } from './runs-remains.js'
import {
  type ChildEnd,
  type DeliveryColumns,
  type NewRun,
  type ParentLink,
  RUN_MESSAGE_KIND,
  type RunRow,
} from './runs-rows.js'
import { takeKept, type WaitRecord } from './runs-wait.js'

/** The data from which a dead letter is revived. Without the record of its failure, which may have megabytes. */
export interface DeadRun
  extends Pick<RunRow, 'seq' | 'run_id' | 'dlq_id' | 'url' | 'host' | 'path' | 'contact' | 'flow_key' | 'caller_ip'> {
  /** The settings of its trigger, JSON of `ElementMeta`. */
  readonly meta: string | null
  /** Why it failed. */
  readonly reason: string | null
}

const firstMetas = query<{ seqs: readonly number[] }, { run_seq: number; meta: string | null }>(({ db, p, d }) =>
  db.selectFrom('steps').select(['run_seq', 'meta']).where(d.inNumbers('run_seq', p.seqs)).where('position', '=', 0),
)

/** Reads a page of dead letters that are about to be revived. */
export const revivable = read('runs.revivable', function* (selector: DeadRunSelector): Transaction<{
  runs: DeadRun[]
  next?: DeadRunPlace
}> {
  const { places, ...rest } = yield* selectPlaces(selector)
  const seqs = places.map(({ seq }) => seq)
  const runs = new Map((yield* revivableAmong(seqs, selector.accountId)).map((run) => [run.seq, run]))
  return { runs: seqs.map((seq) => runs.get(seq)).filter((run) => run !== undefined), ...rest }
})

const deadBySeq = query<{ seqs: readonly number[]; accountId: string }, Omit<DeadRun, 'meta'>>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select(['seq', 'run_id', 'dlq_id', 'url', 'host', 'path', 'contact', 'flow_key', 'caller_ip'])
    .select(d.member('failure', 'reason').as('reason'))
    .where(d.inNumbers('seq', p.seqs))
    .where('account_id', '=', p.accountId)
    .where('dlq_id', 'is not', null),
)

/** Reads the runs that are still dead letters. */
export function* revivableAmong(seqs: readonly number[], accountId: string): Transaction<DeadRun[]> {
  const runs = yield* all(deadBySeq, { seqs, accountId })
  const rows = yield* all(firstMetas, { seqs: runs.map((run) => run.seq) })
  const metas = new Map(rows.map((row) => [row.run_seq, row.meta]))
  return runs.map((run) => ({ ...run, meta: metas.get(run.seq) ?? null }))
}

/** Changes to the delivery settings of a revived run. */
export interface RunRevision {
  readonly maxRetries?: number
  /** Fields that replace those of the stored configuration. */
  readonly config: Readonly<Record<string, unknown>>
  /** Headers that replace stored ones, in Title-Case. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly flowKey?: string
  readonly labels?: string
}

/** Applies a revision to delivery settings. */
export function revised(delivery: DeliveryColumns, revision: RunRevision): DeliveryColumns {
  const isSameKey = revision.flowKey === undefined || revision.flowKey === delivery.flow_key
  return {
    ...delivery,
    config: JSON.stringify({ ...configUnder(delivery.config, isSameKey), ...revision.config }),
    headers: JSON.stringify({ ...JSON.parse(delivery.headers), ...revision.headers }),
    max_retries: revision.maxRetries ?? delivery.max_retries,
    ...(revision.flowKey !== undefined && { flow_key: revision.flowKey }),
    ...(revision.labels !== undefined && { labels: revision.labels }),
  }
}

interface Revivable {
  /** The dead letter, as `runs.seq`. */
  readonly seq: number
  /** The run that replaces it. */
  readonly run: NewRun
  /** JSON of `ElementMeta` for the first element of the new list. */
  readonly meta: string
}

/** Begins again from the payload: keeps only the first element, which this message delivers. */
interface Restart extends Revivable {
  readonly kind: 'restart'
  readonly messageId: string
  readonly opening: DeliveryColumns
}

/** Keeps the list, and delivers the messages and waits that were pending when the run failed. */
interface Resumption extends Revivable {
  readonly kind: 'resume'
  readonly revision: RunRevision
}

/** A plan to revive a dead letter. */
export type Revival = Restart | Resumption

/** Dead letters to revive in one transaction. */
export interface ReviveArgs {
  readonly accountId: string
  readonly revivals: readonly Revival[]
  /** Earliest time of the first deliveries, Unix milliseconds. */
  readonly dueAt: number
  readonly at: number
  /** Paused workflows that the runs belong to. Absent: none. */
  readonly paused?: readonly PausedWorkflow[] | undefined
}

/** The new runs, by `seq` of their dead letters; letters that are gone by now are left out. */
export interface Revived {
  readonly revived: readonly { readonly seq: number; readonly runId: string }[]
  readonly offers: readonly PendingRow[]
}

const copyFirst = query<{ from: number; to: number; messageId: string; meta: string; at: number }>(({ db, p }) =>
  db
    .insertInto('steps')
    .columns(['run_seq', 'position', 'message_id', 'kind', 'body', 'body_crc', 'meta', 'created_at'])
    .expression((q) =>
      q
        .selectFrom('steps')
        .select([
          sql<number>`cast(${p.to} as bigint)`.as('run_seq'),
          'position',
          sql<string>`cast(${p.messageId} as text)`.as('message_id'),
          'kind',
          'body',
          'body_crc',
          sql<string>`cast(${p.meta} as text)`.as('meta'),
          sql<number>`cast(${p.at} as bigint)`.as('created_at'),
        ])
        .where('run_seq', '=', p.from)
        .where('position', '=', 0),
    ),
)
const copyList = query<{ from: number; to: number }>(({ db, p }) =>
  db
    .insertInto('steps')
    .columns(['run_seq', 'position', 'message_id', 'kind', 'body', 'body_crc', 'meta', 'created_at', 'timing'])
    .expression((q) =>
      q
        .selectFrom('steps')
        .select([
          sql<number>`cast(${p.to} as bigint)`.as('run_seq'),
          'position',
          'message_id',
          'kind',
          'body',
          'body_crc',
          'meta',
          'created_at',
          'timing',
        ])
        .where('run_seq', '=', p.from)
        .where('kind', '!=', 'failureCall'),
    ),
)
const setFirstMeta = query<{ seq: number; meta: string }>(({ db, p }) =>
  db.updateTable('steps').set({ meta: p.meta }).where('run_seq', '=', p.seq).where('position', '=', 0),
)
const setResumedAs = query<{ from: number; to: number }>(({ db, p }) =>
  db.updateTable('runs').set({ resumed_as: p.to }).where('seq', '=', p.from),
)
const moveEvents = query<{ from: number; to: number }>(({ db, p }) =>
  db.updateTable('run_events').set({ run_seq: p.to }).where('run_seq', '=', p.from),
)

/** Revives dead letters as new runs, and removes the letters. */
export const revive = write('runs.revive', reviveRuns)

/** Does the same as part of another transaction. */
export function* reviveRuns(args: ReviveArgs): Transaction<Revived> {
  const seqs = args.revivals.map((revival) => revival.seq)
  const dead = new Set(yield* deadAmong(seqs, args.accountId))
  const mine = args.revivals.filter((revival) => dead.has(revival.seq))
  const remains = yield* readRemains([...dead])
  const revived: { seq: number; runId: string }[] = []
  const begun: { seq: number; url: string }[] = []
  const offers: PendingRow[] = []
  for (const revival of mine) {
    const to = yield* makeRun(revival, args)
    const rest = remains.filter((remain) => remain.run_seq === revival.seq)
    offers.push(...(yield* revival.kind === 'restart' ? restart(revival, to, args) : resume(revival, to, rest, args)))
    revived.push({ seq: revival.seq, runId: revival.run.run_id })
    begun.push({ seq: to, url: revival.run.url })
  }
  yield* removeDeadLetters([...dead])
  yield* dropRemains([...dead])
  return { revived, offers: yield* parkBegun(begun, offers, args.paused) }
}

function* makeRun({ run }: Revival, { accountId, at }: ReviveArgs): Transaction<number> {
  const row = { ...run, account_id: accountId, created_at: at, parent_seq: null, parent: null }
  return (yield* only(insertRun, row)).seq
}

function* restart(restarted: Restart, to: number, args: ReviveArgs): Transaction<PendingRow[]> {
  const { seq, meta, messageId, opening } = restarted
  yield* change(copyFirst, { from: seq, to, messageId, meta, at: args.at })
  return yield* deliver([messageOf(to, messageId, opening, args.dueAt, args)])
}

function* resume(
  resumed: Resumption,
  to: number,
  remains: readonly RemainRow[],
  args: ReviveArgs,
): Transaction<PendingRow[]> {
  const { seq, meta } = resumed
  yield* change(copyList, { from: seq, to })
  yield* change(setFirstMeta, { seq: to, meta })
  yield* change(setResumedAs, { from: seq, to })
  yield* change(moveEvents, { from: seq, to })
  const messages = remains.filter(({ kind }) => kind === 'message').map((row) => pendingAgain(row, to, resumed, args))
  const waits = yield* restoreWaits(remains, resumed, to, args)
  return [...(yield* deliver([...messages, ...waits])), ...(yield* adoptChildren(seq, to, args.at))]
}

function pendingAgain(row: RemainRow, to: number, { run, revision }: Resumption, args: ReviveArgs): NewMessage {
  // Written by `remainsToKeep`.
  const delivery = JSON.parse(row.data) as DeliveryColumns
  // Calls to third parties keep their own settings.
  const settings = delivery.url === run.url ? revised(delivery, revision) : delivery
  return messageOf(to, row.message_id, settings, Math.max(row.due_at, args.dueAt), args)
}

/** Restores pending waits. Waits whose event arrived while the run was a dead letter end immediately. */
function* restoreWaits(
  remains: readonly RemainRow[],
  { run, meta }: Resumption,
  to: number,
  args: ReviveArgs,
): Transaction<NewMessage[]> {
  const waits = remains.filter(({ kind }) => kind === 'wait').map((row) => waitAgain(row, to, args))
  const came = new Map<string, Uint8Array>()
  // One event ends all waits for its id.
  for (const eventId of new Set(waits.map((wait) => wait.event_id))) {
    const data = yield* takeKept({ seq: to, runId: run.run_id }, eventId)
    if (data) came.set(eventId, data)
  }
  const lasting = waits.filter((wait) => !came.has(wait.event_id))
  yield* insertAll('run_waits', lasting)
  const steps = waits.flatMap((wait) => {
    const data = came.get(wait.event_id)
    return data ? [answered(wait, data, args.at)] : []
  })
  yield* insertElements(steps, args.at)
  // Written by this module when it accepted the trigger.
  const { delivery: ofRun } = JSON.parse(meta) as { delivery: DeliveryColumns }
  return waits.map(({ wait, event_id, message_id, deadline }) => {
    const { delivery = ofRun } = JSON.parse(wait) as WaitRecord
    return messageOf(to, message_id, delivery, came.has(event_id) ? args.dueAt : deadline, args)
  })
}

function waitAgain({ message_id, due_at: deadline, data }: RemainRow, to: number, args: ReviveArgs) {
  // Written by `remainsToKeep`.
  const { event_id, wait } = JSON.parse(data) as { event_id: string; wait: string }
  return { account_id: args.accountId, run_seq: to, event_id, message_id, deadline, created_at: args.at, wait }
}

function messageOf(
  to: number,
  messageId: string,
  delivery: DeliveryColumns,
  nextAt: number,
  { accountId, at }: ReviveArgs,
): NewMessage {
  return {
    ...delivery,
    message_id: messageId,
    account_id: accountId,
    kind: RUN_MESSAGE_KIND,
    group_key: to,
    body: null,
    next_at: nextAt,
    created_at: at,
  }
}

function* deliver(messages: readonly NewMessage[]): Transaction<PendingRow[]> {
  return toPendingRows(messages, yield* insertMessages(messages))
}

type Child = Pick<RunRow, 'seq' | 'state' | 'parent'>

const invokedRunsOf = query<{ seq: number }, Child>(({ db, p, d }) =>
  d.forUpdate(
    db.selectFrom('runs').select(['seq', 'state', 'parent']).where('parent_seq', '=', p.seq).orderBy('seq', 'desc'),
  ),
)
const setParent = query<{ seqs: readonly number[]; parent: number }>(({ db, p, d }) =>
  db.updateTable('runs').set({ parent_seq: p.parent }).where(d.inNumbers('seq', p.seqs)),
)
const stepsOf = query<{ seq: number }, { message_id: string }>(({ db, p }) =>
  db.selectFrom('steps').select('message_id').where('run_seq', '=', p.seq),
)

/** Links invoked runs whose end the dead run did not receive to the new run. Reports those that have ended. */
function* adoptChildren(from: number, to: number, at: number): Transaction<PendingRow[]> {
  const children = yield* all(invokedRunsOf, { seq: from })
  if (children.length === 0) return []
  const reported = new Set((yield* all(stepsOf, { seq: to })).map((step) => step.message_id))
  const unreported = children.filter(
    ({ parent }) => !reported.has((JSON.parse(parent ?? '{}') as ParentLink).messageId),
  )
  yield* change(setParent, { seqs: unreported.map((child) => child.seq), parent: to })
  const offers: PendingRow[] = []
  for (const child of unreported.filter((child) => child.state !== 'RUN_STARTED')) {
    const end = yield* childEndOf(child)
    offers.push(...(yield* notifyParents([{ parent_seq: to, parent: child.parent }], end, at)))
  }
  return offers
}

const responseOf = query<{ seq: number }, Pick<RunRow, 'response' | 'response_crc'>>(({ db, p }) =>
  db.selectFrom('runs').select(['response', 'response_crc']).where('seq', '=', p.seq),
)

/** The report of the end of an invoked run. Takes one run at a time, because the returned value may be large. */
export function* childEndOf({ seq, state }: Pick<RunRow, 'seq' | 'state'>): Transaction<ChildEnd> {
  const isCanceled = state === 'RUN_CANCELED'
  const isFailed = state === 'RUN_FAILED'
  if (state !== 'RUN_SUCCESS') return { isCanceled, isFailed }
  const found = yield* only(responseOf, { seq })
  const response = intact(found.response, found.response_crc, 'runs', () => 'what an invoked run returned')
  return { ...(response !== null && { body: response }), isCanceled, isFailed }
}
