/** The activity of an account in a quarter of an hour, as counted by one process. */
export interface ActivityTable {
  account_id: string
  /** Start of the quarter, Unix milliseconds. */
  start: number
  /** The block of the process that counted; blocks of one quarter are added. */
  writer: string
  /** JSON of `packCounts` (`activity/transactions/packed-counts.ts`). */
  counts: string
}

/** Tables of the module activity. */
export interface ActivityTables {
  activity: ActivityTable
}
