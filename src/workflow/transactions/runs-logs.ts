import { sql } from 'kysely'
import { isPending, type MessageRow } from '../../queue/transactions/messages.js'
import { dueTime } from '../../queue/transactions/messages-parked.js'
import { read } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { all, only, type Transaction } from '../../store/statement.js'
import { type MatchingRuns, matchingRuns, runsInOrder } from './runs-matching.js'
import { BYTES, listedElements, listedRuns, SIZE } from './runs-read.js'
import type { ElementRow, RunRow } from './runs-rows.js'
import { type UpcomingCancel, upcomingCancels } from './runs-upcoming.js'
import type { WaitRow } from './runs-wait.js'
import type { RunLogArgs, SearchEnd } from './runs-walk.js'

/** A pending message, with the columns that logs show. */
export type PendingStep = Pick<
  MessageRow,
  | 'seq'
  | 'message_id'
  | 'group_key'
  | 'retried'
  | 'max_retries'
  | 'next_at'
  | 'created_at'
  | 'config'
  | 'url'
  | 'flow_key'
>

/** A run that another one has invoked. */
export interface InvokedRun
  extends Pick<RunRow, 'seq' | 'run_id' | 'url' | 'state' | 'created_at' | 'parent_seq' | 'parent' | 'labels'> {
  /** The start of its payload; SQLite returns NULL for an empty one. */
  readonly payload: Uint8Array | null
  /** Its settings, JSON of `ElementMeta`. */
  readonly meta: string | null
}

/** Position of a due message among the messages of its flow-control key. */
export interface FlowPlace {
  readonly message_seq: number
  /** From 1, counting messages in flight. */
  readonly place: number
}

/** A run that was cancelled and brought back. The action is absent once retention has deleted it. */
export interface ReturnOfRun {
  readonly run_seq: number
  /** Unix milliseconds. */
  readonly cancelled_at: number
  readonly returned_at: number
  readonly action_id: string | null
  readonly actor: string | null
  readonly reason: string | null
}

/** A bulk action that cancelled runs. */
export interface CancelOfRuns {
  readonly seq: number
  readonly action_id: string
  readonly actor: string
  readonly reason: string | null
}

/** A failed attempt of a pending message. */
export interface PendingAttempt {
  readonly message_seq: number
  readonly started_at: number
  readonly status: number
  readonly headers: string
  readonly body: Uint8Array | null
  readonly error: string | null
  readonly retried: number
  readonly due_at: number | null
  readonly held_ms: number | null
  readonly finished_at: number | null
}

/** A failed attempt of a finished delivery. */
export interface PastAttempt extends Omit<PendingAttempt, 'message_seq'> {
  readonly run_seq: number
  /** The element that was delivered. */
  readonly message_id: string
}

/** The run that a trigger started in place of another one. */
export type Successor = Pick<RunRow, 'seq' | 'run_id' | 'created_at'>

/** A page of runs with all data of their logs. */
export interface RunLogPage {
  /** As many as requested, or as fit into a page. */
  readonly runs: readonly RunRow[]
  /** Whether other runs follow. */
  readonly more: boolean
  /** See `MatchingRuns`. */
  readonly searchedTo?: SearchEnd
  /** Failure callbacks come without their bodies. */
  readonly elements: readonly LoggedElement[]
  readonly pending: readonly PendingStep[]
  readonly attempts: readonly PendingAttempt[]
  /** Oldest first. */
  readonly pastAttempts: readonly PastAttempt[]
  readonly waits: readonly WaitRow[]
  /** Runs that they have invoked, oldest first; at most `MAX_INVOKED`. */
  readonly invoked: readonly InvokedRun[]
  /** Positions of due messages in `pending`; at most `MAX_PLACES`. */
  readonly flowPlaces: readonly FlowPlace[]
  /** The bulk actions that cancelled runs, unless deleted since. */
  readonly cancels: readonly CancelOfRuns[]
  readonly returns: readonly ReturnOfRun[]
  /** The runs that replaced others, unless deleted since. */
  readonly successors: readonly Successor[]
  /** The bulk actions that will cancel active runs. */
  readonly upcomingCancels: readonly UpcomingCancel[]
}

