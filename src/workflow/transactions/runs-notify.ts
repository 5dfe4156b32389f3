import { sql } from 'kysely'
import { isPending, PENDING_COLUMNS, type PendingRow, partitionColumn } from '../../queue/transactions/messages.js'
import { madeAtSql, movedToSql } from '../../queue/transactions/messages-parked.js'
import { checksumOf } from '../../store/checksum.js'
import { write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import {
  type Ask,
  all,
  askAll,
  atOnce,
  atOnceBefore,
  first,
  insertAll,
  only,
  type Transaction,
} from '../../store/statement.js'
import { type Appending, insertElements } from './runs-append.js'
import type { WaitersArgs } from './runs-awaited.js'
import { askNote, askNoteMore } from './runs-notified.js'
import type { RunRow } from './runs-rows.js'
import { answeredStep, metaOfWait, type WaitRecord, type WaitRow } from './runs-wait.js'

/** An event, for the runs that wait for it. */
export interface NotifyArgs {
  readonly accountId: string
  readonly eventId: string
  /** Notifies only this run, or the run that resumed it. The event is kept until the run waits for it. */
  readonly runId?: string
  readonly data: Uint8Array
  /** `webhook`: the address authorizes it, only for events of webhooks that the run has created. Absent: `token`. */
  readonly by?: 'token' | 'webhook'
  readonly at: number
  /** Where the previous batch ended; absent in the first batch. */
  readonly rest?: RestOfWaits | undefined
  /** Waits that a batch ends; for tests. */
  readonly most?: number
}

/** The waits that are left for the next batches: those that were registered before the event, and have not ended yet. */
export interface RestOfWaits {
  /** `run_waits.seq`, the first excluded, the last included. */
  readonly after: number
  readonly upTo: number
}

/** A wait that an event ended. */
export interface Released {
  readonly wait: WaitRow
  readonly runId: string
  readonly createdAt: number
}

/** Outcome of a notification. After the commit the caller passes `drop`, then `offers`, to the queue. */
export interface NotifyResult {
  readonly released: readonly Released[]
  readonly drop: readonly number[]
  readonly offers: readonly PendingRow[]
  /**
   * `unknown-run`: the run does not exist, has ended for good, or has no such webhook. `full`: the run already keeps the
   * maximum of events.
   */
  readonly kind: 'notified' | 'kept' | 'unknown-run' | 'full'
  /** Set if more waits are left for the next batch. */
  readonly rest: RestOfWaits | undefined
}

/** Maximum waits that one batch ends, and bytes of data that it stores for them, unless a single wait needs more. */
const WAITS_PER_BATCH = 1_000
const BYTES_PER_BATCH = 8 * 2 ** 20

/** Limits of the events that are kept for one run until it waits for them: their number, and bytes of data. */
const MAX_KEPT_EVENTS = 1_000
const MAX_KEPT_BYTES = 16 * 2 ** 20

interface Run {
  seq: number
  run_id: string
  created_at: number
}

/** A run with the columns that decide whether it may receive events. */
type TargetRun = Run & Pick<RunRow, 'state' | 'dlq_id' | 'resumed_as'>

const namedRun = query<{ accountId: string; runId: string }, TargetRun>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'run_id', 'created_at', 'state', 'dlq_id', 'resumed_as'])
      .where('account_id', '=', p.accountId)
      .where('run_id', '=', p.runId),
  ),
)
const runBySeq = query<{ seq: number }, TargetRun>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'run_id', 'created_at', 'state', 'dlq_id', 'resumed_as'])
      .where('seq', '=', p.seq),
  ),
)
const startedRuns = query<{ seqs: readonly number[] }, Run>(({ db, p, d }) =>
  d.forUpdate(
    db
      .selectFrom('runs')
      .select(['seq', 'run_id', 'created_at'])
      .where(d.inNumbers('seq', p.seqs))
      .where('state', '=', sql.lit('RUN_STARTED'))
      .orderBy('seq', 'desc'),
  ),
)
const waiting = query<WaitersArgs & { upTo: number }, Pick<WaitRow, 'seq' | 'run_seq'>>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select(['seq', 'run_seq'])
    .where('account_id', '=', p.accountId)
    .where('event_id', '=', p.eventId)
    .where('seq', '>', p.after)
    .where('seq', '<=', p.upTo)
    .orderBy('seq')
    .limit(p.limit),
)
const waitingOfRun = query<RestOfWaits & { runSeq: number; eventId: string; limit: number }, { seq: number }>(
  ({ db, p }) =>
    db
      .selectFrom('run_waits')
      .select('seq')
      .where('run_seq', '=', p.runSeq)
      .where('event_id', '=', p.eventId)
      .where('seq', '>', p.after)
      .where('seq', '<=', p.upTo)
      .orderBy('seq')
      .limit(p.limit),
)
const newestOfRun = query<{ runSeq: number; eventId: string }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select('seq')
    .where('run_seq', '=', p.runSeq)
    .where('event_id', '=', p.eventId)
    .orderBy('seq', 'desc')
    .limit(1),
)
const newestWait = query<{ accountId: string; eventId: string }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('run_waits')
    .select('seq')
    .where('account_id', '=', p.accountId)
    .where('event_id', '=', p.eventId)
    .orderBy('seq', 'desc')
    .limit(1),
)
const webhookOf = query<{ accountId: string; runId: string; eventId: string }, { seq: number }>(({ db, p }) =>
  db
    .selectFrom('run_webhooks')
    .select('run_seq as seq')
    .where('run_seq', '=', (q) =>
      q.selectFrom('runs').select('seq').where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
    )
    .where('event_id', '=', p.eventId),
)
const keptEvents = query<{ runSeq: number }, { events: number; bytes: number | null }>(({ db, p }) =>
  db
    .selectFrom('run_events')
    .select((q) => [q.fn.countAll<number>().as('events'), q.fn.sum<number>(q.fn('length', ['data'])).as('bytes')])
    .where('run_seq', '=', p.runSeq),
)
const claimWaits = query<{ seqs: readonly number[]; runs: readonly number[] }, WaitRow>(({ db, p, d }) =>
  db.deleteFrom('run_waits').where(d.inNumbers('seq', p.seqs)).where(d.inNumbers('run_seq', p.runs)).returningAll(),
)
const claimDeadline = query<{ runSeq: number; messageId: string }, WaitRow>(({ db, p }) =>
  db.deleteFrom('run_waits').where('run_seq', '=', p.runSeq).where('message_id', '=', p.messageId).returningAll(),
)
const bringForward = query<{ groups: readonly number[]; messageIds: readonly string[]; at: number }, PendingRow>(
  ({ db, p, d }) =>
    db
      .updateTable('messages')
      .set({ next_at: movedToSql(p.at), created_at: madeAtSql(p.at) })
      .where(d.inNumbers('group_key', p.groups))
      .where(d.inTexts('message_id', p.messageIds))
      .where(isPending)
      .returning(PENDING_COLUMNS)
      .returning(partitionColumn(d))
      .returning((q) => ['body', q.lit(0).as('body_bytes')]),
)

