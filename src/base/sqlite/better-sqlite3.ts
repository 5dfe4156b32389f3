import { createRequire } from 'node:module'
import type Database from 'better-sqlite3'
import { neverCollected } from '../garbage-collection.js'
import type { SqliteDatabase, SqliteOpening, SqliteStatement } from './types.js'

/** Loaded only by a Node without a driver of its own, because the package may have to be compiled. */
export function loadBetterSqlite3(): typeof Database {
  return createRequire(import.meta.url)('better-sqlite3') as typeof Database
}

/** A file opened by better-sqlite3. Its objects are kept, see `neverCollected`. */
export class BetterSqlite3Database implements SqliteDatabase {
  readonly #db: Database.Database

  constructor(Driver: typeof Database, path: string, { readOnly, mustExist, busyTimeoutMs }: Required<SqliteOpening>) {
    const options = { readonly: readOnly, fileMustExist: mustExist, timeout: busyTimeoutMs }
    this.#db = neverCollected(new Driver(path, options))
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
    return neverCollected(this.#db.prepare(sql)) as SqliteStatement
  }

  close(): void {
    this.#db.close()
  }
}
