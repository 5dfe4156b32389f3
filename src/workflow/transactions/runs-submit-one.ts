import { type Expression, type RawBuilder, sql } from 'kysely'
import { PARTITIONS } from '../../cluster/key-partition.js'
import { type NewMessage, toPendingRow, toRow } from '../../queue/transactions/messages.js'
import { write } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { all, type Transaction } from '../../store/statement.js'
import { messageFor, stepRow } from './runs-append.js'
import { isCarried } from './runs-done.js'
import { type RunToInsert, runRow } from './runs-locked.js'
import type { DeliveryColumns, NewElement } from './runs-rows.js'
import type { Submission, SubmitArgs, SubmitResult, Submitted } from './runs-submissions.js'

/**
 * The fast path of PostgreSQL for nearly all requests, in one statement: a step of an active run, or the start of a run. It
 * takes one round trip instead of two or three, and no BEGIN and COMMIT.
 *
 * The statement sees the list of the run as it was when the statement began. If another transaction appends to the list
 * meanwhile, the position is taken, and the statement stores nothing.
 */

type Expressions = Readonly<Record<string, Expression<unknown>>>

/** The numbers of what a statement has stored. */
interface Stored {
  readonly run_seq: number
  readonly position: number
  readonly seq: number
  /** JSON list of the carried deliveries that have ended. */
  readonly removed?: string
}

const RUN = sql.ref('run.seq')
const NEXT_POSITION = sql`(select coalesce(max(position) + 1, 0) from steps where run_seq = ${RUN})`
/** The columns whose values the statement computes. */
const FOUND = {
  step: { run_seq: RUN, position: NEXT_POSITION },
  message: { group_key: RUN, partition: sql`${RUN} % ${sql.lit(PARTITIONS)}` },
} satisfies Record<string, Expressions>

const MODEL: NewElement = { kind: 'step', messageId: '', body: new Uint8Array(), meta: null, dueAt: 0 }
const NO_DELIVERY = { url: '', method: '', headers: '', config: '', max_retries: 0, labels: '', host: '', path: '' }

/** The message that delivers an element. The number of its run, which only the store knows, is 0. */
const messageOf = (accountId: string, element: NewElement, delivery: DeliveryColumns, at: number): NewMessage =>
  messageFor({ accountId, runSeq: 0, element }, delivery, at)

/**
 * The values that differ between requests, by the name of their parameter. Written out by hand, because computed names cost
 * several times as much. All other columns are the same in every message of a plain request.
 */
const parametersOf = (step: ReturnType<typeof stepRow>, message: NewMessage) => ({
  step_message_id: step.message_id,
  step_kind: step.kind,
  step_body: step.body,
  step_body_crc: step.body_crc,
  step_meta: step.meta,
  step_created_at: step.created_at,
  step_timing: step.timing,
  message_message_id: message.message_id,
  message_account_id: message.account_id,
  message_url: message.url,
  message_method: message.method,
  message_headers: message.headers,
  message_config: message.config,
  message_max_retries: message.max_retries,
  message_next_at: message.next_at,
  message_created_at: message.created_at,
  message_labels: message.labels,
  message_caller_ip: message.caller_ip ?? null,
  message_host: message.host,
  message_path: message.path,
})

type Values = ReturnType<typeof parametersOf>

/** Inserts the element for the row of the table expression `run`, then its message unless the position is taken. */
function inserts(p: Values) {
  const [modelStep, modelMessage] = [stepRow(0, 0, MODEL, 0), messageOf('', MODEL, NO_DELIVERY, 0)]
  const parameters = parametersOf(modelStep, modelMessage)
  const isParameter = (name: string): name is keyof Values => name in parameters
  const rowFor = (row: object, prefix: string, found: Expressions) => {
    const values = Object.entries(row).map(([name, value]) => {
      const parameter = prefix + name
      return found[name] ?? (isParameter(parameter) ? p[parameter] : sql.lit(value))
    })
    return { columns: sql.join(Object.keys(row).map((name) => sql.ref(name))), values: sql.join(values) }
  }
  const step = rowFor(modelStep, 'step_', FOUND.step)
  const message = rowFor(toRow(modelMessage), 'message_', FOUND.message)
  return {
    step: sql<Pick<Stored, 'run_seq' | 'position'>>`(insert into steps (${step.columns})
      select ${step.values} from run on conflict do nothing returning run_seq, position)`,
    message: sql<Pick<Stored, 'seq'>>`(insert into messages (${message.columns})
      select ${message.values} from run join step on step.run_seq = run.seq returning seq)`,
  }
}

type ToAppend = Values & { accountId: string; runId: string; deliveryOf: number | null }
type ToStart = Values & RunToInsert
type Carried = { carried: readonly number[] }
type Run = RawBuilder<{ seq: number }>

const activeRun = ({ db, p, d }: Building<ToAppend>): Run =>
  sql`${d.forUpdate(
    db
      .selectFrom('runs')
      .select('seq')
      .where('account_id', '=', p.accountId)
      .where('run_id', '=', p.runId)
      .where('state', '=', sql.lit('RUN_STARTED'))
      .where('paused_at', 'is', null)
      // Cached settings may belong to an older run with the same id, which another node has started since.
      .where(sql<boolean>`seq = coalesce(cast(${p.deliveryOf} as bigint), seq)`),
  )}`

