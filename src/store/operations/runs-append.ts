import { all, insertAll, type Transaction } from '../operation.js'
import { query } from '../query.js'
import { insertMessages, type NewMessage, type PendingRow, toPendingRows } from './messages.js'
import { type DeliveryColumns, type ElementMeta, type NewElement, RUN_MESSAGE_KIND } from './runs-rows.js'

/** An element and the run whose list it joins. The run must be locked by the same transaction. */
export interface Appending {
  readonly accountId: string
  readonly runSeq: number
  readonly element: NewElement
}

const ends = query<{ seqs: readonly number[] }, { run_seq: number; last: number }>(({ db, p, d }) =>
  db
    .selectFrom('steps')
    .select((q) => ['run_seq', q.fn.max('position').as('last')])
    .where(d.inNumbers('run_seq', p.seqs))
    .groupBy('run_seq'),
)
const firstMetas = query<{ seqs: readonly number[] }, { run_seq: number; meta: string | null }>(({ db, p, d }) =>
  db.selectFrom('steps').select(['run_seq', 'meta']).where(d.inNumbers('run_seq', p.seqs)).where('position', '=', 0),
)

/**
 * Appends elements to the lists of runs, each with the message that delivers it, in the given order. Being part of a
 * transaction that has locked the runs, it gives every element a position of its own: exactly one list is the first to
 * hold all results of parallel steps.
 * @returns the new messages, for `queue.offer` after the commit.
 */
export function* appendElements(appending: readonly Appending[], at: number): Transaction<PendingRow[]> {
  yield* insertElements(appending, at)
  return yield* deliverElements(appending, at)
}

/** Appends elements whose messages are there already. */
export function* insertElements(appending: readonly Appending[], at: number): Transaction<void> {
  if (appending.length === 0) return
  const seqs = [...new Set(appending.map(({ runSeq }) => runSeq))]
  const positions = new Map((yield* all(ends, { seqs })).map((row) => [row.run_seq, row.last]))
  const steps = appending.map(({ runSeq, element }) => {
    const position = (positions.get(runSeq) ?? -1) + 1
    positions.set(runSeq, position)
    return stepRow(runSeq, position, element, at)
  })
  yield* insertAll('steps', steps)
}

/** Makes the messages that deliver elements which stand in their lists already. */
export function* deliverElements(delivering: readonly Appending[], at: number): Transaction<PendingRow[]> {
  if (delivering.length === 0) return []
  const defaults = yield* defaultDeliveries(delivering)
  const messages = delivering.map((one) => messageFor(one, deliveryOf(one, defaults), at))
  return toPendingRows(messages, yield* insertMessages(messages))
}

function stepRow(runSeq: number, position: number, element: NewElement, at: number) {
  const { messageId, kind, body, meta } = element
  return { run_seq: runSeq, position, message_id: messageId, kind, body, meta, created_at: at }
}

function messageFor({ accountId, runSeq, element }: Appending, delivery: DeliveryColumns, at: number): NewMessage {
  return {
    ...delivery,
    message_id: element.messageId,
    account_id: accountId,
    kind: RUN_MESSAGE_KIND,
    group_key: runSeq,
    body: null,
    next_at: element.dueAt,
    created_at: at,
  }
}

function* defaultDeliveries(appending: readonly Appending[]): Transaction<Map<number, DeliveryColumns>> {
  const seqs = [...new Set(appending.filter(({ element }) => !element.delivery).map(({ runSeq }) => runSeq))]
  const found = new Map<number, DeliveryColumns>()
  if (seqs.length === 0) return found
  for (const { run_seq, meta } of yield* all(firstMetas, { seqs })) {
    // Written by this room when the run was made.
    const { delivery } = JSON.parse(meta ?? '{}') as ElementMeta
    if (delivery) found.set(run_seq, delivery)
  }
  return found
}

function deliveryOf({ runSeq, element }: Appending, defaults: ReadonlyMap<number, DeliveryColumns>): DeliveryColumns {
  const delivery = element.delivery ?? defaults.get(runSeq)
  if (!delivery) throw new Error(`run ${runSeq} has no settings at the start of its list`)
  return delivery
}
