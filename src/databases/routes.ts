import type { IncomingHttpHeaders } from 'node:http'
import { getAwake } from '../contract/databases/awake.js'
import {
  createDatabase,
  deleteDatabase,
  getDatabase,
  LONGEST_IDEMPOTENCY_KEY,
  listDatabases,
} from '../contract/databases/databases.js'
import { HomeportError } from '../contract/errors/errors.js'
import { ok, type Route, route } from '../http/index.js'
import { backupRoutes } from './backups/index.js'
import { changeRoutes } from './changes/routes.js'
import type { Databases } from './databases.js'
import { quarantineRoutes } from './quarantine/index.js'
import { usageRoutes } from './usage/index.js'

/** The operations of the management API on databases (reference redis 1.2). */
export function databaseRoutes(databases: Databases): Route[] {
  return [
    route(createDatabase, (call) => databases.create(call.caller, call.body, idempotencyKey(call.headers))),
    route(listDatabases, (call) => databases.list(call.caller, call.query.credentials ?? 'show')),
    route(getDatabase, (call) => databases.get(call.caller, call.params.id, call.query.credentials ?? 'show')),
    route(deleteDatabase, (call) => ok(databases.remove(call.caller, call.params.id))),
    route(getAwake, (call) => databases.whyAwake(call.caller, call.params.id)),
    ...backupRoutes(databases.backups),
    ...quarantineRoutes(databases.quarantine),
    ...usageRoutes({ usage: databases.usage, isAwake: (databaseId) => databases.isAwake(databaseId) }),
    ...changeRoutes(databases.changes, (row, caller) => databases.recordFor(row, caller)),
  ]
}

/** The caller's key; an empty one counts as none. */
function idempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const value = headers['idempotency-key']
  const key = Array.isArray(value) ? value.join(', ') : value
  if (key === undefined || key === '') return undefined
  if (key.length <= LONGEST_IDEMPOTENCY_KEY) return key
  const problem = `The header Idempotency-Key may have at most ${LONGEST_IDEMPOTENCY_KEY} characters; found ${key.length}.`
  throw new HomeportError('invalid_request', { problem })
}
