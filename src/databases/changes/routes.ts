import {
  changePlan,
  changePlanByVerb,
  disableAutoUpgrade,
  disableEviction,
  disableProductionPack,
  enableAutoUpgrade,
  enableEviction,
  enableProductionPack,
  enableTls,
  moveToTeam,
  renameDatabase,
  resetPassword,
  updateAllowList,
  updateBudget,
  updateMutualTls,
  updateRegions,
} from '../../contract/databases/changes.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { type Caller, ok, type Route, route } from '../../http/index.js'
import type { DatabaseRow } from '../life.js'
import type { Changes } from './changes.js'

/** Renders a database for a caller. */
export type Render = (row: DatabaseRow, caller: Caller) => DatabaseRecord

/** The operations that change a database (reference redis 1.2). */
export function changeRoutes(changes: Changes, render: Render): Route[] {
  return [...recordRoutes(changes, render), ...toggleRoutes(changes), ...valueRoutes(changes)]
}

function recordRoutes(changes: Changes, render: Render): Route[] {
  return [
    route(renameDatabase, async ({ caller, params, body }) =>
      render(await changes.rename(caller, params.id, body.name), caller),
    ),
    route(resetPassword, async ({ caller, params }) => render(await changes.resetPassword(caller, params.id), caller)),
    route(updateMutualTls, async ({ caller, params, body }) =>
      render(await changes.setClientAuthority(caller, params.id, body.client_ca), caller),
    ),
    route(enableTls, async ({ caller, params }) => render(await changes.enableTls(caller, params.id), caller)),
  ]
}

function toggleRoutes(changes: Changes): Route[] {
  return [
    route(enableEviction, (call) => ok(changes.setEviction(call.caller, call.params.id, true))),
    route(disableEviction, (call) => ok(changes.setEviction(call.caller, call.params.id, false))),
    route(enableAutoUpgrade, (call) => ok(changes.setAutoUpgrade(call.caller, call.params.id, true))),
    route(disableAutoUpgrade, (call) => ok(changes.setAutoUpgrade(call.caller, call.params.id, false))),
    route(enableProductionPack, (call) => ok(changes.setProductionPack(call.caller, call.params.id, true))),
    route(disableProductionPack, (call) => ok(changes.setProductionPack(call.caller, call.params.id, false))),
  ]
}

function valueRoutes(changes: Changes): Route[] {
  return [
    route(changePlan, ({ caller, params, body }) => ok(changes.changePlan(caller, params.id, body))),
    route(changePlanByVerb, ({ caller, params, body }) => ok(changes.changePlan(caller, params.id, body))),
    route(updateBudget, ({ caller, params, body }) => ok(changes.setBudget(caller, params.id, body.budget))),
    route(updateRegions, ({ caller, params, body }) =>
      ok(changes.setReadRegions(caller, params.id, body.read_regions)),
    ),
    route(updateAllowList, ({ caller, params, body }) => ok(changes.setAllowList(caller, params.id, body.allowed_ips))),
    route(moveToTeam, ({ caller, body }) => ok(changes.moveToTeam(caller, body.database_id, body.team_id))),
  ]
}
