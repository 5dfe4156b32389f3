/** What one database did in one stretch of time. Stretches of a tier have the same length and never overlap. */
export interface UsageBucketsTable {
  database_id: string
  /** Length of the stretch, milliseconds. */
  tier_ms: number
  /** Beginning of the stretch, a multiple of its length. */
  start: number
  /** JSON of a `UsageSample`. */
  sample: string
}

/** What one database did on one day (UTC), and what that cost. */
export interface UsageDaysTable {
  database_id: string
  /** Midnight at which the day begins. */
  day: number
  /** As they are billed: a write also counts once for each read region. */
  requests: number
  reads: number
  writes: number
  scripts: number
  others: number
  bytes_in: number
  bytes_out: number
  /** Billionths of a US dollar. */
  cost_nano: number
  /** Size of the data set times how long it was held, KiB times seconds. */
  held_kib_s: number
}

/** What is known of one database at the moment up to which its usage is written down. */
export interface UsageStandingsTable {
  database_id: string
  /** Everything before this time stands in `usage_days`. */
  accounted_at: number
  /** The plan whose prices hold since then. */
  plan: string
  /** When the engine was last looked at; 0 for never. The figures are from then. */
  looked_at: number
  keys: number
  used_bytes: number
  disk_bytes: number
}

/** Up to when the stretches of a shorter tier have been put together into those of this one. */
export interface UsageRollupsTable {
  tier_ms: number
  rolled_to: number
}

/** Tables of the usage of databases. */
export interface UsageTables {
  usage_buckets: UsageBucketsTable
  usage_days: UsageDaysTable
  usage_standings: UsageStandingsTable
  usage_rollups: UsageRollupsTable
}
