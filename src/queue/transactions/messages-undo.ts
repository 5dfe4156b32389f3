import { sql } from 'kysely'
import { query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import { storeFlowKeys } from './flow-keys.js'
import {
  bodyColumns,
  MAX_ROW_BODY_BYTES,
  PENDING_COLUMNS,
  type PendingRow,
  partitionColumn,
  type StoredPending,
  withIntactBodies,
} from './messages.js'
import { advanceOrMakeAll, continueTurns } from './queue-turns.js'
import { moveBursts } from './rule-keys.js'

/** The cancelled messages to bring back. */
export interface UndoMessagesArgs {
  /** `messages.seq`; those that are not cancelled are ignored. */
  readonly seqs: readonly number[]
  readonly accountId: string
  /** Only messages that were cancelled between these times, inclusive, Unix milliseconds. */
  readonly from: number
  readonly to: number
  /** `original`: due as before the cancel; `hold`: later by the time that they were cancelled; `now`: at once. */
  readonly clock: 'original' | 'hold' | 'now'
  /** Unix milliseconds. */
  readonly at: number
}

interface Ended {
  readonly seq: number
  readonly account_id: string
  readonly queue: string | null
  readonly next_at: number
}

const lockCancelled = query<UndoMessagesArgs, { seq: number; message_id: string; finished_at: number }>(
  ({ db, p, d }) =>
    d.forUpdate(
      db
        .selectFrom('messages')
        .select(['seq', 'message_id', sql<number>`finished_at`.as('finished_at')])
        .where(d.inNumbers('seq', p.seqs))
        .where(d.alsoIs('account_id', p.accountId))
        .where('state', '=', sql.lit('canceled'))
        // A message that was replaced by another has an error text. It was not cancelled by a bulk action.
        .where('error', 'is', null)
        .where('finished_at', '>=', p.from)
        .where('finished_at', '<=', p.to)
        .orderBy('seq'),
    ),
)
/** A message of a queue is held again and takes its place by the time of its publication, unless its turn has not ended. */
const bringBack = query<Omit<UndoMessagesArgs, 'accountId' | 'from' | 'to'>, Ended>(({ db, p, d }) =>
  db
    .updateTable('messages')
    .set({
      state: sql<'held' | 'pending'>`case when queue is null then 'pending' else 'held' end`,
      finished_at: null,
      // A clock that was set back must not bring due times forward.
      next_at: sql<number>`case when ${p.clock} = 'now' then ${p.at}
        when ${p.clock} = 'hold' and ${p.at} > finished_at then next_at + ${p.at} - finished_at else next_at end`,
    })
    .where(d.inNumbers('seq', p.seqs))
    .returning(['seq', 'account_id', 'queue', 'next_at']),
)
const rowsOf = query<{ seqs: readonly number[] }, StoredPending>(({ db, p, d }) =>
  db
    .selectFrom('messages')
    .select(PENDING_COLUMNS)
    .select(partitionColumn(d))
    .select(bodyColumns(MAX_ROW_BODY_BYTES))
    .where(d.inNumbers('seq', p.seqs)),
)

const waitingForTurn = (row: PendingRow): PendingRow => ({ ...row, body: null, held: true })

const NONE: ReadonlySet<number> = new Set()

/** Brings cancelled messages back, with their bodies, settings and failed attempts, as part of another transaction. */
export function* undoMessages(args: UndoMessagesArgs): Transaction<{ seqs: number[]; offers: PendingRow[] }> {
  const cancelled = yield* all(lockCancelled, args)
  const seqs = cancelled.map(({ seq }) => seq)
  if (seqs.length === 0) return { seqs, offers: [] }
  const { accountId, clock, at } = args
  if (clock === 'hold') {
    const byMs = cancelled.map((row) => [row.message_id, Math.max(0, at - row.finished_at)] as const)
    yield* moveBursts(accountId, new Map(byMs))
  }
  const back = yield* all(bringBack, { seqs, clock, at })
  const queues = back.flatMap(({ account_id: accountId, queue: name }) => (name === null ? [] : [{ accountId, name }]))
  const inTurn = queues.length > 0 ? yield* continueTurns(seqs) : NONE
  const rows = withIntactBodies(yield* all(rowsOf, { seqs }))
  yield* storeFlowKeys(rows)
  const turns = yield* advanceOrMakeAll(queues, at)
  const begun = new Set(turns.map(({ seq }) => seq))
  const others = rows.filter(({ seq }) => !begun.has(seq))
  const offers = others.map((row) => (row.queue === null || inTurn.has(row.seq) ? row : waitingForTurn(row)))
  return { seqs, offers: [...offers, ...turns] }
}
