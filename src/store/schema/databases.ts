/** Tables of this room. */
export type DatabaseTables = Record<never, never>
