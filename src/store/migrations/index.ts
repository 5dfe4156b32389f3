import type { ColumnTypes } from '../dialect.js'
import { accounts } from './001-accounts.js'

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

/** All steps in order. */
export const MIGRATIONS: readonly Migration[] = [accounts]

/** The table that remembers which steps a store has. It is made before the first step. */
export function ledgerStatement(types: ColumnTypes): string {
  return `CREATE TABLE IF NOT EXISTS schema_migrations (
    number ${types.integer} PRIMARY KEY,
    name ${types.text} NOT NULL,
    breaking ${types.integer} NOT NULL,
    applied_at ${types.integer} NOT NULL
  )`
}

/** A row of the ledger. */
export interface AppliedMigration {
  readonly number: number
  readonly name: string
  readonly breaking: number
}

/**
 * Which steps are still to run on a store that has `applied`.
 * @throws when the store was changed by a newer Homeport in a way that this one does not understand.
 */
export function pendingMigrations(applied: readonly AppliedMigration[]): readonly Migration[] {
  const known = new Set(MIGRATIONS.map((migration) => migration.number))
  const foreign = applied.find((row) => !known.has(row.number) && row.breaking === 1)
  if (foreign) {
    throw new Error(
      `The store has the schema step ${foreign.number} (${foreign.name}) of a newer Homeport, which this version cannot work with. Start the newer version.`,
    )
  }
  const done = new Set(applied.map((row) => row.number))
  return MIGRATIONS.filter((migration) => !done.has(migration.number))
}
