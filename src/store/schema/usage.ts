/** Usage of a database in an interval. Intervals of a tier have the same length and never overlap. */
export interface UsageBucketsTable {
  database_id: string
  /** Length of the interval, milliseconds. */
  tier_ms: number
  /** Start of the interval, a multiple of its length. */
  start: number
  /** JSON of a `UsageSample`. */
  sample: string
}

/** Usage and cost of a database on one day (UTC). */
export interface UsageDaysTable {
  database_id: string
  /** Midnight at the start of the day. */
  day: number
  /** Billed requests: a write also counts once for each read region. */
  requests: number
  reads: number
  writes: number
  scripts: number
  others: number
  bytes_in: number
  bytes_out: number
  /** Billionths of a US dollar. */
  cost_nano: number
  /** Size of the data set integrated over time, KiB × seconds. */
  held_kib_s: number
}

/** State of a database's usage accounting: the time up to which usage is stored, and the last measurement. */
export interface UsageStandingsTable {
  database_id: string
  /** Usage before this time is in `usage_days`. */
  accounted_at: number
  /** The plan whose prices apply from then on. */
  plan: string
  /** When the engine was last measured; 0 for never. */
  looked_at: number
  keys: number
  used_bytes: number
  disk_bytes: number
}

/** Up to when intervals of a shorter tier have been merged into this tier. */
export interface UsageRollupsTable {
  tier_ms: number
  rolled_to: number
}

/** Tables of the usage statistics. */
export interface UsageTables {
  usage_buckets: UsageBucketsTable
  usage_days: UsageDaysTable
  usage_standings: UsageStandingsTable
  usage_rollups: UsageRollupsTable
}
