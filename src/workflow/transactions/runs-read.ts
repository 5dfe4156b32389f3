import { sql } from 'kysely'
import { intact, isIntact, reportChanged } from '../../store/checksum.js'
import { read } from '../../store/operation.js'
import { type Building, query } from '../../store/query.js'
import { all, askAll, atOnce, first, only, type Transaction } from '../../store/statement.js'
import type { ElementRow, RunRow } from './runs-rows.js'

/** Whether to read bodies. Without them, a delivery with damaged bodies can be settled. */
export type Contents = 'whole' | 'none'

/** The columns of a run that a delivery needs. */
export type RunOfDelivery = Pick<RunRow, 'seq' | 'run_id' | 'account_id' | 'url' | 'state' | 'created_at'>

/** All data of the request of a delivery. */
export interface Delivery {
  readonly run: RunOfDelivery
  /** The element of the message. */
  readonly element: Pick<ElementRow, 'position' | 'kind' | 'meta'>
  /** The body of an element of another kind than `step`; empty for a `step`. */
  readonly body: Uint8Array
  /** For a `step`: every step up to and including it, in order. */
  readonly list: readonly ListedStep[]
  /** Size of the body or the list, if it exceeds the limit of the read. Then both are empty. */
  readonly largerBytes?: number
}

/** A step of a delivered list. */
export type ListedStep = Pick<ElementRow, 'message_id' | 'body'>

/** A body with its checksum. */
type StoredBody = Pick<ElementRow, 'body' | 'body_crc'>

/** @throws HomeportError `store_damaged` if the checksum does not match. */
const bodyOf = ({ body, body_crc }: StoredBody, position: number): Uint8Array =>
  intact(body, body_crc, 'steps', () => `element ${position} of a run`)

/** Total size of the bodies of all selected elements. */
export const BYTES = sql<number>`coalesce(sum(octet_length(body)), 0)`.as('bytes')
/** Size of the body of each element. */
export const SIZE = sql<number>`octet_length(body)`.as('bytes')

const NO_BODY = new Uint8Array()

type Joined = RunOfDelivery & Delivery['element'] & { readonly bytes: number }

const joined = query<{ seq: number; messageId: string }, Joined>(({ db, p }) =>
  db
    .selectFrom('steps')
    .innerJoin('runs', 'runs.seq', 'steps.run_seq')
    .select(['runs.seq', 'runs.run_id', 'runs.account_id', 'runs.url', 'runs.state', 'runs.created_at'])
    .select(['steps.position', 'steps.kind', 'steps.meta', SIZE])
    .where('steps.run_seq', '=', p.seq)
    .where('steps.message_id', '=', p.messageId),
)
const bodyAt = query<{ seq: number; position: number }, StoredBody>(({ db, p }) =>
  db.selectFrom('steps').select(['body', 'body_crc']).where('run_seq', '=', p.seq).where('position', '=', p.position),
)
interface UpTo {
  seq: number
  messageId: string
  most: number
}

/** The steps up to the step of a message; none for an element of another kind. */
const listTo = ({ db, p }: Building<UpTo>) =>
  db
    .selectFrom('steps')
    .where('run_seq', '=', p.seq)
    .where('kind', '=', 'step')
    .where('position', '<=', (q) =>
      q
        .selectFrom('steps')
        .select('position')
        .where('run_seq', '=', p.seq)
        .where('message_id', '=', p.messageId)
        .where('kind', '=', 'step'),
    )

const bytesUpTo = query<UpTo, { bytes: number }>((building) => listTo(building).select(BYTES))
/** Reads these steps; none if they are larger than `most` bytes. */
const stepsUpTo = query<UpTo, ListedStep & StoredBody>((building) =>
  listTo(building)
    .select(['message_id', 'body', 'body_crc'])
    .where(sql<boolean>`(${listTo(building).select(BYTES)}) <= ${building.p.most}`)
    .orderBy('position'),
)

/** A message of a run. */
export interface DeliveryArgs {
  readonly seq: number
  readonly messageId: string
  readonly contents?: Contents
  /** A larger list or body is not read, bytes. */
  readonly most: number
}

/**
 * Reads the delivery of a message. The list ends at the element of the message, even if the run has more elements by now.
 * `undefined`: the run or the element does not exist.
 */
export const delivery = read('runs.delivery', function* (args: DeliveryArgs): Transaction<Delivery | undefined> {
  const { seq, messageId, contents = 'whole', most } = args
  const of = { seq, messageId }
  const [[row], steps] =
    contents === 'none'
      ? [yield* all(joined, of), []]
      : yield* atOnce([askAll(joined, of), askAll(stepsUpTo, { ...of, most })])
  if (!row) return undefined
  const { position, kind, meta, bytes, ...run } = row
  const known = { run, element: { position, kind, meta }, list: [], body: NO_BODY }
  if (contents === 'none') return known
  if (kind !== 'step') {
    if (bytes > most) return { ...known, largerBytes: bytes }
    return { ...known, body: bodyOf(yield* only(bodyAt, { seq, position }), position) }
  }
  if (steps.length === 0) return { ...known, largerBytes: (yield* only(bytesUpTo, { ...of, most })).bytes }
  return { ...known, list: steps.map((step, index) => ({ message_id: step.message_id, body: bodyOf(step, index) })) }
})

