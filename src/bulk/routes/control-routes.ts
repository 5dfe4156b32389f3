import { newId } from '../../base/index.js'
import * as contract from '../../contract/bulk/control.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Caller, type Route, route } from '../../http/index.js'
import * as bulkControl from '../transactions/bulk-control.js'
import { bulkAction } from './answers.js'
import type { RouteDeps } from './creation.js'

interface ControlCall {
  readonly caller: Caller
  readonly params: { readonly actionId: string }
  readonly body?: { readonly reason?: string } | undefined
}

/** Pausing, resuming, aborting and changing actions. */
export function controlRoutes(deps: RouteDeps): Route[] {
  const { pause, resume, abort, setRate, liftFence } = bulkControl
  return [
    route(contract.pauseBulkAction, (call) => control(deps, call, 'paused', deps.store.run(pause, argsOf(deps, call)))),
    route(contract.resumeBulkAction, (call) =>
      control(deps, call, 'resumed', deps.store.run(resume, argsOf(deps, call))),
    ),
    route(contract.abortBulkAction, (call) =>
      control(deps, call, 'aborted', deps.store.run(abort, argsOf(deps, call))),
    ),
    route(contract.changeBulkAction, ({ caller, params, body: { ratePerSecond } }) => {
      const args = { ...argsOf(deps, { caller, params }), ratePerSecond }
      return control(deps, { caller, params }, 'changed', deps.store.run(setRate, args))
    }),
    route(contract.liftBulkFence, (call) => {
      const args = argsOf(deps, { caller: call.caller, params: call.params })
      return control(deps, { caller: call.caller, params: call.params }, 'changed', deps.store.run(liftFence, args))
    }),
  ]
}

function argsOf({ clock }: RouteDeps, { caller, params, body }: ControlCall): bulkControl.ControlArgs {
  const { accountId, email: actor, source, ip } = caller
  const at = clock.now()
  const by = { actor, source, ip, logId: newId('log_', at) }
  return { accountId, actionId: params.actionId, by, reason: body?.reason ?? null, at }
}

async function control(
  { worker, fences }: RouteDeps,
  { caller, params: { actionId } }: ControlCall,
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
      if (result.action.fence_until === null) fences.lift(caller.accountId, actionId)
      worker.changed(result.action)
      return bulkAction(result.action)
  }
}
