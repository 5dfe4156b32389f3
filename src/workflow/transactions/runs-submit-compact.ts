import { sql } from 'kysely'
import { type NewMessage, toPendingRow, toRow } from '../../queue/transactions/messages.js'
import { compactCall, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { all, insertAll, insertNumbered, insertUnlessTaken, type Transaction } from '../../store/statement.js'
import { messageFor, stepRow } from './runs-append.js'
import { runRow } from './runs-locked.js'
import type { DeliveryColumns, NewElement, NewRun } from './runs-rows.js'
import type { SubmitArgs, SubmitResult } from './runs-submissions.js'
import { type Plain, plainOf, resultOf } from './runs-submit-one.js'

/**
 * The fast path of SQLite for nearly all requests: the start of a run, or a step of a run whose number and settings are
 * cached. Arguments and result cross the threads as short lists, and both sides build the message.
 *
 * The lists are written out by hand, and read in the same order: iterating over names would cost more than it saves.
 */

const packElement = (element: NewElement, delivery: DeliveryColumns) =>
  [
    element.messageId,
    element.body,
    element.meta,
    element.dueAt,
    element.timing ?? null,
    delivery.url,
    delivery.method,
    delivery.headers,
    delivery.config,
    delivery.max_retries,
    delivery.labels,
    delivery.caller_ip ?? null,
    delivery.host,
    delivery.path,
  ] as const

type PackedElement = ReturnType<typeof packElement>

const elementIn = (packed: PackedElement): NewElement => ({
  kind: 'step',
  messageId: packed[0],
  body: packed[1],
  meta: packed[2],
  dueAt: packed[3],
  timing: packed[4],
})

const deliveryIn = (packed: PackedElement): DeliveryColumns => ({
  url: packed[5],
  method: packed[6],
  headers: packed[7],
  config: packed[8],
  max_retries: packed[9],
  labels: packed[10],
  caller_ip: packed[11],
  host: packed[12],
  path: packed[13],
})

const packRun = (run: NewRun) =>
  [run.run_id, run.url, run.host, run.path, run.contact, run.labels, run.flow_key, run.caller_ip] as const

type PackedRun = ReturnType<typeof packRun>

const rowOf = (run: PackedRun, account_id: string, created_at: number) =>
  runRow({
    run_id: run[0],
    url: run[1],
    host: run[2],
    path: run[3],
    contact: run[4],
    labels: run[5],
    flow_key: run[6],
    caller_ip: run[7],
    account_id,
    created_at,
    parent_seq: null,
    parent: null,
  })

/** A run that exists: its id and its number. */
type PackedPlace = readonly [runId: string, runSeq: number]

type PackedArgs = readonly [accountId: string, at: number, element: PackedElement, run: PackedPlace | PackedRun]

/** The run, the position of the new element, and the number of the message that delivers it. */
type Stored = readonly [runSeq: number, position: number, seq: number]

/** Only steps without `cameAt` are packed. */
const isPackable = ({ kind, cameAt }: NewElement): boolean => kind === 'step' && cameAt === undefined

function packed({ accountId, at }: SubmitArgs, { submission, element, delivery }: Plain): PackedArgs | undefined {
  if (!isPackable(element)) return undefined
  const { deliveryOf } = element
  if (submission.kind === 'start')
    return [accountId, at, packElement(element, delivery), packRun(submission.run)] as const
  if (deliveryOf === undefined) return undefined
  return [accountId, at, packElement(element, delivery), [submission.runId, deliveryOf]] as const
}

const lastPosition = sql<number | null>`(select max(position) from steps where run_seq = runs.seq)`.as('last')

/** The end of the list of an active run that is not paused. Compares `run_id`, because cached settings may be outdated. */
const openList = query<{ accountId: string; runId: string; runSeq: number }, { last: number | null }>(({ db, p }) =>
  db
    .selectFrom('runs')
    .select(lastPosition)
    .where('seq', '=', p.runSeq)
    .where('account_id', '=', p.accountId)
    .where('run_id', '=', p.runId)
    .where('state', '=', sql.lit('RUN_STARTED'))
    .where('paused_at', 'is', null),
)

/** The number of the run, and the next position of its list; `undefined` if the fast path does not apply. */
function* placeFor([accountId, at, , run]: PackedArgs): Transaction<readonly [number, number] | undefined> {
  if (run.length !== 2) {
    const [runSeq] = yield* insertUnlessTaken('runs', [rowOf(run, accountId, at)], 'run_id', ['account_id', 'run_id'])
    return runSeq === undefined ? undefined : [runSeq, 0]
  }
  const [runId, runSeq] = run
  const [list] = yield* all(openList, { accountId, runId, runSeq })
  return list && [runSeq, (list.last ?? -1) + 1]
}

const storePacked = write('runs.submitPacked', function* (args: PackedArgs): Transaction<Stored | undefined> {
  const [accountId, at, element] = args
  const place = yield* placeFor(args)
  if (!place) return undefined
  const [runSeq, position] = place
  yield* insertAll('steps', [stepRow(runSeq, position, elementIn(element), at)])
  const message = messageOf(accountId, at, runSeq, { element: elementIn(element), delivery: deliveryIn(element) })
  const [seq = Number.NaN] = yield* insertNumbered('messages', [toRow(message)], 'message_id')
  return [runSeq, position, seq]
})

const messageOf = (
  accountId: string,
  at: number,
  runSeq: number,
  { element, delivery }: Pick<Plain, 'element' | 'delivery'>,
): NewMessage => messageFor({ accountId, runSeq, element }, delivery, at)

function unpacked([runSeq, position, seq]: Stored, args: SubmitArgs): SubmitResult {
  const plain = plainOf(args)
  if (!plain) throw new Error('a request that is not plain was stored as one')
  return {
    kind: 'accepted',
    results: [resultOf(plain.submission, args.at)],
    offers: [toPendingRow(messageOf(args.accountId, args.at, runSeq, plain), seq)],
    places: [{ messageId: plain.element.messageId, runSeq, position }],
  }
}

/** How SQLite stores most requests. */
export const submitCompactly = compactCall<SubmitArgs, SubmitResult, PackedArgs, Stored>(storePacked, {
  pack: (args) => {
    const plain = plainOf(args)
    return plain && packed(args, plain)
  },
  unpack: unpacked,
})
