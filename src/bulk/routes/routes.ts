import { newId } from '../../base/index.js'
import * as contract from '../../contract/bulk/actions.js'
import * as control from '../../contract/bulk/control.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Caller, type Route, route, wantsEvents } from '../../http/index.js'
import type { BulkActionState, BulkKindName } from '../../store/schema/bulk.js'
import type * as bulkActionTransactions from '../transactions/bulk-action.js'
import * as bulkControl from '../transactions/bulk-control.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { bulkAction, outcomeEntry, pageOf, storedOutcomes } from './answers.js'
import { cancelRuns } from './cancel.js'
import type { RouteDeps } from './creation.js'
import { ProgressStreams } from './progress.js'
import { startRoutes } from './start.js'
import { undoRoutes } from './undo.js'
import { workflowPauseRoutes } from './workflow-pause.js'

const DEFAULT_PAGE = 100

/** The HTTP operations of the module. */
export function bulkRoutes(deps: RouteDeps): Route[] {
  const streams = new ProgressStreams(deps)
  return [
    route(contract.cancelWorkflowRuns, (call) => cancelRuns(deps, call)),
    route(contract.listBulkActions, (call) => listActions(deps, call.caller, call.query)),
    route(contract.getBulkAction, async (call) => {
      const action = await requireAction(deps, call.caller, call.params.actionId)
      return wantsEvents(call) ? streams.open(action, call) : bulkAction(action)
    }),
    route(contract.listBulkOutcomes, async (call) => {
      const action = await requireAction(deps, call.caller, call.params.actionId)
      return listOutcomes(deps, action, call.query)
    }),
    ...controlRoutes(deps),
    ...startRoutes(deps),
    ...undoRoutes(deps),
    ...workflowPauseRoutes(deps),
  ]
}

async function requireAction(
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

interface ControlCall {
  readonly caller: Caller
  readonly params: { readonly actionId: string }
  readonly body?: { readonly reason?: string } | undefined
}

/** Routes that pause, resume, abort and change actions. */
function controlRoutes(deps: RouteDeps): Route[] {
  const { pause, resume, abort, setRate, liftFence } = bulkControl
  return [
    route(control.pauseBulkAction, (call) =>
      applyControl(deps, call, 'paused', deps.store.run(pause, argsOf(deps, call))),
    ),
    route(control.resumeBulkAction, (call) =>
      applyControl(deps, call, 'resumed', deps.store.run(resume, argsOf(deps, call))),
    ),
    route(control.abortBulkAction, (call) =>
      applyControl(deps, call, 'aborted', deps.store.run(abort, argsOf(deps, call))),
    ),
    route(control.changeBulkAction, ({ caller, params, body: { ratePerSecond } }) => {
      const args = { ...argsOf(deps, { caller, params }), ratePerSecond }
      return applyControl(deps, { caller, params }, 'changed', deps.store.run(setRate, args))
    }),
    route(control.liftBulkFence, (call) => {
      const args = argsOf(deps, { caller: call.caller, params: call.params })
      return applyControl(
        deps,
        { caller: call.caller, params: call.params },
        'changed',
        deps.store.run(liftFence, args),
      )
    }),
  ]
}

function argsOf({ clock, cluster }: RouteDeps, { caller, params, body }: ControlCall): bulkControl.ControlArgs {
  const { accountId, email: actor, source, ip } = caller
  const at = clock.now()
  const by = { actor, source, ip, logId: newId('log_', at) }
  return { accountId, actionId: params.actionId, by, reason: body?.reason ?? null, at, owner: cluster.incarnation }
}

async function applyControl(
  { nodes }: RouteDeps,
  { params: { actionId } }: ControlCall,
  act: string,
  controlling: Promise<bulkControl.Controlled>,
) {
  const result = await controlling
  switch (result.kind) {
    case 'missing':
      throw new HomeportError('bulk_action_not_found', { actionId })
    case 'refused':
      throw new HomeportError('bulk_action_refused', { actionId, state: result.action.state, act })
    case 'changed':
      await nodes.changed(result.action)
      return bulkAction(result.action)
  }
}

// Cursors of pages are opaque to callers; anything we did not issue is refused.

/** The cursor after an action. */
function actionsCursor(seq: number): string {
  return String(seq)
}

/** Upper bound of the action numbers of the next page. */
function readActionsCursor(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER
  const [seq] = numbers(cursor, /^(\d{1,15})$/)
  return seq ?? 0
}

/** The cursor of an item position. */
function itemCursor({ chunk, position }: bulkRead.ItemPlace): string {
  return `${chunk}-${position}`
}

/** The position where the next page of items begins. */
function readItemCursor(cursor: string | undefined): bulkRead.ItemPlace {
  if (cursor === undefined) return { chunk: 0, position: 0 }
  const [chunk, position] = numbers(cursor, /^(\d{1,9})-(\d{1,9})$/)
  return { chunk: chunk ?? 0, position: position ?? 0 }
}

function numbers(cursor: string, shape: RegExp): number[] {
  const match = shape.exec(cursor)
  if (match) return match.slice(1).map(Number)
  const problem =
    'The query parameter `cursor` must be the cursor of an earlier page, or be left out for the first page.'
  throw new HomeportError('invalid_request', { problem })
}
