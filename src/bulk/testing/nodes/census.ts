import { read } from '../../../store/operation.js'
import { query } from '../../../store/query.js'
import type { RunState } from '../../../store/schema/runs.js'
import { all, type Transaction } from '../../../store/statement.js'
import type { ElementRow } from '../../../workflow/transactions/runs-rows.js'
import { ACTION_COLUMNS, type BulkActionRow } from '../../transactions/bulk-action.js'

/** The columns of runs that the checks read. */
export interface RunCensus {
  readonly seq: number
  readonly run_id: string
  readonly state: RunState
}

const everyRun = query<object, RunCensus>(({ db }) => db.selectFrom('runs').select(['seq', 'run_id', 'state']))

/** All runs. */
export const runs = read('simulation.runs', function* (_: object): Transaction<RunCensus[]> {
  return yield* all(everyRun, {})
})

const activeRuns = query<object, { seq: number }>(({ db }) =>
  db.selectFrom('runs').select('seq').where('state', '=', 'RUN_STARTED').limit(1),
)
const openActions = query<object, { seq: number }>(({ db }) =>
  db.selectFrom('bulk_actions').select('seq').where('state', 'in', ['running', 'paused']).limit(1),
)

/** Whether a run is active, or a bulk action has not ended. */
export const isBusy = read('simulation.isBusy', function* (_: object): Transaction<boolean> {
  return (yield* all(activeRuns, {})).length > 0 || (yield* all(openActions, {})).length > 0
})

/** An element of a list. */
export type ElementCensus = Pick<ElementRow, 'position' | 'kind' | 'message_id' | 'body'>

const elementsOf = query<{ runId: string }, ElementCensus>(({ db, p }) =>
  db
    .selectFrom('steps')
    .innerJoin('runs', 'runs.seq', 'steps.run_seq')
    .select(['steps.position', 'steps.kind', 'steps.message_id', 'steps.body'])
    .where('runs.run_id', '=', p.runId)
    .orderBy('steps.position'),
)

/** The list of a run, in order. */
export const elements = read('simulation.elements', function* (args: { runId: string }): Transaction<ElementCensus[]> {
  return yield* all(elementsOf, args)
})

/** An invoked run. */
export interface InvokedCensus {
  readonly run_id: string
  readonly parent_seq: number
  /** JSON of `ParentLink`. */
  readonly parent: string
  readonly response: string | null
}

const invokedRuns = query<object, InvokedCensus>(({ db }) =>
  db
    .selectFrom('runs')
    .select(['run_id', 'response'])
    .select((q) => [q.ref('parent_seq').$notNull().as('parent_seq'), q.ref('parent').$notNull().as('parent')])
    .where('parent', 'is not', null)
    .where('parent_seq', 'is not', null),
)

/** The runs that others have invoked. Without runs that an undo brought back after they had reported their end. */
export const invocations = read('simulation.invocations', function* (_: object): Transaction<InvokedCensus[]> {
  return yield* all(invokedRuns, {})
})

const elementOf = query<{ messageId: string }, { body: Uint8Array }>(({ db, p }) =>
  db.selectFrom('steps').select('body').where('message_id', '=', p.messageId),
)

/** The element that a message has appended. */
export const answer = read('simulation.answer', function* (args: { messageId: string }): Transaction<
  { body: Uint8Array }[]
> {
  return yield* all(elementOf, args)
})

const everyAction = query<object, BulkActionRow>(({ db }) => db.selectFrom('bulk_actions').select(ACTION_COLUMNS))

/** All bulk actions. */
export const actions = read('simulation.actions', function* (_: object): Transaction<BulkActionRow[]> {
  return yield* all(everyAction, {})
})
