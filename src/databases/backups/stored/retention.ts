import type { Retention } from '../../deps.js'
import type { StoredDaily } from '../../transactions/backup-objects.js'
import { DAILY_ON_DISK_MS, DAILY_ON_DISK_WITH_PACK_MS } from '../daily.js'

/**
 * The daily backups to delete. The newest one of each database stays, whatever its age and size.
 * @param stored newest first.
 */
export function beyondRetention(stored: readonly StoredDaily[], limits: Retention, nowMs: number): StoredDaily[] {
  const counts = new Map<string, number>()
  let bytes = 0
  return stored.filter(({ database_id, created_at, size_bytes }) => {
    const count = (counts.get(database_id) ?? 0) + 1
    counts.set(database_id, count)
    const isTooOld = created_at < nowMs - limits.ageMs
    const isBeyond = limits.bytes > 0 && bytes + size_bytes > limits.bytes
    const goes = count > 1 && (count > limits.count || isTooOld || isBeyond)
    if (!goes) bytes += size_bytes
    return goes
  })
}

/** The daily backups whose file may be deleted on the disk, because object storage has them. The newest one stays. */
export function locallyExpired(stored: readonly StoredDaily[], nowMs: number): StoredDaily[] {
  const seen = new Set<string>()
  return stored.filter(({ database_id, created_at, production_pack }) => {
    const isNewest = !seen.has(database_id)
    seen.add(database_id)
    const keptMs = production_pack === 1 ? DAILY_ON_DISK_WITH_PACK_MS : DAILY_ON_DISK_MS
    return !isNewest && created_at < nowMs - keptMs
  })
}
