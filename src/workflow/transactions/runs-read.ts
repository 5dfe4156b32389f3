import { intact, isIntact, tellChanged } from '../../store/checksum.js'
import { all, first, only, read, type Transaction } from '../../store/operation.js'
import { query } from '../../store/query.js'
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

/** A body with its checksum. */
type StoredBody = Pick<ElementRow, 'body' | 'body_crc'>

/** @throws HomeportError `store_damaged` when it is not what was written. */
const bodyOf = ({ body, body_crc }: StoredBody, position: number): Uint8Array =>
  intact(body, body_crc, 'steps', () => `element ${position} of a run`)

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
const bodyAt = query<{ seq: number; position: number }, StoredBody>(({ db, p }) =>
  db.selectFrom('steps').select(['body', 'body_crc']).where('run_seq', '=', p.seq).where('position', '=', p.position),
)
const stepsUpTo = query<{ seq: number; position: number }, ListedStep & StoredBody>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select(['message_id', 'body', 'body_crc'])
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
    if (kind !== 'step')
      return { run, element: { position, kind, meta }, list: [], body: bodyOf(yield* only(bodyAt, at), position) }
    const steps = yield* all(stepsUpTo, at)
    const list = steps.map((step, index) => ({ message_id: step.message_id, body: bodyOf(step, index) }))
    return { run, element: { position, kind, meta }, list, body: new Uint8Array() }
  },
)

const firstMetaOf = query<{ seq: number }, { meta: string | null }>(({ db, p }) =>
  db.selectFrom('steps').select('meta').where('run_seq', '=', p.seq).where('position', '=', 0),
)
const firstOf = query<{ seq: number }, { meta: string | null } & StoredBody>(({ db, p }) =>
  db.selectFrom('steps').select(['meta', 'body', 'body_crc']).where('run_seq', '=', p.seq).where('position', '=', 0),
)

/** The settings of a run's trigger (JSON of `ElementMeta`) and its initial payload. */
export const beginning = read('runs.beginning', function* (args: { seq: number; contents?: Contents }): Transaction<
  { meta: string | null; body: Uint8Array } | undefined
> {
  if (args.contents === 'none') {
    const row = yield* first(firstMetaOf, args)
    return row && { ...row, body: new Uint8Array() }
  }
  const row = yield* first(firstOf, args)
  return row && { meta: row.meta, body: bodyOf(row, 0) }
})

const runById = query<{ accountId: string; runId: string }, RunRow>(({ db, p }) =>
  db.selectFrom('runs').selectAll().where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
)

/** @throws HomeportError `store_damaged` when what it returned is not what was written. */
function wholeRun<Run extends Pick<RunRow, 'run_id' | 'response' | 'response_crc'>>(run: Run): Run {
  intact(run.response, run.response_crc, 'runs', () => `what ${run.run_id} returned`)
  return run
}

/** Runs of a list: one that is damaged must not keep the others from being seen, so that is left out, and told. */
export function* listedRuns<Run extends Pick<RunRow, 'run_id' | 'response' | 'response_crc'>>(
  runs: readonly Run[],
): Transaction<Run[]> {
  const listed: Run[] = []
  for (const run of runs) {
    const isWhole = isIntact(run.response, run.response_crc)
    if (!isWhole) yield* tellChanged('runs', `what ${run.run_id} returned`)
    listed.push(isWhole ? run : { ...run, response: null })
  }
  return listed
}

/** Elements of a list, likewise. */
export function* listedElements(elements: readonly ElementRow[]): Transaction<ElementRow[]> {
  const listed: ElementRow[] = []
  for (const element of elements) {
    const isWhole = isIntact(element.body, element.body_crc)
    if (!isWhole) yield* tellChanged('steps', `the element of ${element.message_id}`)
    listed.push(isWhole ? element : { ...element, body: new Uint8Array() })
  }
  return listed
}

/** A run by its id. */
export const find = read('runs.find', function* (args: { accountId: string; runId: string }): Transaction<
  RunRow | undefined
> {
  const run = yield* first(runById, args)
  return run && wholeRun(run)
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
    if (!run) return undefined
    const elements = yield* all(elementsOf, { seq: run.seq })
    for (const element of elements) bodyOf(element, element.position)
    return { run: wholeRun(run), elements }
  },
)