/**
 * Ends the waits for an event, one batch of them. If a run is named and does not wait yet, keeps the event for it.
 */
export const notify = write('runs.notify', function* (args: NotifyArgs): Transaction<NotifyResult> {
  const { runs, seqs, rest } = yield* targetRuns(args)
  const waits = seqs.length > 0 ? yield* all(claimWaits, { seqs, runs: runs.map((run) => run.seq) }) : []
  const bySeq = new Map(runs.map((run) => [run.seq, run]))
  const released = waits
    .sort((a, b) => a.seq - b.seq)
    .flatMap((wait): Released[] => {
      const run = bySeq.get(wait.run_seq)
      return run ? [{ wait, runId: run.run_id, createdAt: run.created_at }] : []
    })
  const kind = yield* kindOf(args, runs, released)
  const note = noteOf(
    args,
    kind,
    kind === 'kept' ? runs.map(({ seq }) => seq) : released.map(({ wait }) => wait.run_seq),
  )
  if (kind === 'kept') yield* insertKept(args, runs)
  return { released, kind, rest, ...(yield* release(released, args, note)) }
})

/** Asks to record the notification. Not for callers of unknown webhooks, because strangers could fill the store. */
function noteOf(args: NotifyArgs, kind: NotifyResult['kind'], runs: readonly number[]): readonly Ask<unknown>[] {
  const { accountId, eventId, by = 'token', data, at, rest } = args
  if (rest) return runs.length > 0 ? [askNoteMore({ accountId, eventId, at, runs })] : []
  if (kind === 'full' || (kind === 'unknown-run' && by === 'webhook')) return []
  const outcome = kind === 'kept' ? 'kept' : runs.length > 0 ? 'woke' : 'nobody'
  return [askNote({ accountId, eventId, source: by, outcome, runs, bytes: data.byteLength, at })]
}

/** The waits that a batch ends, `run_waits.seq`, and their locked runs. */
type Targets = Pick<NotifyResult, 'rest'> & { readonly runs: readonly Run[]; readonly seqs: readonly number[] }

const ALL: RestOfWaits = { after: 0, upTo: Number.MAX_SAFE_INTEGER }

/** Maximum waits of a batch. Each wait stores a copy of the data. */
const mostOf = ({ data, most = WAITS_PER_BATCH }: NotifyArgs): number =>
  Math.max(1, Math.min(most, Math.floor(BYTES_PER_BATCH / (data.byteLength + 1))))

function* targetRuns(args: NotifyArgs): Transaction<Targets> {
  const { accountId, eventId, runId, by, rest = ALL } = args
  const limit = mostOf(args)
  if (runId !== undefined) {
    const isKnown = by !== 'webhook' || (yield* first(webhookOf, { accountId, runId, eventId })) !== undefined
    const runs = isKnown ? yield* currentRun(accountId, runId) : []
    const [run] = runs
    if (!run) return { runs, seqs: [], rest: undefined }
    const ofRun = { runSeq: run.seq, eventId }
    const waits = yield* all(waitingOfRun, { ...ofRun, ...rest, limit })
    return { runs, seqs: seqsOf(waits), rest: yield* restAfter(args, waits, limit, () => only(newestOfRun, ofRun)) }
  }
  const waits = yield* all(waiting, { accountId, eventId, ...rest, limit })
  const runs = yield* all(startedRuns, { seqs: waits.map((wait) => wait.run_seq) })
  const newest = () => only(newestWait, { accountId, eventId })
  return { runs, seqs: seqsOf(waits), rest: yield* restAfter(args, waits, limit, newest) }
}

