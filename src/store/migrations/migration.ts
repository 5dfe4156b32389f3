import type { ColumnTypes } from '../dialect.js'
import type { SchemaRange } from '../schema/cluster.js'

/**
 * A migration of the schema. Migrations are numbered and run in order, forward only, each in its own transaction;
 * a new store gets all of them in one. Both databases run the same statements, with their own column types.
 *
 * Nodes of one generation run beside nodes of the generation before while a cluster is upgraded. So a migration is one of
 * these:
 * - It *expands*: `breaking: false`. It adds tables, and columns that have a default or may be NULL. Older code continues to
 *   work. It locks no table for long, because clients wait meanwhile.
 *   If older code would misread rows that it makes possible, the transaction that stores the first one asks for a generation
 *   (`requireGeneration` of `cluster/transactions/cluster-nodes.ts`): the migration counts as breaking from then on.
 * - It *contracts*: `breaking: true`, `worksFrom` the generation before. It removes what that generation no longer reads or
 *   writes, so it comes one generation after the one that stopped using it.
 * - It does neither: `breaking: true` alone. All nodes have to be stopped; avoid it.
 */
export interface Migration {
  readonly number: number
  readonly name: string
  /** Whether an older Homeport must refuse a store with this migration. */
  readonly breaking: boolean
  /** For a breaking migration: the oldest generation that works with such a store. Default: the generation that adds it. */
  readonly worksFrom?: number
  readonly statements: (types: ColumnTypes) => readonly string[]
}

/**
 * The generation of this code. It grows by one with a release that has a migration, or that changes what nodes send each
 * other. Generation 1 is everything before generations were stored, generation 2 has one standby of a database.
 */
export const GENERATION = 3

/** This code needs its own migrations, and lets the next generation run beside it. */
export const SCHEMA_RANGE: SchemaRange = { generation: GENERATION, schema_from: GENERATION, schema_to: GENERATION + 1 }

/** Whether code of a generation works with a store that has this migration. */
export const worksWith = (
  { breaking, works_from }: { readonly breaking: number; readonly works_from?: number | null },
  generation: number,
): boolean => breaking === 0 || (typeof works_from === 'number' && works_from <= generation)
