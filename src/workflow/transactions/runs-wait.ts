import { type Selectable, sql } from 'kysely'
import type { PendingRow } from '../../queue/transactions/messages.js'
import { intact } from '../../store/checksum.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { RunEventsTable, RunState, RunWaitsTable } from '../../store/schema/runs.js'
import { change, first, insertAll, only, type Transaction } from '../../store/statement.js'
import { type Appending, appendElements, deliverElements } from './runs-append.js'
import { answerOf } from './runs-repeats.js'
import type { DeliveryColumns } from './runs-rows.js'

/** A registered wait; JSON in `run_waits.wait`. `step` and `url` come first, because `sameWait` compares this beginning. */
export interface WaitRecord {
  /** The step to append when the wait ends, without its `out`. */
  readonly step: Readonly<Record<string, unknown>>
  /** As sent by the run; shown in lists of waiters. */
  readonly url: string
  readonly timeoutUrl: string
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** Delivery settings for the end of the wait. */
  readonly delivery?: DeliveryColumns
}

/** A request to wait for an event. */
export interface WaitArgs {
  readonly accountId: string
  readonly runId: string
  readonly eventId: string
  /** The message that delivers the end of the wait, by event or timeout. */
  readonly messageId: string
  readonly record: WaitRecord
  readonly deadline: number
  readonly at: number
}

/**
 * `notified`: the event had arrived before, so the wait ends immediately. `known`: this wait was registered before, and may
 * have ended. `full`: the run has the maximum of waits.
 */
export type WaitResult =
  | { readonly kind: 'waiting' | 'notified'; readonly offers: readonly PendingRow[] }
  | { readonly kind: 'known'; readonly messageId: string }
  | { readonly kind: 'ended'; readonly state: RunState }
  | { readonly kind: 'missing' | 'full' }

/** A stored wait. */
export type WaitRow = Selectable<RunWaitsTable>

const lockRun = query<{ accountId: string; runId: string }, { seq: number; state: RunState }>(({ db, p, d }) =>
  d.forUpdate(
    db.selectFrom('runs').select(['seq', 'state']).where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
  ),
)
/** Total size of the waits of a run, bytes. */
const sizeOfWaits = query<{ seq: number }, { bytes: number | null }>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select(sql<number | null>`sum(octet_length(wait))`.as('bytes'))
    .where('run_seq', '=', p.seq),
)
/**
 * Maximum size of the waits of a run: thousands of usual steps. A log reads all of them, and each new wait is compared with
 * the others while other writes wait.
 */
const MAX_BYTES_OF_WAITS = 8 * 2 ** 20

/** The wait of the same step, by the beginning of its record. */
const sameWait = query<{ seq: number; eventId: string; beginning: string }, { message_id: string }>(({ db, p, d }) =>
  db
    .selectFrom('run_waits')
    .select('message_id')
    .where('run_seq', '=', p.seq)
    .where('event_id', '=', p.eventId)
    .where(d.startsWith('wait', p.beginning))
    .orderBy('seq')
    .limit(1),
)
const storedEvents = query<
  { seq: number; eventId: string },
  Pick<Selectable<RunEventsTable>, 'seq' | 'data' | 'data_crc'>
>(({ db, p }) =>
  db
    .selectFrom('run_events')
    .select(['seq', 'data', 'data_crc'])
    .where('run_seq', '=', p.seq)
    .where('event_id', '=', p.eventId)
    .orderBy('seq')
    .limit(1),
)
const removeEvent = query<{ seq: number }>(({ db, p }) => db.deleteFrom('run_events').where('seq', '=', p.seq))

/** Takes the first event with this id that is kept for a run, as part of another transaction. @returns its data. */
export function* takeKept(
  { seq, runId }: { readonly seq: number; readonly runId: string },
  eventId: string,
): Transaction<Uint8Array | undefined> {
  const event = yield* first(storedEvents, { seq, eventId })
  if (!event) return undefined
  intact(event.data, event.data_crc, 'run_events', () => `an event of ${runId}`)
  yield* change(removeEvent, { seq: event.seq })
  return event.data
}

/** Registers a wait; a kept event ends it at once. */
export const wait = write('runs.wait', function* (args: WaitArgs): Transaction<WaitResult> {
  const run = yield* first(lockRun, { accountId: args.accountId, runId: args.runId })
  if (!run) return { kind: 'missing' }
  if (run.state !== 'RUN_STARTED') return { kind: 'ended', state: run.state }
  const beginning = `{"step":${JSON.stringify(args.record.step)},"url":`
  const known = yield* first(sameWait, { seq: run.seq, eventId: args.eventId, beginning })
  const messageId = known?.message_id ?? (yield* answerOf(run.seq, args.record.step))
  if (messageId !== undefined) return { kind: 'known', messageId }
  const data = yield* takeKept({ seq: run.seq, runId: args.runId }, args.eventId)
  if (data) return { kind: 'notified', offers: yield* appendElements([notified(args, run.seq, data)], args.at) }
  const { bytes } = yield* only(sizeOfWaits, { seq: run.seq })
  if (Number(bytes ?? 0) >= MAX_BYTES_OF_WAITS) return { kind: 'full' }
  return { kind: 'waiting', offers: yield* register(args, run.seq) }
})

function* register(args: WaitArgs, runSeq: number): Transaction<PendingRow[]> {
  const { accountId, eventId, messageId, record, deadline, at } = args
  const row = {
    account_id: accountId,
    run_seq: runSeq,
    event_id: eventId,
    message_id: messageId,
    deadline,
    created_at: at,
  }
  yield* insertAll('run_waits', [{ ...row, wait: JSON.stringify(record) }])
  const element = { kind: 'step' as const, messageId, body: new Uint8Array(), meta: null, dueAt: deadline }
  return yield* deliverElements([{ accountId, runSeq, element: withDelivery(element, record) }], at)
}

function notified(args: WaitArgs, runSeq: number, data: Uint8Array): Appending {
  const { accountId, messageId, record, eventId, at } = args
  const body = answeredStep(record, eventId, data)
  const meta = metaOfWait(at, args.deadline)
  const element = { kind: 'step' as const, messageId, body, meta, dueAt: at }
  return { accountId, runSeq, element: withDelivery(element, record) }
}

/** JSON that the element at the end of a wait keeps for the logs: start and deadline of the wait. */
export function metaOfWait(since: number, until: number): string {
  return JSON.stringify({ wait: { since, until } })
}

function withDelivery<Element extends object>(element: Element, { delivery }: WaitRecord) {
  return { ...element, ...(delivery && { delivery }) }
}

/** Builds the step that completes a wait with an event. */
export function answeredStep({ step }: WaitRecord, eventId: string, data: Uint8Array): Uint8Array {
  return Buffer.from(JSON.stringify({ ...step, waitEventId: eventId, out: Buffer.from(data).toString('base64') }))
}
