import { newId } from '../base/index.js'
import * as contract from '../contract/bulk.js'
import { HomeportError } from '../contract/errors.js'
import { type Caller, type Reply, type Route, reply, route } from '../http/index.js'
import { operations } from '../store/index.js'
import {
  bulkAction,
  type CancelAnswer,
  cancelAnswer,
  outcomeEntry,
  pageOf,
  selectorForRecords,
  storedOutcomes,
} from './answers.js'
import { actionsCursor, itemCursor, readActionsCursor, readItemCursor } from './cursors.js'
import { type FixedSet, fixSet } from './freeze.js'
import { parseSelector, type Selector } from './selector.js'
import type { BulkWorker, WorkerDeps } from './worker.js'

const DEFAULT_PAGE = 100
const SAMPLE_IDS = 20

/** What the handlers work with. */
export interface RouteDeps extends WorkerDeps {
  readonly worker: BulkWorker
}

/** The HTTP operations of this room. */
export function bulkRoutes(deps: RouteDeps): Route[] {
  return [
    route(contract.cancelWorkflowRuns, (call) => cancelRuns(deps, call.caller, call.body, call.target)),
    route(contract.listBulkActions, (call) => listActions(deps, call.caller, call.query)),
    route(contract.getBulkAction, async (call) =>
      bulkAction(await findAction(deps, call.caller, call.params.actionId)),
    ),
    route(contract.listBulkOutcomes, async (call) => {
      const action = await findAction(deps, call.caller, call.params.actionId)
      return listOutcomes(deps, action, call.query)
    }),
  ]
}

/** The work does not look at whether the caller is still there: what was asked for is done. */
async function cancelRuns(
  deps: RouteDeps,
  caller: Caller,
  body: unknown,
  target: string,
): Promise<CancelAnswer | Reply> {
  const selector = understand(body, target)
  const bound = await deps.store.run(operations.bulkSelect.newest, {})
  const set = await fixSet(deps.store, {
    accountId: caller.accountId,
    target: selector.target,
    most: selector.most,
    bound,
    sample: selector.mode === 'dryRun' ? SAMPLE_IDS : 0,
  })
  if (selector.mode === 'dryRun') return { cancelled: 0, matched: set.unfinished, sample: [...set.sample] }
  const action = await createAction(deps, caller, selector, set)
  return selector.mode === 'async' ? answerLater(deps, action) : answerNow(deps, action, selector.report)
}

function understand(body: unknown, target: string): Selector {
  const question = target.indexOf('?')
  const parsed = parseSelector(body, question < 0 ? '' : target.slice(question + 1))
  if ('problem' in parsed) throw new HomeportError('invalid_request', parsed)
  return parsed.selector
}

function createAction(
  { store, clock }: RouteDeps,
  caller: Caller,
  selector: Selector,
  set: FixedSet,
): Promise<operations.bulk.BulkActionRow> {
  const at = clock.now()
  return store.run(operations.bulk.createAction, {
    actionId: newId('bulk_', at),
    accountId: caller.accountId,
    selector: selectorForRecords(selector.given),
    actor: caller.email,
    source: caller.source,
    ip: caller.ip,
    chunks: set.chunks,
    absent: set.absent,
    at,
  })
}

function answerLater({ worker }: RouteDeps, action: operations.bulk.BulkActionRow): Reply {
  // Nobody waits for this promise; progress is asked for, and an interruption is already in the log.
  worker.finish(action).catch(() => undefined)
  return reply(202, { actionId: action.action_id, matched: action.matched })
}

async function answerNow(
  { store, worker }: RouteDeps,
  action: operations.bulk.BulkActionRow,
  report: boolean,
): Promise<CancelAnswer> {
  return cancelAnswer(store, await worker.finish(action), report)
}

async function findAction(
  { store }: RouteDeps,
  caller: Caller,
  actionId: string,
): Promise<operations.bulk.BulkActionRow> {
  const row = await store.run(operations.bulkRead.action, { accountId: caller.accountId, actionId })
  if (!row) throw new HomeportError('bulk_action_not_found', { actionId })
  return row
}

interface PageQuery {
  readonly cursor?: string
  readonly count?: number
}

async function listActions({ store }: RouteDeps, caller: Caller, query: PageQuery) {
  const limit = query.count ?? DEFAULT_PAGE
  const before = readActionsCursor(query.cursor)
  const rows = await store.run(operations.bulkRead.actions, { accountId: caller.accountId, before, limit: limit + 1 })
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    bulkActions: shown.map(bulkAction),
    ...(last && rows.length > limit ? { cursor: actionsCursor(last.seq) } : {}),
  }
}

type OutcomesQuery = PageQuery & { readonly outcome?: Parameters<typeof storedOutcomes>[0] }

async function listOutcomes({ store }: RouteDeps, action: operations.bulk.BulkActionRow, query: OutcomesQuery) {
  const page = await pageOf(store, {
    actionSeq: action.seq,
    from: readItemCursor(query.cursor),
    limit: query.count ?? DEFAULT_PAGE,
    outcomes: storedOutcomes(query.outcome),
  })
  return {
    outcomes: page.items.map(outcomeEntry),
    ...(page.next === undefined ? {} : { cursor: itemCursor(page.next) }),
  }
}
