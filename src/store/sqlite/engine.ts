import Database from 'better-sqlite3'
import { sqliteDialect } from '../dialect.js'
import { type AppliedMigration, ledgerStatement, pendingMigrations } from '../migrations/index.js'
import type { AnyOperation, Statement, Transaction } from '../operation.js'
import { bind, type Compiled } from '../query.js'
import type { Tables } from '../schema/index.js'

/** Runs an operation synchronously on a SQLite connection, inside whatever transaction is open there. */
export class SqliteEngine {
  readonly #db: Database.Database
  readonly #prepared = new Map<string, Database.Statement>()

  /** @param path of the database file; @param access a `read` connection cannot change anything. */
  constructor(path: string, access: 'read' | 'write') {
    this.#db = new Database(path, { readonly: access === 'read' })
    this.#db.pragma('busy_timeout = 5000')
    this.#db.pragma('temp_store = MEMORY')
    this.#db.pragma('cache_size = -65536')
    if (access === 'read') return
    this.#db.pragma('journal_mode = WAL')
    // FULL makes every commit wait for the disk: an answer sent after it survives a power cut.
    this.#db.pragma('synchronous = FULL')
    this.#db.pragma('foreign_keys = ON')
    this.#db.pragma('wal_autocheckpoint = 4000')
  }

  /** Brings the schema up to date. */
  migrate(nowMs: number): void {
    this.#db.exec(ledgerStatement(sqliteDialect.types))
    const applied = this.#db.prepare('SELECT number, name, breaking FROM schema_migrations').all() as AppliedMigration[]
    for (const migration of pendingMigrations(applied)) {
      this.inTransaction(() => {
        const record = this.#db.prepare('INSERT INTO schema_migrations (number, name, breaking, applied_at) VALUES (?, ?, ?, ?)')
        record.run(migration.number, migration.name, migration.breaking ? 1 : 0, nowMs)
        for (const statement of migration.statements(sqliteDialect.types)) this.#db.exec(statement)
      })
    }
  }

  /** Runs `work` between BEGIN and COMMIT; anything thrown rolls all of it back. */
  inTransaction<T>(work: () => T): T {
    this.#db.exec('BEGIN IMMEDIATE')
    return this.#settle(work)
  }

  /** Runs `work` on one snapshot. */
  inSnapshot<T>(work: () => T): T {
    this.#db.exec('BEGIN DEFERRED')
    return this.#settle(work)
  }

  #settle<T>(work: () => T): T {
    try {
      const result = work()
      this.#db.exec('COMMIT')
      return result
    } catch (error) {
      // SQLite itself has already rolled back after some errors, a full disk among them.
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  /** Drives the generator of an operation to its end. */
  run(operation: AnyOperation, args: unknown): unknown {
    const transaction: Transaction<unknown> = operation.body(args as never)
    let step = transaction.next()
    while (!step.done) step = transaction.next(this.#execute(step.value))
    return step.value
  }

  #execute(statement: Statement): unknown {
    switch (statement.kind) {
      case 'all': {
        const compiled = statement.query.compile(sqliteDialect)
        return this.#prepare(compiled.sql).all(...parameters(compiled, statement.params))
      }
      case 'change': {
        const compiled = statement.query.compile(sqliteDialect)
        return this.#prepare(compiled.sql).run(...parameters(compiled, statement.params)).changes
      }
      case 'insert':
        return this.#insert(statement.table, statement.rows)
    }
  }

  #insert(table: keyof Tables, rows: readonly object[]): void {
    const columns = Object.keys(rows[0] ?? {})
    const statement = this.#prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    )
    for (const row of rows) statement.run(...Object.values(row).map(storable))
  }

  #prepare(sql: string): Database.Statement {
    let statement = this.#prepared.get(sql)
    if (!statement) {
      statement = this.#db.prepare(sql)
      this.#prepared.set(sql, statement)
    }
    return statement
  }

  /** Closes the file after folding the write-ahead log into it. */
  close(): void {
    this.#db.close()
  }
}

function parameters(compiled: Compiled, params: object): unknown[] {
  return bind(compiled, params).map(storable)
}

/** Lists travel as JSON texts, which `json_each` takes apart again. */
function storable(value: unknown): unknown {
  if (Array.isArray(value)) return JSON.stringify(value)
  return value === undefined ? null : value
}

