import { codeOf } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

/** Something in the store that cannot be read any more, or is not what was written. */
export interface StoreDamage {
  /** Where it is: a table, or several that one statement joins. */
  readonly table: string
  /** What was found, in the words of the database. */
  readonly found: string
}

/** SQLite: pages that make no sense. PostgreSQL: `data_corrupted` and `index_corrupted`. */
const DAMAGE = /^(?:SQLITE_CORRUPT|SQLITE_NOTADB|XX001$|XX002$)/

/** Whether an error of a driver says that the data itself is damaged. */
export function isDamage(error: unknown): boolean {
  return DAMAGE.test(codeOf(error))
}

/** An error of a driver about damage, as callers get it; the statement tells the tables. */
export function damageIn(sql: string, error: unknown): HomeportError<'store_damaged'> {
  const found = error instanceof Error ? error.message : String(error)
  return new HomeportError('store_damaged', { table: tablesIn(sql), found })
}

const TABLE = /\b(?:from|join|update|into)\s+"?([a-z][a-z_]*)"?(?![a-z_]*\()/gi

/** The tables that a statement names. */
function tablesIn(sql: string): string {
  const tables = new Set([...sql.matchAll(TABLE)].map(([, table]) => table))
  return tables.size === 0 ? 'unknown' : [...tables].join(', ')
}
