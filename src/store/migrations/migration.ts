import type { ColumnTypes } from '../dialect.js'

/**
 * One step of the schema. Steps are numbered, run in order, only forward, each in a transaction of its own; one text
 * serves both databases, with the column types filled in.
 */
export interface Migration {
  readonly number: number
  readonly name: string
  /** Whether an older Homeport must not work on a store that has this step. */
  readonly breaking: boolean
  readonly statements: (types: ColumnTypes) => readonly string[]
}