interface OfRuns {
  seqs: readonly number[]
}

/** Bytes of elements that are read for a page. Beyond that, only the beginning of each element of a run is read. */
const MAX_BYTES = 32 * 2 ** 20
/** Bytes of a cut element. Before its result, a step has little besides its name. */
const BEGINNING_BYTES = 1_024
/** The same limit for `meta`, mostly headers that every step repeats. Beyond it, only a short `meta` is read. */
const MAX_META_BYTES = 4 * 2 ** 20
const SHORT_META_BYTES = 1_024

/** Logs do not show the body of a failure callback, which may be larger than the rest of the run. */
const shownBody = ({
  p,
}: Building<{ cutAt: number }>) => sql<Uint8Array | null>`CASE WHEN kind = 'failureCall' THEN NULL
  WHEN position >= ${p.cutAt} THEN substr(body, 1, ${sql.lit(BEGINNING_BYTES)}) ELSE body END`

/** An element of a log. */
export interface LoggedElement extends ElementRow {
  /** Only the beginning of its body was read, unless it is short. */
  readonly isCut?: true
}

const shownMeta = ({ p }: Building<{ metaCutAt: number }>) => sql<string | null>`CASE
  WHEN position >= ${p.metaCutAt} AND octet_length(meta) > ${sql.lit(SHORT_META_BYTES)} THEN NULL ELSE meta END`

/** The positions from which `body` and `meta` of elements are cut. */
interface Cuts {
  readonly cutAt: number
  readonly metaCutAt: number
}

type ShownElement = Omit<ElementRow, 'body'> & { readonly body: Uint8Array | null }
const elementsOf = query<OfRuns & Cuts, ShownElement>((building) => {
  const { db, p, d } = building
  return db
    .selectFrom('steps')
    .select([
      'run_seq',
      'position',
      'message_id',
      'kind',
      'created_at',
      'timing',
      'body_crc',
      shownMeta(building).as('meta'),
      shownBody(building).as('body'),
    ])
    .where(d.inNumbers('run_seq', p.seqs))
    .orderBy('run_seq')
    .orderBy('position')
})
const NO_BODY = new Uint8Array()
/** A body that the log does not show is not read, so its checksum cannot be verified. */
const shownElement = (row: ShownElement, cutAt: number): LoggedElement => {
  const { body } = row
  if (body === null) return { ...row, body: NO_BODY, body_crc: null }
  return row.position < cutAt ? { ...row, body } : { ...row, body, body_crc: null, isCut: true }
}

const bytesOfElements = query<{ seq: number }, { bytes: number; meta_bytes: number }>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select([BYTES, sql<number>`coalesce(sum(octet_length(meta)), 0)`.as('meta_bytes')])
    .where('run_seq', '=', p.seq),
)
interface ElementSize {
  readonly position: number
  readonly bytes: number
  readonly meta_bytes: number
}
const sizesOfElements = query<{ seq: number }, ElementSize>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select(['position', SIZE, sql<number>`coalesce(octet_length(meta), 0)`.as('meta_bytes')])
    .where('run_seq', '=', p.seq)
    .orderBy('position'),
)

const UNCUT: Cuts = { cutAt: Number.MAX_SAFE_INTEGER, metaCutAt: Number.MAX_SAFE_INTEGER }

/** Where elements are cut. Only needed for one run: a page of several runs has only as many as fit. */
function* cutsOf(seqs: readonly number[], most: number): Transaction<Cuts> {
  const [seq, another] = seqs
  if (seq === undefined || another !== undefined) return UNCUT
  const { bytes, meta_bytes: metaBytes } = yield* only(bytesOfElements, { seq })
  // PostgreSQL answers a sum as a string.
  if (Number(bytes) <= most && Number(metaBytes) <= MAX_META_BYTES) return UNCUT
  const sizes = yield* all(sizesOfElements, { seq })
  return {
    cutAt: firstBeyond(sizes, most, (size) => size.bytes),
    metaCutAt: firstBeyond(sizes, MAX_META_BYTES, (size) => size.meta_bytes),
  }
}