const seqsOf = (waits: readonly { readonly seq: number }[]): number[] => waits.map(({ seq }) => seq)

/**
 * The waits that are left for the next batch. They end with the newest wait at the time of the event, because a run that
 * continues may wait for the same event id again, and must not get this event twice.
 */
function* restAfter(
  { rest }: NotifyArgs,
  waits: readonly { readonly seq: number }[],
  limit: number,
  newest: () => Transaction<{ readonly seq: number }>,
): Transaction<RestOfWaits | undefined> {
  const last = waits.length < limit ? undefined : waits.at(-1)
  if (!last) return undefined
  const upTo = rest?.upTo ?? (yield* newest()).seq
  return last.seq < upTo ? { after: last.seq, upTo } : undefined
}

/**
 * The run with this id, or the run that resumed it: an id or webhook address from before a failure stays valid. Events
 * for a dead letter are kept, and move to the run that resumes it.
 */
function* currentRun(accountId: string, runId: string): Transaction<Run[]> {
  let run = yield* first(namedRun, { accountId, runId })
  while (run && run.resumed_as !== null) run = yield* first(runBySeq, { seq: run.resumed_as })
  return run && (run.state === 'RUN_STARTED' || run.dlq_id !== null) ? [run] : []
}

/** Decides the outcome of the notification. */
function* kindOf(
  args: NotifyArgs,
  runs: readonly Run[],
  released: readonly Released[],
): Transaction<NotifyResult['kind']> {
  if (args.runId === undefined || args.rest || released.length > 0) return 'notified'
  const [run] = runs
  if (!run) return 'unknown-run'
  const { events, bytes } = yield* only(keptEvents, { runSeq: run.seq })
  const isFull = events >= MAX_KEPT_EVENTS || Number(bytes ?? 0) + args.data.byteLength > MAX_KEPT_BYTES
  // With a token, the first event is kept regardless of its size.
  return isFull && (events > 0 || args.by === 'webhook') ? 'full' : 'kept'
}

/** Keeps the event for the run that does not wait yet. */
function insertKept({ eventId: event_id, data, at: created_at }: NotifyArgs, runs: readonly Run[]): Transaction<void> {
  const row = { event_id, data, data_crc: checksumOf(data), created_at }
  return insertAll(
    'run_events',
    runs.map(({ seq }) => ({ ...row, run_seq: seq })),
  )
}

/** Appends the completed steps; the messages of the deadlines deliver them, due now. */
function* release(
  released: readonly Released[],
  args: NotifyArgs,
  note: readonly Ask<unknown>[],
): Transaction<{ drop: number[]; offers: PendingRow[] }> {
  if (released.length === 0) {
    if (note.length > 0) yield* atOnce(note, 'last')
    return { drop: [], offers: [] }
  }
  const steps = released.map(({ wait }) => answered(wait, args.data, args.at))
  yield* insertElements(steps, args.at)
  const groups = released.map(({ wait }) => wait.run_seq)
  const messageIds = released.map(({ wait }) => wait.message_id)
  const offers = yield* atOnceBefore(note, askAll(bringForward, { groups, messageIds, at: args.at }))
  return { drop: offers.map((offer) => offer.seq), offers }
}

/** The step that ends a wait by an event. */
export const answered = (wait: Omit<WaitRow, 'seq'>, data: Uint8Array, at: number): Appending =>
  stepOf(wait, answeredStep(recordOf(wait), wait.event_id, data), at)

function stepOf(wait: Omit<WaitRow, 'seq'>, body: Uint8Array, at: number): Appending {
  const meta = metaOfWait(wait.created_at, wait.deadline)
  const element = { kind: 'step' as const, messageId: wait.message_id, body, meta, dueAt: at }
  return { accountId: wait.account_id, runSeq: wait.run_seq, element }
}

function recordOf(wait: Pick<WaitRow, 'wait'>): WaitRecord {
  // Written by this module when the wait was registered.
  return JSON.parse(wait.wait) as WaitRecord
}

/** Ends a wait at its deadline. `false`: the wait or its run had ended before. */
export const expireWait = write(
  'runs.expireWait',
  function* (args: { runSeq: number; messageId: string; at: number }): Transaction<boolean> {
    if ((yield* all(startedRuns, { seqs: [args.runSeq] })).length === 0) return false
    const wait = yield* first(claimDeadline, { runSeq: args.runSeq, messageId: args.messageId })
    if (!wait) return false
    const step = { ...recordOf(wait).step, waitEventId: wait.event_id, waitTimeout: true }
    yield* insertElements([stepOf(wait, Buffer.from(JSON.stringify(step)), args.at)], args.at)
    return true
  },
)
