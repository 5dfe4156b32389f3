import { sql } from 'kysely'
import { read } from '../../store/operation.js'
import { query } from '../../store/query.js'
import type { MessageState } from '../../store/schema/messages.js'
import { all, type Transaction } from '../../store/statement.js'

/** Reads what pending messages wait for and why dead letters failed, for many at once and without their bodies. */

interface OfMessages {
  readonly seqs: readonly number[]
}

/** The last failed attempt of a pending message. */
export interface LastAttempt {
  readonly message_seq: number
  readonly headers: string
  readonly error: string | null
  /** The first bytes of the response. */
  readonly body: Uint8Array | null
}

/** Bytes of a response that are searched. */
const SEARCHED_BYTES = 4_096

const attemptsOf = query<OfMessages, LastAttempt>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .innerJoin('message_attempts', (join) =>
      join.onRef('message_seq', '=', 'messages.seq').on(sql<boolean>`message_attempts.retried = messages.retried - 1`),
    )
    .select(['message_seq', 'message_attempts.headers', 'message_attempts.error'])
    .select(sql<Uint8Array | null>`substr(message_attempts.body, 1, ${sql.lit(SEARCHED_BYTES)})`.as('body'))
    .where(d.inNumbers('messages.seq', p.seqs)),
)

/** The last failed attempts of pending messages, as part of another transaction. */
export function* lastAttempts(seqs: readonly number[]): Transaction<LastAttempt[]> {
  return seqs.length === 0 ? [] : yield* all(attemptsOf, { seqs })
}

/** A pending message. */
export interface PendingStanding {
  readonly seq: number
  readonly state: MessageState
  readonly retried: number
  readonly next_at: number
}

const pendingOf = query<OfMessages, PendingStanding>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'state', 'retried', 'next_at'])
    .where(d.inNumbers('seq', p.seqs))
    .where(sql<boolean>`state in ('pending', 'held')`),
)

/** Pending messages with their last failed attempts. */
export interface MessagesStanding {
  readonly pending: readonly PendingStanding[]
  readonly attempts: readonly LastAttempt[]
}

/** Reads what messages wait for, from one snapshot. Ended messages are left out. */
export const standing = read(
  'messages.standing',
  function* (args: OfMessages & { readonly attempts: boolean }): Transaction<MessagesStanding> {
    const pending = yield* all(pendingOf, args)
    const retried = args.attempts ? pending.filter((message) => message.retried > 0) : []
    return { pending, attempts: yield* lastAttempts(retried.map(({ seq }) => seq)) }
  },
  { turn: 'background' },
)

/** Why a message failed for good. */
export interface DeadStanding {
  readonly seq: number
  readonly retried: number
  readonly started_at: number | null
  readonly error: string | null
  /** The first bytes of the last response. */
  readonly body: Uint8Array | null
}

/** Written so that PostgreSQL finds the messages by number only, without the index of all dead letters. */
const deadOf = query<OfMessages, DeadStanding>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(['seq', 'retried', 'started_at', 'error'])
    .select(sql<Uint8Array | null>`substr(response_body, 1, ${sql.lit(SEARCHED_BYTES)})`.as('body'))
    .where(d.inNumbers('seq', p.seqs))
    .where(sql<boolean>`coalesce(dlq_id, '') <> ''`),
)

/** Reads why dead letters failed. */
export const deadStanding = read(
  'messages.deadStanding',
  (args: OfMessages): Transaction<DeadStanding[]> => all(deadOf, args),
  {
    turn: 'background',
  },
)