/** The position of the first element with which the total exceeds `most`. */
function firstBeyond(sizes: readonly ElementSize[], most: number, measure: (size: ElementSize) => number): number {
  let total = 0
  const over = sizes.find((size) => {
    total += measure(size)
    return total > most
  })
  return over?.position ?? Number.MAX_SAFE_INTEGER
}
const pendingOf = query<OfRuns, PendingStep>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'message_id', 'group_key', 'retried', 'max_retries', 'next_at', 'created_at'])
    .select(['config', 'url', 'flow_key'])
    .where(d.inNumbers('group_key', p.seqs))
    .where(isPending)
    .orderBy('seq'),
)
const ATTEMPT_COLUMNS = [
  ...(['started_at', 'status', 'headers', 'error'] as const),
  ...(['retried', 'due_at', 'held_ms', 'finished_at'] as const),
]
/** Bytes of the response to a failed attempt that logs show; the same are kept of attempts of finished deliveries. */
const ATTEMPT_BODY_BYTES = 4_096
/** Failed attempts of pending deliveries in a log: the newest. A run may have thousands of parallel branches. */
const MAX_ATTEMPTS = 1_000

const newestAttempts = query<OfRuns, PendingAttempt>(({ db, p, d }) =>
  db
    .selectFrom('message_attempts')
    .select(['message_seq', ...ATTEMPT_COLUMNS])
    .select(sql<Uint8Array | null>`substr(body, 1, ${sql.lit(ATTEMPT_BODY_BYTES)})`.as('body'))
    .where(d.inNumbers('message_seq', p.seqs))
    .orderBy('finished_at', 'desc')
    .orderBy('retried', 'desc')
    .limit(MAX_ATTEMPTS),
)

function* attemptsOf(seqs: readonly number[]): Transaction<PendingAttempt[]> {
  const newest = yield* all(newestAttempts, { seqs })
  return newest.sort((one, other) => one.message_seq - other.message_seq || one.retried - other.retried)
}

const pastAttemptsOf = query<OfRuns, PastAttempt>(({ db, p, d }) =>
  db
    .selectFrom('run_attempts')
    .select(['run_seq', 'message_id', 'body', ...ATTEMPT_COLUMNS])
    .where(d.inNumbers('run_seq', p.seqs))
    .orderBy('started_at'),
)
const waitsOf = query<OfRuns, WaitRow>(({ db, p, d }) =>
  db.selectFrom('run_waits').selectAll().where(d.inNumbers('run_seq', p.seqs)).orderBy('seq'),
)
const MAX_INVOKED = 1_000
/** Bytes of an invoked run's payload that its step shows. */
const PAYLOAD_BYTES = 4_096

const invokedBy = query<OfRuns, InvokedRun>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .innerJoin('steps', (join) => join.onRef('steps.run_seq', '=', 'runs.seq').on('steps.position', '=', sql.lit(0)))
    .select(['runs.seq', 'run_id', 'url', 'state', 'runs.created_at', 'parent_seq', 'parent', 'labels', 'steps.meta'])
    .select(sql<Uint8Array | null>`substr(steps.body, 1, ${sql.lit(PAYLOAD_BYTES)})`.as('payload'))
    .where('parent_seq', 'is not', null)
    .where(d.inNumbers('parent_seq', p.seqs))
    .orderBy('runs.seq')
    .limit(MAX_INVOKED),
)

/** All returns of runs, oldest first, with the action that brought the run back. */
const returnsOf = query<OfRuns, ReturnOfRun>(({ db, p, d }) =>
  db
    .selectFrom('run_returns')
    .leftJoin('bulk_actions', 'bulk_actions.seq', 'run_returns.returned_by')
    .select(['run_seq', 'cancelled_at', 'returned_at', 'action_id', 'actor', 'reason'])
    .where(d.inNumbers('run_seq', p.seqs))
    .orderBy('run_returns.seq'),
)

const cancelsOf = query<OfRuns, CancelOfRuns>(({ db, p, d }) =>
  db.selectFrom('bulk_actions').select(['seq', 'action_id', 'actor', 'reason']).where(d.inNumbers('seq', p.seqs)),
)

const successorsOf = query<OfRuns, Successor>(({ db, p, d }) =>
  db.selectFrom('runs').select(['seq', 'run_id', 'created_at']).where(d.inNumbers('seq', p.seqs)),
)

