import { sql } from 'kysely'
import { storeFlowKeys } from '../../queue/transactions/flow-keys.js'
import {
  askToInsert,
  insertMessages,
  type NewMessage,
  type PendingRow,
  toPendingRows,
} from '../../queue/transactions/messages.js'
import { parkedUntil } from '../../queue/transactions/messages-parked.js'
import { placeInStore } from '../../queue/transactions/priority.js'
import { checksumOf } from '../../store/checksum.js'
import { query } from '../../store/query.js'
import { all, askInsert, atOnce, insertAll, only, type Transaction } from '../../store/statement.js'
import { askRemoveCarried } from './runs-done.js'
import { type DeliveryColumns, type ElementMeta, type NewElement, RUN_MESSAGE_KIND } from './runs-rows.js'

/** An element and the run to whose list it is appended. The same transaction must have locked the run. */
export interface Appending {
  readonly accountId: string
  readonly runSeq: number
  readonly element: NewElement
}

/** An element for which only the message is made. */
type Delivering = Omit<Appending, 'element'> & {
  readonly element: Pick<NewElement, 'messageId' | 'dueAt' | 'delivery'>
}

const endOf = query<{ seq: number }, { last: number | null }>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select((q) => q.fn.max('position').as('last'))
    .where('run_seq', '=', p.seq),
)
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

/** Selects paused runs. A run that has failed does not count as paused, so that its failure callback is delivered. */
const pausedAmong = query<{ seqs: readonly number[] }, { seq: number }>(({ db, p, d }) =>
  db
    .selectFrom('runs')
    .select('seq')
    .where(d.inNumbers('seq', p.seqs))
    .where('paused_at', 'is not', null)
    .where(sql<boolean>`state || '' = 'RUN_STARTED'`),
)

/**
 * Appends elements to the lists of runs in the given order, and makes the message that delivers each. The transaction has
 * locked the runs, so every element gets its own position, and exactly one list is the first to hold all results of
 * parallel steps.
 * @returns the new messages, for `queue.offer` after the commit.
 */
export function* appendElements(appending: readonly Appending[], at: number): Transaction<PendingRow[]> {
  yield* insertElements(appending, at)
  return yield* deliverElements(appending, at)
}

/** Appends elements without making their messages. @returns their positions, in order. */
export function* insertElements(appending: readonly Appending[], at: number): Transaction<number[]> {
  if (appending.length === 0) return []
  const positions = yield* lastPositions([...new Set(appending.map(({ runSeq }) => runSeq))])
  const steps = appending.map(({ runSeq, element }) => stepRow(runSeq, nextOf(positions, runSeq), element, at))
  yield* insertAll('steps', steps)
  return steps.map(({ position }) => position)
}

/** The next position of a list, which is then its last one. */
function nextOf(positions: Map<number, number>, runSeq: number): number {
  const position = (positions.get(runSeq) ?? -1) + 1
  positions.set(runSeq, position)
  return position
}

/** Nearly always there is one run, and the query for one run is cheaper than that for a list. */
function* lastPositions(seqs: readonly number[]): Transaction<Map<number, number>> {
  const [seq] = seqs
  if (seqs.length > 1 || seq === undefined) {
    return new Map((yield* all(ends, { seqs })).map((row) => [row.run_seq, row.last]))
  }
  const { last } = yield* only(endOf, { seq })
  return new Map(last === null ? [] : [[seq, last]])
}

/** The end of the list of a locked run: its last position, and the settings of its first element. */
export interface ListEnd {
  readonly run_seq: number
  /** Set while the run is paused. */
  readonly paused_at: number | null
  readonly last: number | null
  readonly meta: string | null
}

/** The new elements and messages of a transaction. */
export interface Appended {
  /** Positions of the appended elements, in order. */
  readonly positions: readonly number[]
  /** The messages of the appended elements, then the messages of elements that are delivered again. */
  readonly messages: readonly PendingRow[]
  /** The carried deliveries that have ended. */
  readonly removed: readonly number[]
}

/** A part of a request, with the time of the request. */
type Timed<What> = What & { readonly at: number }

/**
 * Appends elements as `appendElements` does, and makes messages for them and for elements that are in the lists already.
 * The transaction must have read the lists after it locked their runs, and no statement may follow.
 * @param more `carried`: deliveries that end with the transaction; `held`: new runs that are paused.
 */
