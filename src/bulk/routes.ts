import * as contract from '../contract/bulk.js'
import { HomeportError } from '../contract/errors.js'
import { type Call, type Caller, type Reply, type Route, reply, route } from '../http/index.js'
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
import { controlRoutes } from './control-routes.js'
import { answerLater, createAction, type RouteDeps } from './creation.js'
import { actionsCursor, itemCursor, readActionsCursor, readItemCursor } from './cursors.js'
import { type FixedSet, fixSet } from './freeze.js'
import { progressOf } from './progress.js'
import { parseSelector, type Selector } from './selector.js'
import { startRoutes } from './start-routes.js'

const DEFAULT_PAGE = 100
const SAMPLE_IDS = 20

/** The HTTP operations of this room. */
export function bulkRoutes(deps: RouteDeps): Route[] {
  return [
    route(contract.cancelWorkflowRuns, (call) => cancelRuns(deps, call)),
    route(contract.listBulkActions, (call) => listActions(deps, call.caller, call.query)),
    route(contract.getBulkAction, async (call) => {
      const action = await findAction(deps, call.caller, call.params.actionId)
      return wantsEvents(call) ? progressOf(deps, action, call.signal) : bulkAction(action)
    }),
    route(contract.listBulkOutcomes, async (call) => {
      const action = await findAction(deps, call.caller, call.params.actionId)
      return listOutcomes(deps, action, call.query)
    }),
    ...controlRoutes(deps),
    ...startRoutes(deps, (caller, selector) => startCancel(deps, caller, selector)),
  ]
}

const wantsEvents = ({ headers }: Pick<Call, 'headers'>): boolean =>
  headers.accept?.includes('text/event-stream') ?? false

/** The work does not look at whether the caller is still there: what was asked for is done. */
async function cancelRuns(
  deps: RouteDeps,
  call: Pick<Call, 'caller' | 'body' | 'target'>,
): Promise<CancelAnswer | Reply> {
  const question = call.target.indexOf('?')
  const selector = understandCancel(deps, call.body, question < 0 ? '' : call.target.slice(question + 1))
  if (selector.mode === 'dryRun') {
    const { matched, sample } = await selectRuns(deps, call.caller, selector)
    return { cancelled: 0, matched, sample: [...sample] }
  }
  const action = await storeCancel(deps, call.caller, selector)
  return selector.mode === 'async' ? answerLater(deps, action) : answerNow(deps, action, selector.report)
}

/** A cancel of runs that is started like an action of any kind. */
async function startCancel(deps: RouteDeps, caller: Caller, given: object): Promise<Reply> {
  const selector = understandCancel(deps, given, '')
  if (selector.mode !== 'dryRun') return answerLater(deps, await storeCancel(deps, caller, selector))
  const { matched, sample } = await selectRuns(deps, caller, selector)
  return reply(200, { matched, sample })
}

function understandCancel({ clock }: RouteDeps, body: unknown, query: string): Selector {
  const parsed = parseSelector(body, query)
  if ('problem' in parsed) throw new HomeportError('invalid_request', parsed)
  const { fenceUntil } = parsed.selector
  if (fenceUntil === undefined || fenceUntil > clock.now()) return parsed.selector
  const problem = `\`fenceUntil\` must lie in the future; found ${fenceUntil}. Nothing was cancelled.`
  throw new HomeportError('invalid_request', { problem })
}

async function selectRuns({ store }: RouteDeps, caller: Caller, selector: Selector): Promise<FixedSet> {
  const bound = await store.run(operations.bulkSelect.newest, {})
  const { target, most } = selector
  const sample = selector.mode === 'dryRun' ? SAMPLE_IDS : 0
  return fixSet(store, { accountId: caller.accountId, target, most, bound, sample })
}

function storeCancel(deps: RouteDeps, caller: Caller, selector: Selector): Promise<operations.bulk.BulkActionRow> {
  const { target, given, reason, ratePerSecond, fenceUntil: until } = selector
  const fence = until === undefined ? undefined : { target, until }
  const wanted = { kind: 'cancelRuns' as const, selector: selectorForRecords(given), reason, ratePerSecond, fence }
  return createAction(deps, caller, wanted, () => selectRuns(deps, caller, selector))
}

async function answerNow(
  { store, worker }: RouteDeps,
  action: operations.bulk.BulkActionRow,
  report: boolean,
): Promise<CancelAnswer | Reply> {
  const ended = await worker.finish(action)
  if (ended.state !== 'paused') return cancelAnswer(store, ended, report)
  // Whoever has paused it may leave it so for days: the caller is told where to look instead of waiting.
  return reply(202, { actionId: ended.action_id, matched: ended.matched, state: 'paused' })
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

type OutcomesQuery = PageQuery & { readonly outcome?: Parameters<typeof storedOutcomes>[1] }

async function listOutcomes({ store }: RouteDeps, action: operations.bulk.BulkActionRow, query: OutcomesQuery) {
  const page = await pageOf(store, action, {
    from: readItemCursor(query.cursor),
    limit: query.count ?? DEFAULT_PAGE,
    outcomes: storedOutcomes(action, query.outcome),
  })
  return {
    outcomes: page.items.map((item) => outcomeEntry(action, item)),
    ...(page.next === undefined ? {} : { cursor: itemCursor(page.next) }),
  }
}
