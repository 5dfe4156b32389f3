/** Tables of this room. */
export type RunTables = Record<never, never>
