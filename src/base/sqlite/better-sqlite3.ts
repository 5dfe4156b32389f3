import { createRequire } from 'node:module'
import type Database from 'better-sqlite3'
import { keepForever } from '../garbage-collection.js'
import type { SqliteDatabase, SqliteOpening, SqliteStatement } from './types.js'

/** This Node has no driver of its own, and the package is missing or was not compiled for it. */
export class SqliteDriverMissing extends Error {
  readonly code = 'SQLITE_DRIVER_MISSING'
}

/**
 * Loaded only by a Node without a driver of its own, because the package may have to be compiled.
 * @throws SqliteDriverMissing
 */
export function loadBetterSqlite3(load: (id: string) => unknown = createRequire(import.meta.url)): typeof Database {
  try {
    return load('better-sqlite3') as typeof Database
  } catch (error) {
    throw new SqliteDriverMissing('the package better-sqlite3 is not installed', { cause: error })
  }
}

/** Whether V8 may collect statements: safe on older versions of Node, which use this driver by default. */
const MAY_COLLECT = Number.parseInt(process.versions.node, 10) < 24

/** A file opened by better-sqlite3. Its objects are kept, see `keepForever`. */
export class BetterSqlite3Database implements SqliteDatabase {
  readonly #db: Database.Database

  constructor(Driver: typeof Database, path: string, { readOnly, mustExist, busyTimeoutMs }: Required<SqliteOpening>) {
    const options = { readonly: readOnly, fileMustExist: mustExist, timeout: busyTimeoutMs }
    this.#db = keepForever(opened(Driver, path, options))
  }

  get isOpen(): boolean {
    return this.#db.open
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  prepare(sql: string): SqliteStatement {
    const statement = this.#db.prepare(sql)
    return (MAY_COLLECT ? statement : keepForever(statement)) as SqliteStatement
  }

  close(): void {
    this.#db.close()
  }
}

/** The package loads its compiled part when it opens the first file. */
function opened(Driver: typeof Database, path: string, options: Database.Options): Database.Database {
  try {
    return new Driver(path, options)
  } catch (error) {
    const isOfFile = error instanceof Driver.SqliteError || error instanceof TypeError
    if (isOfFile) throw error
    throw new SqliteDriverMissing('the package better-sqlite3 was not compiled for this Node', { cause: error })
  }
}
