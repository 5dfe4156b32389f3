import { basename } from 'node:path'
import { unreachable } from '../base/index.js'
import { backUpService, getServiceBackup, type ServiceBackup } from '../contract/server/service-backup.js'
import { type Caller, type Route, route } from '../http/index.js'
import type { BackupState, ServiceBackups } from './make.js'
import { bytesOf } from './manifest.js'

/** The operations of the management API on backups of the whole service. */
export function serviceBackupRoutes(
  backups: ServiceBackups,
  accounts: { requireOperator(caller: Caller): void },
): Route[] {
  return [
    route(backUpService, async ({ caller, body }) => {
      accounts.requireOperator(caller)
      backups.begin(body.to, body.keep)
      return render(backups.state)
    }),
    route(getServiceBackup, async ({ caller, query }) => {
      accounts.requireOperator(caller)
      return render(await backups.ended((query.wait ?? 0) * 1_000))
    }),
  ]
}

const NOTHING = {
  name: '',
  path: '',
  problem: '',
  databases: 0,
  databases_done: 0,
  bytes: 0,
  start_time: 0,
  end_time: 0,
  without: [],
}

const seconds = (ms: number): number => Math.floor(ms / 1_000)

function render(state: BackupState): ServiceBackup {
  switch (state.kind) {
    case 'none':
      return { ...NOTHING, state: 'none' }
    case 'running': {
      const { path, startedAt, progress } = state
      const counts = { databases: progress.databases, databases_done: progress.done }
      return { ...NOTHING, state: 'running', name: basename(path), path, ...counts, start_time: seconds(startedAt) }
    }
    case 'failed': {
      const { path, problem, startedAt, endedAt } = state
      const times = { start_time: seconds(startedAt), end_time: seconds(endedAt) }
      return { ...NOTHING, state: 'failed', name: basename(path), path, problem, ...times }
    }
    case 'completed': {
      const { path, manifest } = state
      const failed = manifest.databases.filter((one) => one.state === 'failed')
      return {
        state: 'completed',
        name: basename(path),
        path,
        problem: '',
        bytes: bytesOf(manifest),
        databases: manifest.databases.length,
        databases_done: manifest.databases.length - failed.length,
        without: failed.map(({ databaseId, name, problem }) => ({
          database_id: databaseId,
          database_name: name,
          problem,
        })),
        start_time: seconds(manifest.startedAt),
        end_time: seconds(manifest.endedAt),
      }
    }
    default:
      return unreachable(state)
  }
}