export function* appendAndEnd(
  appending: readonly Timed<Appending>[],
  delivering: readonly Timed<Delivering>[],
  lists: readonly ListEnd[],
  { carried = [], held = [] }: { readonly carried?: readonly number[]; readonly held?: readonly number[] } = {},
): Transaction<Appended> {
  const ends = new Map(lists.map(({ run_seq, last }) => [run_seq, last ?? -1]))
  const steps = appending.map(({ runSeq, element, at }) => stepRow(runSeq, nextOf(ends, runSeq), element, at))
  const defaults = new Map<number, DeliveryColumns>()
  for (const { run_seq, meta } of lists) noteDelivery(defaults, run_seq, meta)
  for (const { run_seq, position, meta } of steps) if (position === 0) noteDelivery(defaults, run_seq, meta)
  const paused = new Set([...held, ...lists.flatMap(({ run_seq, paused_at }) => (paused_at === null ? [] : [run_seq]))])
  const made = [...appending, ...delivering].map((one) => messageFor(one, deliveryOf(one, defaults), one.at))
  const messages = parkedOf(made, paused)
  if (messages.length === 0) return { positions: [], messages: [], removed: [] }
  yield* storeFlowKeys(messages)
  const storing = steps.length > 0 ? [askInsert('steps', steps)] : []
  // Last, so that the transaction does not keep messages locked while it waits for something.
  const removing = carried.length > 0 ? [askRemoveCarried(carried)] : []
  const results = yield* atOnce<readonly unknown[]>([...storing, askToInsert(messages), ...removing], 'last')
  // Safe: the results are in the order of the statements.
  const [seqs, removed = []] = results.slice(storing.length) as [number[], { seq: number }[]?]
  return {
    positions: steps.map(({ position }) => position),
    messages: toPendingRows(messages, seqs),
    removed: removed.map(({ seq }) => seq),
  }
}

/** Makes the messages that deliver elements which have been appended. */
export function* deliverElements(delivering: readonly Delivering[], at: number): Transaction<PendingRow[]> {
  if (delivering.length === 0) return []
  const defaults = yield* defaultDeliveries(delivering)
  const paused = new Set(
    (yield* all(pausedAmong, { seqs: delivering.map(({ runSeq }) => runSeq) })).map(({ seq }) => seq),
  )
  const made = delivering.map((one) => messageFor(one, deliveryOf(one, defaults), at))
  const messages = parkedOf(made, paused)
  return toPendingRows(messages, yield* insertMessages(messages))
}

/** Parks the messages of paused runs until their resume. */
function parkedOf(messages: readonly NewMessage[], paused: ReadonlySet<number>): readonly NewMessage[] {
  if (paused.size === 0) return messages
  const isPaused = ({ group_key }: NewMessage): boolean => group_key != null && paused.has(group_key)
  return messages.map((one) => (isPaused(one) ? { ...one, next_at: parkedUntil(one.next_at) } : one))
}

/** The columns of a new element. */
export function stepRow(runSeq: number, position: number, element: NewElement, at: number) {
  const { messageId, kind, body, meta, timing = null, cameAt: created_at = at } = element
  const body_crc = checksumOf(body)
  return { run_seq: runSeq, position, message_id: messageId, kind, body, body_crc, meta, created_at, timing }
}

/** The message that delivers an element. */
export function messageFor(
  { accountId, runSeq, element }: Delivering,
  delivery: DeliveryColumns,
  at: number,
): NewMessage {
  // Field by field: a spread costs ten times as much.
  return {
    message_id: element.messageId,
    account_id: accountId,
    kind: RUN_MESSAGE_KIND,
    group_key: runSeq,
    url: delivery.url,
    method: delivery.method,
    headers: delivery.headers,
    body: null,
    config: delivery.config,
    max_retries: delivery.max_retries,
    next_at: placeInStore(delivery.config, element.dueAt, at),
    created_at: at,
    labels: delivery.labels,
    flow_key: delivery.flow_key ?? null,
    caller_ip: delivery.caller_ip ?? null,
    host: delivery.host,
    path: delivery.path,
  }
}

function* defaultDeliveries(delivering: readonly Delivering[]): Transaction<Map<number, DeliveryColumns>> {
  const seqs = [...new Set(delivering.filter(({ element }) => !element.delivery).map(({ runSeq }) => runSeq))]
  const found = new Map<number, DeliveryColumns>()
  if (seqs.length === 0) return found
  for (const { run_seq, meta } of yield* all(firstMetas, { seqs })) noteDelivery(found, run_seq, meta)
  return found
}

function noteDelivery(deliveries: Map<number, DeliveryColumns>, runSeq: number, meta: string | null): void {
  // Written by this module when the run started.
  const { delivery } = JSON.parse(meta ?? '{}') as ElementMeta
  if (delivery) deliveries.set(runSeq, delivery)
}

function deliveryOf({ runSeq, element }: Delivering, defaults: ReadonlyMap<number, DeliveryColumns>): DeliveryColumns {
  const delivery = element.delivery ?? defaults.get(runSeq)
  if (!delivery) throw new Error(`run ${runSeq} has no settings in its first element`)
  return delivery
}
