import { adoptQuarantined, listQuarantine } from '../../contract/databases/quarantine.js'
import { type Route, route } from '../../http/index.js'
import type { Quarantine } from './quarantine.js'

/** The operations of the management API on what was set aside. */
export function quarantineRoutes(quarantine: Quarantine): Route[] {
  return [
    route(listQuarantine, ({ caller }) => quarantine.list(caller)),
    route(adoptQuarantined, ({ caller, params, body }) => quarantine.adopt(caller, params.id, body)),
  ]
}
