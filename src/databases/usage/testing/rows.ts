import type { DatabaseRecord } from '../../../contract/databases/databases.js'
import type * as usage from '../../transactions/usage.js'
import * as usageSample from '../../transactions/usage-sample.js'

/** What one GET has used. */
export const ONE_READ: usageSample.UsageSample = {
  counters: { requests: 1, reads: 1, writes: 0, scripts: 0, others: 0, bytesIn: 0, bytesOut: 0, hits: 0, misses: 0 },
  gauges: { open: 0, monitors: 0, keys: 0, usedBytes: 0, diskBytes: 0 },
  connections: 0,
  readLatency: usageSample.NO_LATENCY,
  writeLatency: usageSample.NO_LATENCY,
  commands: { GET: 1 },
}

/** An empty database, accounted for until a time. */
export const standingOf = ({ database_id }: DatabaseRecord, at: number): usage.StandingRow => ({
  database_id,
  accounted_at: at,
  plan: 'payg',
  looked_at: 0,
  keys: 0,
  used_bytes: 0,
  disk_bytes: 0,
})
