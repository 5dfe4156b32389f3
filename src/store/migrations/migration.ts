import type { ColumnTypes } from '../dialect.js'

/**
 * A migration of the schema. Migrations are numbered and run in order, forward only, each in its own transaction. Both
 * databases run the same statements, with their own column types.
 */
export interface Migration {
  readonly number: number
  readonly name: string
  /** Whether an older Homeport must refuse a store with this migration. */
  readonly breaking: boolean
  readonly statements: (types: ColumnTypes) => readonly string[]
}