const firstMetaOf = query<{ seq: number }, { meta: string | null }>(({ db, p }) =>
  db.selectFrom('steps').select('meta').where('run_seq', '=', p.seq).where('position', '=', 0),
)
const firstOf = query<{ seq: number }, { meta: string | null } & StoredBody>(({ db, p }) =>
  db.selectFrom('steps').select(['meta', 'body', 'body_crc']).where('run_seq', '=', p.seq).where('position', '=', 0),
)

/** Reads settings (JSON of `ElementMeta`) and payload of a run's trigger. */
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

const metaById = query<{ accountId: string; runId: string }, { meta: string | null }>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select('meta')
    .where('run_seq', '=', (q) =>
      q.selectFrom('runs').select('seq').where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
    )
    .where('position', '=', 0),
)

/** Reads the settings (JSON of `ElementMeta`) of the trigger of a run. */
export const settingsOf = read('runs.settingsOf', function* (args: { accountId: string; runId: string }): Transaction<
  string | undefined
> {
  return (yield* first(metaById, args))?.meta ?? undefined
})

const runById = query<{ accountId: string; runId: string }, RunRow>(({ db, p }) =>
  db.selectFrom('runs').selectAll().where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
)

/** @throws HomeportError `store_damaged` if the checksum of the returned value does not match. */
function wholeRun<Run extends Pick<RunRow, 'run_id' | 'response' | 'response_crc'>>(run: Run): Run {
  intact(run.response, run.response_crc, 'runs', () => `what ${run.run_id} returned`)
  return run
}

/** Reports damaged return values and leaves them out, so that the other runs of a list stay readable. */
export function* listedRuns<Run extends Pick<RunRow, 'run_id' | 'response' | 'response_crc'>>(
  runs: readonly Run[],
): Transaction<Run[]> {
  const listed: Run[] = []
  for (const run of runs) {
    const isWhole = isIntact(run.response, run.response_crc)
    if (!isWhole) yield* reportChanged('runs', `what ${run.run_id} returned`)
    listed.push(isWhole ? run : { ...run, response: null })
  }
  return listed
}

/** Does the same for elements. */
export function* listedElements<Element extends ElementRow>(elements: readonly Element[]): Transaction<Element[]> {
  const listed: Element[] = []
  for (const element of elements) {
    const isWhole = isIntact(element.body, element.body_crc)
    if (!isWhole) yield* reportChanged('steps', `the element of ${element.message_id}`)
    listed.push(isWhole ? element : { ...element, body: new Uint8Array() })
  }
  return listed
}

/** Finds a run by id. */
export const find = read('runs.find', function* (args: { accountId: string; runId: string }): Transaction<
  RunRow | undefined
> {
  const run = yield* first(runById, args)
  return run && wholeRun(run)
})

const elementsOf = query<{ seq: number }, ElementRow>(({ db, p }) =>
  db.selectFrom('steps').selectAll().where('run_seq', '=', p.seq).orderBy('position'),
)

/** Reads a run with its whole list. */
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

/** Elements of a run: those from `first` to `last`, both included. */
interface Places {
  readonly seq: number
  readonly first: number
  readonly last: number
}

const sizesFrom = query<{ seq: number; first: number; limit: number }, { position: number; bytes: number }>(
  ({ db, p }) =>
    db
      .selectFrom('steps')
      .select(['position', SIZE])
      .where('run_seq', '=', p.seq)
      .where('position', '>=', p.first)
      .orderBy('position')
      .limit(p.limit),
)
const elementsAt = query<Places, ElementRow>(({ db, p }) =>
  db
    .selectFrom('steps')
    .selectAll()
    .where('run_seq', '=', p.seq)
    .where('position', '>=', p.first)
    .where('position', '<=', p.last)
    .orderBy('position'),
)

/** The sizes of the next elements of a run, in order. A list may be larger than the memory, so it is read in pages. */
export const sizes = read('runs.sizes', function* (args: { seq: number; first: number; limit: number }): Transaction<
  { position: number; bytes: number }[]
> {
  return yield* all(sizesFrom, args)
})

/** Some elements of a run, in order. */
export const elements = read('runs.elements', function* (args: Places): Transaction<ElementRow[]> {
  const rows = yield* all(elementsAt, args)
  for (const row of rows) bodyOf(row, row.position)
  return rows
})

const bytesOfList = query<{ accountId: string; runId: string }, { bytes: number }>(({ db, p }) =>
  db
    .selectFrom('steps')
    .select(BYTES)
    .where('run_seq', '=', (q) =>
      q.selectFrom('runs').select('seq').where('account_id', '=', p.accountId).where('run_id', '=', p.runId),
    ),
)

/** The size of the whole list of a run, bytes. */
export const listBytes = read(
  'runs.listBytes',
  function* (args: { accountId: string; runId: string }): Transaction<number> {
    return (yield* only(bytesOfList, args)).bytes
  },
)
