import { sql } from 'kysely'
import { type NewMessage, toPendingRow, toRow } from '../../queue/transactions/messages.js'
import { all, compactCall, insertAll, insertNumbered, type Transaction, write } from '../../store/operation.js'
import { query } from '../../store/query.js'
import { messageFor, stepRow } from './runs-append.js'
import type { NewElement } from './runs-rows.js'
import type { SubmitArgs, SubmitResult } from './runs-submissions.js'
import { plainOf } from './runs-submit-one.js'

/**
 * What nearly all requests of programs ask for, as SQLite does it best: one step of a run whose number and delivery settings
 * are cached. Its arguments and its result cross the threads as short lists, and the message is built on both sides.
 */

type PackedStep = ReturnType<typeof packStep>

/** A step, and the run that its settings were cached for. */
interface CachedStep {
  readonly element: NewElement
  readonly delivery: NonNullable<NewElement['delivery']>
  readonly runId: string
  readonly runSeq: number
}

function cachedStepOf(args: SubmitArgs): CachedStep | undefined {
  const plain = plainOf(args)
  if (plain?.submission.kind !== 'append') return undefined
  const { element, delivery } = plain
  const { deliveryOf: runSeq } = element
  if (runSeq === undefined || element.kind !== 'step' || element.cameAt !== undefined) return undefined
  return { element, delivery, runId: plain.submission.runId, runSeq }
}

/** Written out, and read in the same order below: going over the names would cost more than what it saves. */
const packStep = ({ accountId, at }: SubmitArgs, { element, delivery, runId, runSeq }: CachedStep) =>
  [
    accountId,
    at,
    runId,
    runSeq,
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

const deliveryIn = (step: PackedStep): CachedStep['delivery'] => ({
  url: step[9],
  method: step[10],
  headers: step[11],
  config: step[12],
  max_retries: step[13],
  labels: step[14],
  caller_ip: step[15],
  host: step[16],
  path: step[17],
})

const elementIn = (step: PackedStep): NewElement => ({
  kind: 'step',
  messageId: step[4],
  body: step[5],
  meta: step[6],
  dueAt: step[7],
  timing: step[8],
})

const messageOf = (
  accountId: string,
  at: number,
  { runSeq, element, delivery }: Omit<CachedStep, 'runId'>,
): NewMessage => messageFor({ accountId, runSeq, element }, delivery, at)

const lastPosition = sql<number | null>`(select max(position) from steps where run_seq = runs.seq)`.as('last')

/** The end of the list of a run that takes steps and is not paused. Cached settings may be of an older run with the same id. */
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

/** The position of a step, and the number of the message that delivers it. */
type Appended = readonly [position: number, seq: number]

const appendStep = write('runs.appendStep', function* (step: PackedStep): Transaction<Appended | undefined> {
  const [accountId, at, runId, runSeq] = step
  const [list] = yield* all(openList, { accountId, runId, runSeq })
  if (!list) return undefined
  const position = (list.last ?? -1) + 1
  const element = elementIn(step)
  yield* insertAll('steps', [stepRow(runSeq, position, element, at)])
  const message = messageOf(accountId, at, { runSeq, element, delivery: deliveryIn(step) })
  const [seq = Number.NaN] = yield* insertNumbered('messages', [toRow(message)], 'message_id')
  return [position, seq]
})

function resultOf(args: SubmitArgs, [position, seq]: Appended): SubmitResult {
  const step = cachedStepOf(args)
  if (!step) throw new Error('a request that is no cached step was stored as one')
  const { messageId } = step.element
  return {
    kind: 'accepted',
    results: [{ kind: 'appended' }],
    offers: [toPendingRow(messageOf(args.accountId, args.at, step), seq)],
    places: [{ messageId, runSeq: step.runSeq, position }],
  }
}

/** How SQLite stores a request with one step of a run that is cached. */
export const appendCompactly = compactCall<SubmitArgs, SubmitResult, PackedStep, Appended>(appendStep, {
  pack: (args) => {
    const step = cachedStepOf(args)
    return step && packStep(args, step)
  },
  unpack: (appended, args) => resultOf(args, appended),
})