const newRun = ({ db, p }: Building<ToStart>): Run =>
  sql`(${db
    .insertInto('runs')
    .values(runRow(p))
    .onConflict((conflict) => conflict.columns(['account_id', 'run_id']).doNothing())
    .returning('seq')})`

function storing({ db, p }: Building<Values>, run: Run) {
  const { step, message } = inserts(p)
  return db
    .with('run', () => run)
    .with('step', () => step)
    .with('message', () => message)
}

const NUMBERS = ['step.run_seq', 'step.position', 'message.seq'] as const

const stored = (building: Building<Values>, run: Run) =>
  storing(building, run).selectFrom(['step', 'message']).select(NUMBERS)

/** Does the same, and deletes the messages of carried deliveries if the new message was inserted. */
function storedCarrying(building: Building<Values & Carried>, run: Run) {
  const isOver = isCarried(building, sql`exists (select 1 from message)`)
  return storing(building, run)
    .with('removed', () => sql<{ seq: number }>`(delete from messages where ${isOver} returning seq)`)
    .selectFrom(['step', 'message'])
    .select(NUMBERS)
    .select(sql<string>`(select ${building.d.listOf('seq')} from removed)`.as('removed'))
}

const append = query<ToAppend, Stored>((building) => stored(building, activeRun(building)))
const appendCarrying = query<ToAppend & Carried, Stored>((building) => storedCarrying(building, activeRun(building)))
const start = query<ToStart, Stored>((building) => stored(building, newRun(building)))
const startCarrying = query<ToStart & Carried, Stored>((building) => storedCarrying(building, newRun(building)))

/** A submission that depends on no other run or request, and whose delivery settings are known. */
export interface Plain {
  readonly submission: Exclude<Submission, { kind: 'confirm' }>
  readonly element: NewElement
  readonly delivery: DeliveryColumns
}

/** The only submission of a request, if it depends on nothing but its run. */
export function plainOf({ submissions, quota, paused }: SubmitArgs): Plain | undefined {
  const [submission, ...others] = submissions
  if (!submission || others.length > 0 || quota || paused?.length || submission.kind === 'confirm') return undefined
  const needsLook = submission.kind === 'append' ? submission.mark !== undefined : dependsOnOthers(submission)
  const element = submission.kind === 'append' ? submission.element : submission.first
  const { delivery, webhook } = element
  if (needsLook || !delivery || delivery.flow_key || webhook !== undefined) return undefined
  return { submission, element, delivery }
}

const dependsOnOthers = ({ parent, rule }: Submission & { kind: 'start' }): boolean =>
  parent !== undefined || rule !== undefined

/** Whether one statement may store a request. */
export const isPlain = (args: SubmitArgs): boolean => plainOf(args) !== undefined

/**
 * Stores a plain request. Answers `undefined`, and changes nothing, if the run is not active or is paused, its id is taken,
 * or another transaction has just appended to its list.
 */
export const submitOne = write(
  'runs.submitOne',
  function* (args: SubmitArgs): Transaction<SubmitResult | undefined> {
    const plain = plainOf(args)
    if (!plain) return undefined
    const { accountId, at } = args
    const { submission, element, delivery } = plain
    const message = messageOf(accountId, element, delivery, at)
    const values = parametersOf(stepRow(0, 0, element, at), message)
    const [stored] = yield* submission.kind === 'append'
      ? appended(
          Object.assign(values, { accountId, runId: submission.runId, deliveryOf: element.deliveryOf ?? null }),
          args.carried,
        )
      : started(Object.assign(values, toInsert(submission.run, accountId, at)), args.carried)
    if (!stored) return undefined
    const { run_seq: runSeq, position, seq, removed } = stored
    message.group_key = runSeq
    return {
      kind: 'accepted',
      results: [resultOf(submission, at)],
      offers: [toPendingRow(message, seq)],
      places: [{ messageId: element.messageId, runSeq, position }],
      removed: removed === undefined ? undefined : JSON.parse(removed),
    }
  },
  { isSingle: () => true },
)

// `Object.assign`, because a copy of the values would cost as much as their statement.
const appended = (values: ToAppend, carried: SubmitArgs['carried']) =>
  carried ? all(appendCarrying, Object.assign(values, { carried })) : all(append, values)

const started = (values: ToStart, carried: SubmitArgs['carried']) =>
  carried ? all(startCarrying, Object.assign(values, { carried })) : all(start, values)

function toInsert(run: (Submission & { kind: 'start' })['run'], accountId: string, at: number): RunToInsert {
  return { ...run, account_id: accountId, created_at: at, parent_seq: null, parent: null }
}

/** The result of a plain submission that was stored. */
export function resultOf(submission: Plain['submission'], at: number): Submitted {
  return submission.kind === 'append'
    ? { kind: 'appended' }
    : { kind: 'started', runId: submission.run.run_id, createdAt: at }
}
