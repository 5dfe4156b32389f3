import { all, first, only, read, type Transaction } from '../operation.js'
import { query } from '../query.js'
import type { ElementRow, RunRow } from './runs-rows.js'

/** Whether bodies are read as well; without them what is damaged can be settled. */
export type Contents = 'whole' | 'none'

/** What the delivery of an element needs to know of its run. */
export type RunOfDelivery = Pick<RunRow, 'seq' | 'run_id' | 'account_id' | 'url' | 'state' | 'created_at'>

/** Everything that the request of a delivery is made of. */
export interface Delivery {
  readonly run: RunOfDelivery
  /** The element whose message this is. */
  readonly element: Pick<ElementRow, 'position' | 'kind' | 'meta'>
  /** The body of an element that is no `step`; empty for one that is. */
  readonly body: Uint8Array
  /** For a `step`: every step up to and including it, in order. */
  readonly list: readonly ListedStep[]
}

/** A step as the SDK gets it. */
export type ListedStep = Pick<ElementRow, 'message_id' | 'body'>

type Joined = RunOfDelivery & Delivery['element']

const joined = query<{ seq: number; messageId: string }, Joined>(({ db, p }) =>
  db
    .selectFrom('steps')
    .innerJoin('runs', 'runs.seq', 'steps.run_seq')
    .select(['runs.seq', 'runs.run_id', 'runs.account_id', 'runs.url', 'runs.state', 'runs.created_at'])
    .select(['steps.position', 'steps.kind', 'steps.meta'])
    .where('steps.run_seq', '=', p.seq)
    .where('steps.message_id', '=', p.messageId),
)
const bodyAt = query<{ seq: number; position: number }, { body: Uint8Array }>(({ db, p }) =>
  db.selectFrom('steps').select('body').where('run_seq', '=', p.seq).where('position', '=', p.position),
)
const stepsUpTo = query<{ seq: number; position: number }, ListedStep>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select(['message_id', 'body'])
    .where('run_seq', '=', p.seq)
    .where('position', '<=', p.position)
    .where('kind', '=', 'step')
    .orderBy('position'),
)

/**
 * What a message of a run is to deliver. The list ends at the message's own element, however long the run's list has
 * grown since. `undefined`: the run, or the element of this message, is not there.
 */
export const delivery = read(
  'runs.delivery',
  function* (args: { seq: number; messageId: string; contents?: Contents }): Transaction<Delivery | undefined> {
    const { seq, messageId, contents = 'whole' } = args
    const row = yield* first(joined, { seq, messageId })
    if (!row) return undefined
    const { position, kind, meta, ...run } = row
    const at = { seq, position }
    if (contents === 'none') return { run, element: { position, kind, meta }, list: [], body: new Uint8Array() }
    if (kind !== 'step') return { run, element: { position, kind, meta }, list: [], ...(yield* only(bodyAt, at)) }
    return { run, element: { position, kind, meta }, list: yield* all(stepsUpTo, at), body: new Uint8Array() }
  },
)

const firstMetaOf = query<{ seq: number }, { meta: string | null }>(({ db, p }) =>
  db.selectFrom('steps').select('meta').where('run_seq', '=', p.seq).where('position', '=', 0),
)
const firstOf = query<{ seq: number }, { meta: string | null; body: Uint8Array }>(({ db, p }) =>
  db.selectFrom('steps').select(['meta', 'body']).where('run_seq', '=', p.seq).where('position', '=', 0),
)

/** The settings of a run's trigger (JSON of `ElementMeta`) and its initial payload. */
export const beginning = read('runs.beginning', function* (args: { seq: number; contents?: Contents }): Transaction<
  { meta: string | null; body: Uint8Array } | undefined
> {
  if (args.contents === 'none') {
    const row = yield* first(firstMetaOf, args)
    return row && { ...row, body: new Uint8Array() }
  }
  return yield* first(firstOf, args)
})

const runById = query<{ accountId: string; runId: string }, RunRow>(({ db, p }) =>
  db.selectFrom('runs').selectAll().where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
)

/** A run by its id. */
export const find = read('runs.find', function* (args: { accountId: string; runId: string }): Transaction<
  RunRow | undefined
> {
  return yield* first(runById, args)
})

const elementsOf = query<{ seq: number }, ElementRow>(({ db, p }) =>
  db.selectFrom('steps').selectAll().where('run_seq', '=', p.seq).orderBy('position'),
)

/** A run with its whole list. */
export const withElements = read(
  'runs.withElements',
  function* (args: {
    accountId: string
    runId: string
  }): Transaction<{ run: RunRow; elements: ElementRow[] } | undefined> {
    const run = yield* first(runById, args)
    return run && { run, elements: yield* all(elementsOf, { seq: run.seq }) }
  },
)
