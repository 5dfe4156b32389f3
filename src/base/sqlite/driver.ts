import { BetterSqlite3Database, loadBetterSqlite3, SqliteDriverMissing } from './better-sqlite3.js'
import { loadNodeSqlite, type NodeSqlite, NodeSqliteDatabase } from './node-sqlite.js'
import type { SqliteDatabase, SqliteOpening } from './types.js'

/**
 * SQLite, with the driver that is built into Node (`node:sqlite`, from Node 22.16), else with the package better-sqlite3.
 * Both run SQLite synchronously and with the same results. `codeOf` gives SQLite's name for the errors of both, for example
 * `SQLITE_FULL` or `SQLITE_IOERR_WRITE`. The store uses the statements of the driver directly.
 */

/** The drivers. */
export type SqliteDriver = 'node:sqlite' | 'better-sqlite3'

let known: { readonly nodeSqlite: NodeSqlite | undefined } | undefined

/** Loads the driver at its first use: most commands need no database. */
function nodeSqlite(): NodeSqlite | undefined {
  known ??= { nodeSqlite: loadNodeSqlite() }
  return known.nodeSqlite
}

/** The driver that this process uses. */
export const sqliteDriver = (): SqliteDriver => (nodeSqlite() ? 'node:sqlite' : 'better-sqlite3')

/**
 * Opens a database file.
 * @throws an error with a code when it cannot be opened; SQLite notices some reasons only at the first statement.
 */
export function openSqlite(path: string, opening: SqliteOpening = {}): SqliteDatabase {
  const { readOnly = false, mustExist = readOnly, busyTimeoutMs = 5_000 } = opening
  const complete = { readOnly, mustExist, busyTimeoutMs }
  const own = nodeSqlite()
  return own
    ? new NodeSqliteDatabase(own, path, complete)
    : new BetterSqlite3Database(loadBetterSqlite3(), path, complete)
}

/** Why this process cannot open database files at all; undefined when it can. */
export function missingSqliteDriver(): string | undefined {
  try {
    openSqlite(':memory:').close()
    return undefined
  } catch (error) {
    if (error instanceof SqliteDriverMissing) return error.message
    throw error
  }
}

/** The values of the first column. */
export const firstColumn = (rows: readonly unknown[]): unknown[] =>
  rows.map((row) => (typeof row === 'object' && row !== null ? Object.values(row)[0] : undefined))
