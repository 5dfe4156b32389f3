/** Tables of this room. */
export type MessageTables = Record<never, never>
