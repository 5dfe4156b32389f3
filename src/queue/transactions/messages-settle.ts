import type { Insertable } from 'kysely'
import { checksumOf } from '../../store/checksum.js'
import { combineCalls, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessageAttemptsTable } from '../../store/schema/messages.js'
import { change, insertAll, type Transaction, type UpdateRow, updateEach } from '../../store/statement.js'
import { insertMessages, isPending, type NewMessage, type PendingRow } from './messages.js'
import { joinBodies, splitBodies } from './messages-packed.js'
import { madeAtSql, movedToSql } from './messages-parked.js'
import { endTurns } from './queue-turns.js'

/** The result of an attempt, in the form of its columns. */
export interface AttemptRecord {
  readonly startedAt: number
  /** 0 when there was no response. */
  readonly status: number
  /** JSON object of header name to array of values. */
  readonly headers: string
  readonly body: Uint8Array | null
  readonly error: string | null
  /** When the attempt was due, and how long it waited for its flow-control key; for kinds that show it. */
  readonly wait?: { readonly dueAt: number; readonly heldMs: number } | undefined
}

/** The effect of an attempt on its message. */
export type MessageEnd =
  /** Delivered. The row is kept for the logs, or deleted when the owning module keeps a log of its own. */
  | { readonly kind: 'delivered'; readonly keep: boolean }
  | { readonly kind: 'retry'; readonly nextAt: number }
  /** Failed for good. `dlqId` puts it into the dead letter queue. */
  | { readonly kind: 'failed'; readonly dlqId: string | null }

/** The outcome of one attempt. */
export interface SettleArgs {
  readonly seq: number
  /** The attempt of this outcome. If the message has another attempt, nothing changes. */
  readonly retried: number
  readonly at: number
  readonly attempt: AttemptRecord
  readonly end: MessageEnd
  /** New messages that follow, such as callbacks. */
  readonly follow: readonly NewMessage[]
  /**
   * The message of a queue whose turn this message is part of: its own number, or that of the message it is a callback
   * of.
   */
  readonly turn?: number
}

/** `gone`: the message is no longer pending (cancelled, for example) or has a later attempt. Nothing changed. */
export type SettleResult =
  | {
      readonly kind: 'settled'
      readonly followSeqs: readonly number[]
      /** Messages of the queue that got the next turn. */
      readonly next: readonly PendingRow[]
    }
  | { readonly kind: 'gone' }

interface Finishing {
  seq: number
  retried: number
  state: 'delivered' | 'failed'
  at: number
  startedAt: number
  status: number
  headers: string
  body: Uint8Array | null
  bodyCrc: number | null
  error: string | null
  dlqId: string | null
}

/** Ends a message with its last attempt. */
const finish = query<Finishing>(({ db, p }) =>
  db
    .updateTable('messages')
    .set({
      state: p.state,
      finished_at: p.at,
      started_at: p.startedAt,
      response_status: p.status,
      response_headers: p.headers,
      response_body: p.body,
      response_crc: p.bodyCrc,
      error: p.error,
      dlq_id: p.dlqId,
    })
    .where('seq', '=', p.seq)
    .where(isPending)
    .where('retried', '=', p.retried),
)

const remove = query<{ seq: number; retried: number }>(({ db, p }) =>
  db.deleteFrom('messages').where('seq', '=', p.seq).where(isPending).where('retried', '=', p.retried),
)

const postpone = query<{ seq: number; retried: number; nextRetried: number; nextAt: number; at: number }>(({ db, p }) =>
  db
    .updateTable('messages')
    .set({ retried: p.nextRetried, next_at: movedToSql(p.nextAt), created_at: madeAtSql(p.at) })
    .where('seq', '=', p.seq)
    .where(isPending)
    .where('retried', '=', p.retried),
)

function* finishAs(args: SettleArgs, state: 'delivered' | 'failed', dlqId: string | null): Transaction<boolean> {
  const { seq, retried, at, attempt } = args
  const { startedAt, status, headers, body, error } = attempt
  const bodyCrc = checksumOf(body)
  const values = { seq, retried, state, at, startedAt, status, headers, body, bodyCrc, error, dlqId }
  return (yield* change(finish, values)) === 1
}

/** Bytes kept of the response to an attempt that is retried, and the number of such attempts kept for a message. */
const ATTEMPT_BODY_BYTES = 64 * 1024
const MAX_ATTEMPTS = 100

const forgetAttempts = query<{ seq: number; upTo: number }>(({ db, p }) =>
  db.deleteFrom('message_attempts').where('message_seq', '=', p.seq).where('retried', '<=', p.upTo),
)

