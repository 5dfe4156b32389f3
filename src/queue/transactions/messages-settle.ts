import type { Insertable } from 'kysely'
import { checksumOf } from '../../store/checksum.js'
import { change, insertAll, type Transaction, together, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessageAttemptsTable } from '../../store/schema/messages.js'
import { insertMessages, type NewMessage, type PendingRow } from './messages.js'
import { joinBodies, partBodies } from './messages-packed.js'
import { endTurns } from './queue-turns.js'

/** What an attempt brought, in the store's words. */
export interface AttemptRecord {
  readonly startedAt: number
  /** 0 when there was no answer. */
  readonly status: number
  /** JSON object of header name to array of values. */
  readonly headers: string
  readonly body: Uint8Array | null
  readonly error: string | null
}

/** What the attempt means for its message. */
export type MessageEnd =
  /** Delivered; the row is kept for the logs, or deleted when its owner keeps a log of its own. */
  | { readonly kind: 'delivered'; readonly keep: boolean }
  | { readonly kind: 'retry'; readonly nextAt: number }
  /** Failed forever; `dlqId` puts it into the dead letter queue. */
  | { readonly kind: 'failed'; readonly dlqId: string | null }

/** The outcome of one attempt. */
export interface SettleArgs {
  readonly seq: number
  /** The attempt that this is the outcome of; an outcome of any other attempt changes nothing. */
  readonly retried: number
  readonly at: number
  readonly attempt: AttemptRecord
  readonly end: MessageEnd
  /** Messages that follow from it, such as callbacks. */
  readonly follow: readonly NewMessage[]
  /** The message of a queue whose turn this message is part of: its own number, or the one its callback is for. */
  readonly turn?: number
}

/** `gone`: the message is no longer pending (cancelled, say) or past this attempt; nothing was changed. */
export type SettleResult =
  | {
      readonly kind: 'settled'
      readonly followSeqs: readonly number[]
      /** Messages of the queue whose turn has come. */
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
export const finish = query<Finishing>(({ db, p }) =>
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
    .where('state', '=', 'pending')
    .where('retried', '=', p.retried),
)

const remove = query<{ seq: number; retried: number }>(({ db, p }) =>
  db.deleteFrom('messages').where('seq', '=', p.seq).where('state', '=', 'pending').where('retried', '=', p.retried),
)

const postpone = query<{ seq: number; retried: number; nextRetried: number; nextAt: number }>(({ db, p }) =>
  db
    .updateTable('messages')
    .set({ retried: p.nextRetried, next_at: p.nextAt })
    .where('seq', '=', p.seq)
    .where('state', '=', 'pending')
    .where('retried', '=', p.retried),
)

function* finishAs(args: SettleArgs, state: 'delivered' | 'failed', dlqId: string | null): Transaction<boolean> {
  const { seq, retried, at, attempt } = args
  const { startedAt, status, headers, body, error } = attempt
  const bodyCrc = checksumOf(body)
  const values = { seq, retried, state, at, startedAt, status, headers, body, bodyCrc, error, dlqId }
  return (yield* change(finish, values)) === 1
}

/** Of an answer that another attempt follows, so much is kept, and the newest so many of them. */
const ATTEMPT_BODY_BYTES = 64 * 1024
const MOST_ATTEMPTS = 100

const forgetAttempts = query<{ seq: number; upTo: number }>(({ db, p }) =>
  db.deleteFrom('message_attempts').where('message_seq', '=', p.seq).where('retried', '<=', p.upTo),
)

function* retryAt(args: SettleArgs, nextAt: number): Transaction<boolean> {
  const { seq, retried, at, attempt } = args
  if ((yield* change(postpone, { seq, retried, nextRetried: retried + 1, nextAt })) !== 1) return false
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
  }
  yield* insertAll('message_attempts', [row])
  if (retried >= MOST_ATTEMPTS) yield* change(forgetAttempts, { seq, upTo: retried - MOST_ATTEMPTS })
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

/** Writes the outcome of an attempt, as part of another transaction; check for `gone` before doing more. */
export function* settleMessage(args: SettleArgs): Transaction<SettleResult> {
  if (!(yield* apply(args))) return { kind: 'gone' }
  const followSeqs = yield* insertMessages(args.follow)
  const isOver = args.turn !== undefined && args.end.kind !== 'retry'
  return { kind: 'settled', followSeqs, next: isOver && args.turn ? yield* endTurns([args.turn]) : [] }
}

/** Writes the outcome of an attempt together with the messages that follow from it. */
export const settle = write('messages.settle', settleMessage)

/** The delivery of a message from which nothing follows and that nobody waits for: what nearly all attempts come to. */
export interface Delivery {
  readonly seq: number
  /** The attempt that has delivered it; when the message is past it, nothing is changed. */
  readonly retried: number
  readonly at: number
  readonly attempt: Omit<AttemptRecord, 'error'>
}

/** How long it may wait for a commit that somebody else needs anyway. */
const PATIENCE_MS = 5

/** Writes a delivery; the row is kept for the logs. */
function* finishDelivered({ seq, retried, at, attempt }: Delivery): Transaction<void> {
  const { startedAt, status, headers, body } = attempt
  const state = 'delivered'
  const bodyCrc = checksumOf(body)
  yield* change(finish, {
    seq,
    retried,
    state,
    at,
    startedAt,
    status,
    headers,
    body,
    bodyCrc,
    error: null,
    dlqId: null,
  })
}

const packRow = ({ seq, retried, at, attempt }: Delivery) =>
  [seq, retried, at, attempt.startedAt, attempt.status, attempt.headers, attempt.body?.byteLength ?? null] as const

/** Many deliveries in a form that costs little to copy: lists of values, and all bodies in one piece. */
interface PackedDeliveries {
  readonly rows: readonly ReturnType<typeof packRow>[]
  readonly bodies: Uint8Array
}

const deliverPacked = write('messages.deliverPacked', function* (packed: PackedDeliveries): Transaction<void> {
  const { rows, bodies } = packed
  const parts = partBodies(
    bodies,
    rows.map((row) => row[6]),
  )
  for (const [index, [seq, retried, at, startedAt, status, headers]] of rows.entries()) {
    yield* finishDelivered({ seq, retried, at, attempt: { startedAt, status, headers, body: parts[index] ?? null } })
  }
})

function joinDeliveries(all: readonly Delivery[]): PackedDeliveries {
  return {
    rows: all.map(packRow),
    bodies: joinBodies(all.map(({ attempt }) => attempt.body)),
  }
}

/** Writes that a message was delivered. */
export const deliver = write('messages.deliver', finishDelivered, {
  patienceMs: PATIENCE_MS,
  together: together(deliverPacked, { join: joinDeliveries, split: (_result, all) => all.map(() => undefined) }),
})