/** Maximum position that is counted. */
const MAX_PLACE = 10_000
/** Maximum positions of a page. Counting is expensive if many messages wait, and a person reads no more of them. */
const MAX_PLACES = 20

const aheadOf = query<{ accountId: string; flowKey: string; nextAt: number; seq: number }, { ahead: number }>(
  ({ db, p }) =>
    db
      .selectFrom((eb) =>
        eb
          .selectFrom('messages')
          .select('seq')
          .where('account_id', '=', p.accountId)
          .where('flow_key', '=', p.flowKey)
          .where('finished_at', 'is', null)
          .where(sql<boolean>`(next_at, seq) < (${p.nextAt}, ${p.seq})`)
          .limit(MAX_PLACE)
          .as('line'),
      )
      .select((eb) => eb.fn.countAll<number>().as('ahead')),
)

/** Reads a page of runs with all data of their logs, from one snapshot. */
export const logPage = read('runs.logPage', function* (args: RunLogArgs): Transaction<RunLogPage> {
  return yield* withLogs(args, yield* matchingRuns(args))
})

/** Reads these runs with all data of their logs, in this order, from one snapshot. */
export const logPageOf = read('runs.logPageOf', function* (args: ChosenRuns): Transaction<RunLogPage> {
  return yield* withLogs(args, yield* runsInOrder(args.seqs))
})

/** Runs of an account, by `runs.seq`. */
interface ChosenRuns extends Pick<RunLogArgs, 'accountId' | 'now'> {
  readonly seqs: readonly number[]
}

function* withLogs(
  args: Pick<RunLogArgs, 'accountId' | 'now' | 'maxBytes'>,
  { runs, ...rest }: MatchingRuns,
): Transaction<RunLogPage> {
  const seqs = runs.map((run) => run.seq)
  const cuts = yield* cutsOf(seqs, args.maxBytes ?? MAX_BYTES)
  const pending = (yield* all(pendingOf, { seqs })).map((message) => ({
    ...message,
    next_at: dueTime(message.next_at),
  }))
  return {
    runs: yield* listedRuns(runs),
    ...rest,
    pending,
    elements: yield* listedElements(
      (yield* all(elementsOf, { seqs, ...cuts })).map((row) => shownElement(row, cuts.cutAt)),
    ),
    attempts: yield* attemptsOf(pending.map((message) => message.seq)),
    pastAttempts: yield* all(pastAttemptsOf, { seqs }),
    waits: yield* all(waitsOf, { seqs }),
    invoked: yield* all(invokedBy, { seqs }),
    flowPlaces: yield* flowPlaces(args, pending),
    cancels: yield* cancelsAmong(runs),
    returns: yield* all(returnsOf, { seqs }),
    successors: yield* successorsAmong(runs),
    upcomingCancels: yield* upcomingCancels(args.accountId, startedAmong(runs)),
  }
}

const startedAmong = (runs: readonly RunRow[]): number[] =>
  runs.filter(({ state }) => state === 'RUN_STARTED').map(({ seq }) => seq)

function* cancelsAmong(runs: readonly RunRow[]): Transaction<CancelOfRuns[]> {
  const seqs = [...new Set(runs.flatMap(({ canceled_by }) => (canceled_by === null ? [] : [canceled_by])))]
  return seqs.length > 0 ? yield* all(cancelsOf, { seqs }) : []
}

function* successorsAmong(runs: readonly RunRow[]): Transaction<Successor[]> {
  const seqs = runs.flatMap(({ replaced_by }) => replaced_by ?? [])
  return seqs.length > 0 ? yield* all(successorsOf, { seqs }) : []
}

function* flowPlaces(
  { accountId, now = 0 }: Pick<RunLogArgs, 'accountId' | 'now'>,
  pending: readonly PendingStep[],
): Transaction<FlowPlace[]> {
  const places: FlowPlace[] = []
  for (const { seq, flow_key: flowKey, next_at: nextAt } of pending) {
    if (flowKey === null || nextAt > now || places.length === MAX_PLACES) continue
    const { ahead } = yield* only(aheadOf, { accountId, flowKey, nextAt, seq })
    places.push({ message_seq: seq, place: ahead + 1 })
  }
  return places
}
