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
  restoreBackup,
} from '../../contract/databases/backups.js'
import { ok, type Reply, type Route, reply, route } from '../../http/index.js'
import type { BackupDownload, Backups } from './backups.js'

/** The operations of the management API on backups (reference redis 1.2, rows 17 to 22). */
export function backupRoutes(backups: Backups): Route[] {
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
    route(importFromUrl, (call) => backups.importFromUrl(call.caller, call.params.id, call.body.url)),
    route(importFile, (call) => backups.importFile(call.caller, call.params.id, call.body)),
    route(getImport, (call) => backups.importProgress(call.caller, call.params.id)),
    route(downloadBackup, async (call) =>
      asFile(await backups.download(call.caller, call.params.id, call.params.backup_id)),
    ),
  ]
}

/** A file as clients save it; the name goes into the header as ASCII only. */
function asFile({ row, stream }: BackupDownload): Reply {
  const name = row.name.replace(/[^A-Za-z0-9._-]+/g, '-')
  return reply(200, stream, {
    'content-type': 'application/octet-stream',
    'content-length': `${row.size_bytes}`,
    'content-disposition': `attachment; filename="${name}.rdb"`,
    'x-content-sha256': row.sha256,
  })
}
