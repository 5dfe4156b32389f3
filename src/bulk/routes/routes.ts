import * as contract from '../../contract/bulk/actions.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Call, type Caller, type Route, route } from '../../http/index.js'
import type { BulkActionState, BulkKindName } from '../../store/schema/bulk.js'
import type * as bulkActionTransactions from '../transactions/bulk-action.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { bulkAction, outcomeEntry, pageOf, storedOutcomes } from './answers.js'
import { cancelRuns } from './cancel.js'
import { controlRoutes } from './control-routes.js'
import type { RouteDeps } from './creation.js'
import { actionsCursor, itemCursor, readActionsCursor, readItemCursor } from './cursors.js'
import { progressOf } from './progress.js'
import { startRoutes } from './start-routes.js'

const DEFAULT_PAGE = 100

/** The HTTP operations of this room. */
export function bulkRoutes(deps: RouteDeps): Route[] {
  return [
    route(contract.cancelWorkflowRuns, (call) => cancelRuns(deps, call)),
    route(contract.listBulkActions, (call) => listActions(deps, call.caller, call.query)),
    route(contract.getBulkAction, async (call) => {
      const action = await findAction(deps, call.caller, call.params.actionId)
      return wantsEvents(call) ? progressOf(deps, action, call) : bulkAction(action)
    }),
    route(contract.listBulkOutcomes, async (call) => {
      const action = await findAction(deps, call.caller, call.params.actionId)
      return listOutcomes(deps, action, call.query)
    }),
    ...controlRoutes(deps),
    ...startRoutes(deps),
  ]
}

const wantsEvents = ({ headers }: Pick<Call, 'headers'>): boolean =>
  headers.accept?.includes('text/event-stream') ?? false

async function findAction(
  { store }: RouteDeps,
  caller: Caller,
  actionId: string,
): Promise<bulkActionTransactions.BulkActionRow> {
  const row = await store.run(bulkRead.action, { accountId: caller.accountId, actionId })
  if (!row) throw new HomeportError('bulk_action_not_found', { actionId })
  return row
}

interface PageQuery {
  readonly cursor?: string
  readonly count?: number
}

interface ActionsQuery extends PageQuery {
  readonly state?: readonly BulkActionState[]
  readonly kind?: readonly BulkKindName[]
}

async function listActions({ store }: RouteDeps, { accountId }: Caller, query: ActionsQuery) {
  const limit = query.count ?? DEFAULT_PAGE
  const before = readActionsCursor(query.cursor)
  const { state: states = contract.BULK_STATES, kind: kinds = contract.BULK_KINDS } = query
  const rows = await store.run(bulkRead.actions, { accountId, before, limit: limit + 1, states, kinds })
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  return {
    bulkActions: shown.map(bulkAction),
    ...(last && rows.length > limit ? { cursor: actionsCursor(last.seq) } : {}),
  }
}

type OutcomesQuery = PageQuery & { readonly outcome?: Parameters<typeof storedOutcomes>[1] }

async function listOutcomes({ store }: RouteDeps, action: bulkActionTransactions.BulkActionRow, query: OutcomesQuery) {
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