function* retryAt(args: SettleArgs, nextAt: number): Transaction<boolean> {
  const { seq, retried, at, attempt } = args
  if ((yield* change(postpone, { seq, retried, nextRetried: retried + 1, nextAt, at })) !== 1) return false
  const row: Insertable<MessageAttemptsTable> = {
    message_seq: seq,
    retried,
    started_at: attempt.startedAt,
    finished_at: at,
    status: attempt.status,
    headers: attempt.headers,
    body: attempt.body?.subarray(0, ATTEMPT_BODY_BYTES) ?? null,
    error: attempt.error,
    next_at: nextAt,
    due_at: attempt.wait?.dueAt ?? null,
    held_ms: attempt.wait?.heldMs ?? null,
  }
  yield* insertAll('message_attempts', [row])
  if (retried >= MAX_ATTEMPTS) yield* change(forgetAttempts, { seq, upTo: retried - MAX_ATTEMPTS })
  return true
}

function* apply(args: SettleArgs): Transaction<boolean> {
  const { seq, retried, end } = args
  switch (end.kind) {
    case 'delivered':
      return end.keep ? yield* finishAs(args, 'delivered', null) : (yield* change(remove, { seq, retried })) === 1
    case 'retry':
      return yield* retryAt(args, end.nextAt)
    case 'failed':
      return yield* finishAs(args, 'failed', end.dlqId)
  }
}

/** Writes the outcome of an attempt within another transaction. Check for `gone` before doing more. */
export function* settleMessage(args: SettleArgs): Transaction<SettleResult> {
  if (!(yield* apply(args))) return { kind: 'gone' }
  const followSeqs = yield* insertMessages(args.follow)
  const isOver = args.turn !== undefined && args.end.kind !== 'retry'
  return { kind: 'settled', followSeqs, next: isOver && args.turn ? yield* endTurns([args.turn]) : [] }
}

/** Writes the outcome of an attempt together with its follow-up messages. */
export const settle = write('messages.settle', settleMessage)

/** A delivery without follow-ups, which is the outcome of nearly all attempts. */
export interface Delivery {
  readonly seq: number
  /** The attempt that delivered it. If the message has a later attempt, nothing changes. */
  readonly retried: number
  readonly at: number
  readonly attempt: Omit<AttemptRecord, 'error'>
}

/** How long a delivery may wait to share another commit. */
const MAX_DELAY_MS = 5

/** Writes deliveries. The rows stay for the logs. */
function* finishDelivered(deliveries: readonly Delivery[]): Transaction<void> {
  yield* updateEach('messages', deliveries.map(deliveredRow), {
    match: ['seq', 'retried'],
    where: { state: 'pending' },
  })
}

function deliveredRow({ seq, retried, at, attempt }: Delivery): UpdateRow<'messages'> {
  const { startedAt, status, headers, body } = attempt
  return {
    seq,
    retried,
    state: 'delivered',
    finished_at: at,
    started_at: startedAt,
    response_status: status,
    response_headers: headers,
    response_body: body,
    response_crc: checksumOf(body),
  }
}

const packRow = ({ seq, retried, at, attempt }: Delivery) =>
  [seq, retried, at, attempt.startedAt, attempt.status, attempt.headers, attempt.body?.byteLength ?? null] as const

/** Many deliveries packed for another thread: lists of values, and all bodies in one buffer. */
interface PackedDeliveries {
  readonly rows: readonly ReturnType<typeof packRow>[]
  readonly bodies: Uint8Array
}

const deliverPacked = write('messages.deliverPacked', function* (packed: PackedDeliveries): Transaction<void> {
  const { rows, bodies } = packed
  const split = splitBodies(
    bodies,
    rows.map((row) => row[6]),
  )
  yield* finishDelivered(
    rows.map(([seq, retried, at, startedAt, status, headers], index) => {
      return { seq, retried, at, attempt: { startedAt, status, headers, body: split[index] ?? null } }
    }),
  )
})

const deliverAll = write('messages.deliverAll', finishDelivered, { isSingle: () => true })

function joinDeliveries(all: readonly Delivery[]): PackedDeliveries {
  return {
    rows: all.map(packRow),
    bodies: joinBodies(all.map(({ attempt }) => attempt.body)),
  }
}

/** Writes that a message was delivered. */
export const deliver = write('messages.deliver', (delivery: Delivery) => finishDelivered([delivery]), {
  maxDelayMs: MAX_DELAY_MS,
  isSingle: () => true,
  combining: combineCalls(deliverPacked, {
    join: joinDeliveries,
    here: { operation: deliverAll, join: (all) => all },
    split: (_result, all) => all.map(() => undefined),
    bytesOf: ({ attempt }) => attempt.body?.byteLength ?? 0,
  }),
})
