import type { IncomingHttpHeaders } from 'node:http'
import { getAwake } from '../contract/databases/awake.js'
import {
  acceptDataLoss,
  createBackup,
  deleteBackup,
  disableDailyBackup,
  disableDailyBackupByPost,
  downloadBackup,
  enableDailyBackup,
  enableDailyBackupByPost,
  getImport,
  importFile,
  importFromUrl,
  listBackups,
  listImports,
  restoreBackup,
} from '../contract/databases/backups.js'
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
  resumeDatabase,
  suspendDatabase,
  updateAllowList,
  updateBudget,
  updateMutualTls,
  updateRegions,
} from '../contract/databases/changes.js'
import {
  createDatabase,
  type DatabaseRecord,
  deleteDatabase,
  getDatabase,
  listDatabases,
  MAX_IDEMPOTENCY_KEY_LENGTH,
} from '../contract/databases/databases.js'
import { adoptQuarantined, listQuarantine } from '../contract/databases/quarantine.js'
import { recoverDatabase } from '../contract/databases/recovery.js'
import { NO_FREE_DATABASES, startFreeDatabase } from '../contract/databases/start-free.js'
import { DEFAULT_STATS_PERIOD, getDatabaseStats } from '../contract/databases/stats.js'
import { adoptStoredBackup, listStoredBackups } from '../contract/databases/stored-backups.js'
import { HomeportError } from '../contract/errors/errors.js'
import { type Addressed, type Caller, ok, type Reply, type Route, reply, route } from '../http/index.js'
import type { BackupDownload, Backups } from './backups/index.js'
import type { Changes } from './changes/changes.js'
import type { Databases } from './interface.js'
import type { DatabaseRow } from './lifecycle.js'
import { readCreation } from './older-spelling.js'
import type { Quarantine } from './quarantine/index.js'
import { readStats, type Usage } from './usage/index.js'

/** The operations of the management API on databases (reference redis 1.2, 1.8). */
export function databaseRoutes(databases: Databases): Route[] {
  const render: Render = (row, caller) => databases.recordFor(row, caller)
  const create = route(createDatabase, (call) =>
    databases.create(call.caller, readCreation(call.body), idempotencyKey(call.headers)),
  )
  return withHomes(databases.homes, [
    { ...create, elsewhere: (request) => databases.placement.elsewhere(request) },
    route(startFreeDatabase, async () =>
      reply(200, Buffer.from(NO_FREE_DATABASES), { 'content-type': 'text/markdown; charset=utf-8' }),
    ),
    route(listDatabases, (call) => databases.list(call.caller, call.query.credentials ?? 'show')),
    route(getDatabase, (call) => databases.get(call.caller, call.params.id, call.query.credentials ?? 'show')),
    route(deleteDatabase, (call) => ok(databases.remove(call.caller, call.params.id))),
    route(getAwake, (call) => databases.whyAwake(call.caller, call.params.id)),
    ...backupRoutes(databases.backups),
    route(recoverDatabase, ({ caller, params, body }) => databases.recovery.recover(caller, params.id, body.backup_id)),
    ...quarantineRoutes(databases.quarantine),
    ...usageRoutes(databases.usage),
    ...recordRoutes(databases.changes, render),
    ...toggleRoutes(databases.changes),
    ...valueRoutes(databases.changes),
  ])
}

/** Routes about files of this server: their `{id}` is not the id of a database. */
const FILE_PATHS: ReadonlySet<string> = new Set([adoptQuarantined.path])

/** Passes requests about a database on to its home. */
export function withHomes(homes: Databases['homes'], routes: readonly Route[]): Route[] {
  if (!homes.hasOtherNodes) return [...routes]
  const elsewhere = (request: Addressed) => homes.elsewhere(request)
  const isAddressed = ({ path }: Route['endpoint']): boolean =>
    (path.includes('{id}') && !FILE_PATHS.has(path)) || path === moveToTeam.path
  const named = async (request: Addressed) => homes.named(request)
  return routes.map((each) => {
    if (each.endpoint.path === recoverDatabase.path) return { ...each, elsewhere: named }
    if (each.endpoint.id === deleteDatabase.id) return { ...each, elsewhere: (one) => homes.elsewhereToDelete(one) }
    return isAddressed(each.endpoint) ? { ...each, elsewhere } : each
  })
}

