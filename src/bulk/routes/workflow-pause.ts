import { auditRow } from '../../accounts/index.js'
import type { AuditAction } from '../../contract/accounts/audit.js'
import * as contract from '../../contract/bulk/paused.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Caller, type Route, route } from '../../http/index.js'
import { type PauseClock, type RunPause, storedPause } from '../../workflow/transactions/runs-pause.js'
import { selectRuns } from '../selector/select-runs.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import type { PauseSettings } from '../transactions/bulk-kinds.js'
import * as bulkPaused from '../transactions/bulk-paused.js'
import * as bulkSelect from '../transactions/bulk-select.js'
import { selectorForRecords } from './answers.js'
import { createAction, type RouteDeps } from './creation.js'

/**
 * Pause and resume of a workflow by its URL. A pause is a row that every trigger checks in memory, like a fence. A bulk
 * action changes the active runs. This order leaves no run out, on any node:
 *
 *   commit the row ─▶ all nodes read it ─▶ triggers that began before are stored ─▶ the set of the action is fixed
 *
 * If the server dies in between, the caller repeats the request: the row stays, and the action changes what is left.
 */
export function workflowPauseRoutes(deps: RouteDeps): Route[] {
  return [
    route(contract.pauseWorkflow, ({ caller, body }) => pause(deps, caller, body)),
    route(contract.resumeWorkflow, ({ caller, body }) => resume(deps, caller, body.workflowUrl)),
    route(contract.listPausedWorkflows, async ({ caller: { accountId } }) => {
      return { workflows: (await deps.store.run(bulkPaused.paused, { accountId })).map(onWire) }
    }),
  ]
}

interface Asked {
  readonly workflowUrl: string
  readonly clock?: PauseClock
  readonly reason?: string
}

async function pause(deps: RouteDeps, caller: Caller, { workflowUrl: url, clock = 'keep', reason }: Asked) {
  if (Buffer.byteLength(url) > contract.MAX_PAUSED_URL_BYTES) throw tooLong(url)
  const at = deps.clock.now()
  const given = { clock, ...(reason !== undefined && { reason }) }
  const asked: RunPause = { by: caller.email, ...given, ofWorkflow: true }
  const most = contract.MAX_PAUSED_WORKFLOWS
  const row = await deps.store.run(bulkPaused.pause, {
    row: { account_id: caller.accountId, url, paused_at: at, pause: JSON.stringify(asked) },
    most,
    audit: audit(caller, 'Pause Workflow', { url, details: given, at }),
  })
  if (!row) throw tooMany(most)
  await deps.nodes.workflowsChanged(caller.accountId)
  const stored = storedPause(row.pause)
  const settings: PauseSettings = { clock: stored.clock, workflowUrl: url }
  const action = await act(deps, caller, { kind: 'pauseRuns', url, paused: false, settings, reason: stored.reason })
  return { ...onWire(row), ...shown(action) }
}

async function resume(deps: RouteDeps, caller: Caller, url: string) {
  const at = deps.clock.now()
  const row = await deps.store.run(bulkPaused.resume, {
    accountId: caller.accountId,
    url,
    audit: audit(caller, 'Resume Workflow', { url, details: {}, at }),
  })
  await deps.nodes.workflowsChanged(caller.accountId)
  const settings: PauseSettings = { clock: 'keep', workflowUrl: url }
  const action = await act(deps, caller, { kind: 'unpauseRuns', url, paused: 'with-workflow', settings })
  return { workflowUrl: url, ...(row && { pausedAt: row.paused_at }), ...shown(action) }
}

interface Change {
  readonly kind: 'pauseRuns' | 'unpauseRuns'
  readonly url: string
  readonly paused: NonNullable<bulkSelect.RunFilter['paused']>
  readonly settings: PauseSettings
  readonly reason?: string | undefined
}

/** Changes the active runs of a workflow in the background. */
async function act(
  deps: RouteDeps,
  caller: Caller,
  { kind, url, paused, settings, reason }: Change,
): Promise<bulkAction.BulkActionRow> {
  const select = async () => {
    const bound = await deps.store.run(bulkSelect.newest, {})
    const target = { kind: 'matching' as const, filter: { url: [url], paused } }
    return selectRuns(deps.store, { accountId: caller.accountId, bound, most: undefined, sample: 0, target })
  }
  const selector = selectorForRecords({ workflowUrl: [url], workflowUrlExactMatch: true })
  const request = { kind, selector, settings: JSON.stringify(settings), reason }
  const action = await createAction(deps, caller, request, select)
  // Callers poll for progress, and the worker logs an interruption.
  deps.worker.finish(action).catch(() => undefined)
  return action
}

const shown = ({ action_id: actionId, matched }: bulkAction.BulkActionRow) => ({ actionId, matched })

function onWire({ url: workflowUrl, paused_at: at, pause }: bulkPaused.PausedRow) {
  const { by, reason, clock } = storedPause(pause)
  return { workflowUrl, paused: { at, by, clock, ...(reason !== undefined && { reason }) } }
}

function audit(
  caller: Caller,
  action: AuditAction,
  { url, details, at }: { url: string; details: Record<string, unknown>; at: number },
) {
  return auditRow(caller, { action, entity: url, details }, at)
}

function tooLong(url: string): HomeportError {
  const problem = `The URL has ${Buffer.byteLength(url)} bytes in UTF-8. A workflow whose URL has more than ${contract.MAX_PAUSED_URL_BYTES} cannot be paused; pause its runs with a bulk action.`
  return new HomeportError('invalid_request', { problem })
}

function tooMany(most: number): HomeportError {
  const problem = `This account has ${most} paused workflows, the maximum. Resume one first: see GET /v2/workflows/paused.`
  return new HomeportError('invalid_request', { problem })
}
