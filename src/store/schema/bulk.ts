/** Tables of this room. */
export type BulkTables = Record<never, never>
