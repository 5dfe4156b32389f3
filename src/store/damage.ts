import { codeOf } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

/** Data in the store that is unreadable or has changed since it was written. */
export interface StoreDamage {
  /** The table, or the tables of the statement that failed. */
  readonly table: string
  /** The message of the database. */
  readonly found: string
}

/** SQLite's codes for damaged pages; PostgreSQL's `data_corrupted` and `index_corrupted`. */
const DAMAGE = /^(?:SQLITE_CORRUPT|SQLITE_NOTADB|XX001$|XX002$)/

/** Whether a driver's error means that the data is damaged. */
export function isDamage(error: unknown): boolean {
  return DAMAGE.test(codeOf(error))
}

/** The error that callers get for a driver's error about damage; the tables are taken from the statement. */
export function damageIn(sql: string, error: unknown): HomeportError<'store_damaged'> {
  const found = error instanceof Error ? error.message : String(error)
  return new HomeportError('store_damaged', { table: tablesIn(sql), found })
}

const TABLE = /\b(?:from|join|update|into)\s+"?([a-z][a-z_]*)"?(?![a-z_]*\()/gi

/** The tables that a statement names. Names of parts of a statement begin with `_`. */
function tablesIn(sql: string): string {
  const tables = new Set([...sql.matchAll(TABLE)].map(([, table]) => table))
  return tables.size === 0 ? 'unknown' : [...tables].join(', ')
}
