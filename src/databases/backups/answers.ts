import { unreachable } from '../../base/index.js'
import type { BackupRecord, ImportRecord } from '../../contract/databases/backups.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { ObjectRow } from '../transactions/backup-objects.js'
import type * as backups from '../transactions/backups.js'
import type * as imports from '../transactions/imports.js'

/** A backup as the management API answers it. */
export function renderBackup(row: backups.BackupRow, customerId: string, place?: BackupPlace): BackupRecord {
  return {
    backup_id: row.backup_id,
    database_id: row.database_id,
    customer_id: customerId,
    name: row.name,
    creation_time: Math.floor(row.created_at / 1000),
    state: row.state,
    backup_size: row.size_bytes,
    daily_backup: row.kind === 'daily' ? 'true' : 'false',
    hourly_backup: 'false',
    internal_backup_tag: row.kind,
    key_count: row.key_count,
    ...(row.failure === null ? {} : { failure: row.failure }),
    ...(place && renderPlace(place)),
  }
}

/** Where a backup is: on the disk of its node, in object storage, or both. */
export interface BackupPlace {
  readonly isOnDisk: boolean
  readonly object: Pick<ObjectRow, 'state' | 'object' | 'size_bytes' | 'changed_at' | 'failure'> | undefined
}

function renderPlace({ isOnDisk, object }: BackupPlace): Pick<BackupRecord, 'on_disk' | 'storage'> {
  if (!object) return { on_disk: isOnDisk }
  const { state, object: address, size_bytes, changed_at, failure } = object
  const reason = failure === null ? {} : { failure }
  const storage = { state, object: address, size: size_bytes, changed_at: Math.floor(changed_at / 1000), ...reason }
  return { on_disk: isOnDisk, storage: { ...storage, state: state === 'deleting' ? 'waiting' : state } }
}

/** An import as the management API answers it. */
export function renderImport(row: imports.ImportRow): ImportRecord {
  const { database_id, backup_id, source, state, keys_read, keys_total, bytes_read } = row
  return {
    database_id,
    backup_id,
    source,
    state,
    keys_read,
    bytes_read,
    started_at: Math.floor(row.started_at / 1000),
    ...(keys_total === null ? {} : { keys_total }),
    ...(row.finished_at === null ? {} : { finished_at: Math.floor(row.finished_at / 1000) }),
    ...(row.failure === null ? {} : { failure: row.failure }),
  }
}

/** Throws the error for a refused change. */
export function refuse(refusal: backups.Refusal, databaseId: string): never {
  switch (refusal.kind) {
    case 'not_found':
      throw new HomeportError('database_not_found', { databaseId })
    case 'busy':
      throw new HomeportError('database_busy', { modifyingState: refusal.modifyingState })
    case 'plan':
      throw new HomeportError('daily_backup_not_allowed', { plan: refusal.plan })
    case 'too_many':
      throw new HomeportError('too_many_backups', { most: refusal.most })
    default:
      return unreachable(refusal)
  }
}