/** Renders a database for a caller. */
type Render = (row: DatabaseRow, caller: Caller) => DatabaseRecord

/** The caller's key; an empty one counts as none. */
function idempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const value = headers['idempotency-key']
  const key = Array.isArray(value) ? value.join(', ') : value
  if (key === undefined || key === '') return undefined
  if (key.length <= MAX_IDEMPOTENCY_KEY_LENGTH) return key
  const problem = `The header Idempotency-Key may have at most ${MAX_IDEMPOTENCY_KEY_LENGTH} characters; found ${key.length}.`
  throw new HomeportError('invalid_request', { problem })
}

/** Rows 17 to 22 of reference redis 1.2. */
function backupRoutes(backups: Backups): Route[] {
  return [
    route(listBackups, (call) => backups.list(call.caller, call.params.id)),
    route(createBackup, (call) => ok(backups.create(call.caller, call.params.id, call.body.name))),
    route(deleteBackup, (call) => ok(backups.remove(call.caller, call.params.id, call.params.backup_id))),
    route(restoreBackup, (call) => ok(backups.restore(call.caller, call.params.id, call.body.backup_id))),
    route(acceptDataLoss, (call) => ok(backups.acceptLoss(call.caller, call.params.id))),
    ...[enableDailyBackup, enableDailyBackupByPost].map((endpoint) =>
      route(endpoint, (call) => ok(backups.setDaily(call.caller, call.params.id, 'on'))),
    ),
    ...[disableDailyBackup, disableDailyBackupByPost].map((endpoint) =>
      route(endpoint, (call) => ok(backups.setDaily(call.caller, call.params.id, 'off'))),
    ),
    route(listStoredBackups, (call) => backups.listStored(call.caller, call.query.database_id)),
    route(adoptStoredBackup, (call) => backups.adoptStored(call.caller, call.params.id, call.body)),
    route(importFromUrl, (call) => backups.importFromUrl(call.caller, call.params.id, call.body.url)),
    route(importFile, (call) =>
      backups.importFile(call.caller, call.params.id, {
        content: call.body,
        isStillAllowed: () => call.isStillAllowed(),
      }),
    ),
    route(getImport, (call) => backups.importProgress(call.caller, call.params.id)),
    route(listImports, (call) => backups.listImports(call.caller, call.params.id)),
    route(downloadBackup, async (call) =>
      fileReply(await backups.download(call.caller, call.params.id, call.params.backup_id)),
    ),
  ]
}

/** An RDB file as a download. Its name is reduced to ASCII, because it stands in a header. */
function fileReply({ row, stream }: BackupDownload): Reply {
  const name = row.name.replace(/[^A-Za-z0-9._-]+/g, '-')
  return reply(200, stream, {
    'content-type': 'application/octet-stream',
    'content-length': `${row.size_bytes}`,
    'content-disposition': `attachment; filename="${name}.rdb"`,
    'x-content-sha256': row.sha256,
  })
}

function quarantineRoutes(quarantine: Quarantine): Route[] {
  return [
    route(listQuarantine, ({ caller }) => quarantine.list(caller)),
    route(adoptQuarantined, ({ caller, params, body }) => quarantine.adopt(caller, params.id, body)),
  ]
}

function usageRoutes(usage: Usage): Route[] {
  return [
    route(getDatabaseStats, ({ caller, params, query }) =>
      readStats(usage, { accountId: caller.accountId, databaseId: params.id }, query.period ?? DEFAULT_STATS_PERIOD),
    ),
  ]
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
    route(suspendDatabase, (call) => ok(changes.setSuspended(call.caller, call.params.id, true))),
    route(resumeDatabase, (call) => ok(changes.setSuspended(call.caller, call.params.id, false))),
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
      ok(changes.setReadRegions(caller, params.id, body.read_regions ?? [])),
    ),
    route(updateAllowList, ({ caller, params, body }) =>
      ok(changes.setAllowList(caller, params.id, body.allowed_ips ?? [])),
    ),
    route(moveToTeam, ({ caller, body }) => ok(changes.moveToTeam(caller, body.database_id, body.team_id))),
  ]
}
