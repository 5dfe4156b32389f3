import { keepForever, openSqlite, type SqliteDatabase, type SqliteStatement } from '../../base/index.js'
import { damageIn, isDamage, type StoreDamage } from '../damage.js'
import { type Dialect, sqliteDialect } from '../dialect.js'
import {
  type AppliedMigration,
  isNewStore,
  ledgerStatement,
  MIGRATIONS,
  pendingMigrations,
  recordOf,
} from '../migrations/index.js'
import type { Migration } from '../migrations/migration.js'
import type { AnyOperation } from '../operation.js'
import type { Slot } from '../parameter.js'
import { bind, type Compiled, valuesOf } from '../query.js'
import type { Tables } from '../schema/index.js'
import type { Statement, Transaction } from '../statement.js'
import newStore from './new-store.json' with { type: 'json' }
import { PreparedStatements } from './statements.js'

const BUSY_TIMEOUT_MS = 5_000
/** Page cache, KiB (SQLite takes a negative size as KiB). */
const CACHE_KIB = 65_536
/** The writer checkpoints the log itself only when it is this long (128 MB): see `checkpointer.ts`. */
const CHECKPOINT_PAGES = 32_000
/** During a long read, the log grows beyond that. Its next restart truncates the file to this length. */
const MAX_LOG_BYTES = CHECKPOINT_PAGES * 4_096
/** Sliding window of the average commit time, commits. */
const COMMIT_WINDOW = 16
/** A commit counts with at most this time, so that one stall does not dominate the average. */
const MAX_COMMIT_MS = 10

/** Runs operations synchronously on one SQLite connection. */
export class SqliteConnection {
  readonly #db: SqliteDatabase
  readonly #onDamage: (damage: StoreDamage) => void
  readonly #dialect: Dialect
  readonly #prepared: PreparedStatements
  #commitMs = 0
  /**
   * The list whose numbers are in `shared_numbers`. A rollback empties the table, so no transaction relies on an earlier
   * one.
   */
  #shared: unknown
  /** The last insert statement of each table. */
  readonly #inserts = new Map<keyof Tables, { readonly columns: readonly string[]; statement: SqliteStatement }>()

  /**
   * @param path of the database file.
   * @param access a `read` connection cannot change anything.
   * @param onDamage receives damage that an operation reports without failing.
   * @param dialect what queries are compiled for.
   */
  constructor(
    path: string,
    access: 'read' | 'write',
    onDamage: (damage: StoreDamage) => void = () => undefined,
    dialect: Dialect = sqliteDialect,
  ) {
    keepForever(this)
    this.#onDamage = onDamage
    this.#dialect = dialect
    this.#db = openSqlite(path, { readOnly: access === 'read', busyTimeoutMs: BUSY_TIMEOUT_MS })
    this.#prepared = new PreparedStatements(this.#db)
    this.#db.exec(`PRAGMA temp_store = MEMORY; PRAGMA cache_size = -${CACHE_KIB}`)
    this.#db.exec('CREATE TEMP TABLE shared_numbers (value INTEGER PRIMARY KEY)')
    if (access === 'read') return
    this.#db.exec('PRAGMA journal_mode = WAL')
    // FULL: every commit waits for the disk, so acknowledged writes survive a power cut.
    this.#db.exec('PRAGMA synchronous = FULL')
    this.#db.exec(`PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    this.#db.exec(`PRAGMA journal_size_limit = ${MAX_LOG_BYTES}`)
  }

  /**
   * Migrates the schema: a new store in one transaction, an older one with a transaction for each migration. An empty file
   * gets the finished schema of `new-store.json` (written by `npm run docs`), which takes a sixth of the time of all
   * migrations, and then the newest migrations that are not in it.
   */
  migrate(nowMs: number): void {
    this.inTransaction(() => {
      if (this.#isEmpty()) this.#create(nowMs)
      this.#db.exec(ledgerStatement(sqliteDialect.types))
      const pending = this.#pendingMigrations()
      if (isNewStore(pending)) for (const migration of pending) this.#apply(migration, nowMs)
    })
    for (const { number } of this.#pendingMigrations()) {
      this.inTransaction(() => {
        // Another process may have applied it since, so it is checked again under the write lock.
        const migration = this.#pendingMigrations().find((pending) => pending.number === number)
        if (migration) this.#apply(migration, nowMs)
      })
    }
  }

  #isEmpty(): boolean {
    return this.#db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').all().length === 0
  }

  #create(nowMs: number): void {
    const records = MIGRATIONS.filter(({ name }) => newStore.migrations.includes(name))
    this.#db.exec([...newStore.statements, ...records.map((migration) => recordOf(migration, nowMs))].join(';\n'))
  }

  #pendingMigrations(): readonly Migration[] {
    return pendingMigrations(this.#db.prepare('SELECT * FROM schema_migrations').all() as AppliedMigration[])
  }

  #apply(migration: Migration, nowMs: number): void {
    this.#db.exec(recordOf(migration, nowMs))
    for (const statement of migration.statements(sqliteDialect.types)) this.#db.exec(statement)
  }

  /** Runs `work` between BEGIN and COMMIT; anything thrown rolls all of it back. */
  inTransaction<T>(work: () => T): T {
    this.#prepare('BEGIN IMMEDIATE').run()
    return this.#settle(work)
  }

  /** Runs `work` on one snapshot. */
  inSnapshot<T>(work: () => T): T {
    this.#prepare('BEGIN DEFERRED').run()
    return this.#settle(work)
  }

  #settle<T>(work: () => T): T {
    try {
      const result = work()
      this.#commit()
      return result
    } catch (error) {
      // SQLite itself has already rolled back after some errors, a full disk among them.
      if (this.#db.inTransaction) this.#prepare('ROLLBACK').run()
      throw error
    } finally {
      this.#shared = undefined
    }
  }

  #commit(): void {
    const began = performance.now()
    this.#prepare('COMMIT').run()
    this.#commitMs += (Math.min(performance.now() - began, MAX_COMMIT_MS) - this.#commitMs) / COMMIT_WINDOW
  }

  /** Average time of recent commits, milliseconds. */
  get commitMs(): number {
    return this.#commitMs
  }

  /**
   * Runs `work` in a savepoint of the open transaction; an error rolls back only `work`. If SQLite has rolled back the whole
   * transaction, `isTransactionLost` is true afterwards.
   */
  inSavepoint<T>(work: () => T): T {
    this.#prepare('SAVEPOINT operation').run()
    try {
      const result = work()
      this.#prepare('RELEASE operation').run()
      return result
    } catch (error) {
      this.#shared = undefined
      if (this.#db.inTransaction) {
        this.#prepare('ROLLBACK TO operation').run()
        this.#prepare('RELEASE operation').run()
      }
      throw error
    }
  }

  /** Within `inTransaction`: whether an error has ended the transaction. */
  get isTransactionLost(): boolean {
    return !this.#db.inTransaction
  }

  /** Runs the generator of an operation to its end. */
  run(operation: AnyOperation, args: unknown): unknown {
    const transaction: Transaction<unknown> = operation.body(args as never)
    let step = transaction.next()
    while (!step.done) step = transaction.next(this.#execute(step.value))
    return step.value
  }

  #execute(statement: Statement): unknown {
    if (statement.kind === 'damage') return this.#onDamage(statement.damage)
    if (statement.kind === 'number' && statement.unlessTaken) return this.#insertUnlessTaken(statement)
    if (statement.kind === 'insert' || statement.kind === 'number') return this.#insert(statement.table, statement.rows)
    if (statement.kind === 'update') return this.#updateEach(statement)
    if (statement.kind === 'several') return statement.statements.map((each) => this.#execute(each))
    const compiled = statement.query.compile(this.#dialect)
    const bound = bind(compiled, statement.params)
    const values = (compiled.isSharing ? this.#shareNumbers(compiled, bound) : bound).map(asParameter)
    const prepared = this.#prepare(compiled.sql)
    try {
      return statement.kind === 'all' ? prepared.all(...values) : prepared.run(...values).changes
    } catch (error) {
      throw isDamage(error) ? damageIn(compiled.sql, error) : error
    }
  }

  #shareNumbers({ slots }: Compiled, values: readonly unknown[]): unknown[] {
    const isShared = (slot: Slot | undefined): boolean => slot !== undefined && 'parameter' in slot && !!slot.isShared
    return values.map((value, index) => (isShared(slots[index]) ? this.#share(value) : value))
  }

  /** Puts a list into `shared_numbers`, unless it is there. @returns its length. */
  #share(list: unknown): number {
    if (!Array.isArray(list)) throw new TypeError('only a list of numbers is shared')
    if (list !== this.#shared) {
      this.#shared = undefined
      this.#prepare('DELETE FROM shared_numbers').run()
      this.#prepare('INSERT OR IGNORE INTO shared_numbers SELECT value FROM json_each(?)').run(JSON.stringify(list))
      this.#shared = list
    }
    return list.length
  }

  /** Returns the numbers of the rows; `RETURNING` would cost a fifth more. */
  #insert(table: keyof Tables, rows: readonly object[]): number[] {
    const statement = this.#insertInto(table, Object.keys(rows[0] ?? {}))
    try {
      return valuesOf(rows).map((values) => Number(statement.run(...values).lastInsertRowid))
    } catch (error) {
      throw isDamage(error) ? damageIn(`insert into ${table}`, error) : error
    }
  }

  #insertUnlessTaken({ table, rows, unlessTaken = [] }: Statement & { kind: 'number' }): (number | undefined)[] {
    const columns = Object.keys(rows[0] ?? {})
    const into = `${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    const statement = this.#prepare(`INSERT INTO ${into} ON CONFLICT (${unlessTaken.join(', ')}) DO NOTHING`)
    try {
      return valuesOf(rows).map((values) => {
        const { changes, lastInsertRowid } = statement.run(...values)
        return changes === 0 ? undefined : Number(lastInsertRowid)
      })
    } catch (error) {
      throw isDamage(error) ? damageIn(`insert into ${table}`, error) : error
    }
  }

  #updateEach({ table, rows, match, where }: Statement & { kind: 'update' }): unknown[] {
    const columns = Object.keys(rows[0] ?? {})
    const sets = columns.filter((name) => !match.includes(name))
    const constants = Object.entries(where).map(([name, text]) => `${name} = '${text}'`)
    const finds = [...match.map((name) => `${name} = ?`), ...constants].join(' AND ')
    const statement = this.#prepare(
      `UPDATE ${table} SET ${sets.map((name) => `${name} = ?`).join(', ')} WHERE ${finds}`,
    )
    // In the order of the statement's parameters.
    const order = [...sets, ...match].map((name) => columns.indexOf(name))
    const key = columns.indexOf(match[0] ?? '')
    try {
      const changed = valuesOf(rows).filter(
        (values) => statement.run(...order.map((index) => values[index])).changes > 0,
      )
      return changed.map((values) => values[key])
    } catch (error) {
      throw isDamage(error) ? damageIn(`update ${table}`, error) : error
    }
  }

  /** Rows of a table nearly always have the same columns; comparing them is cheaper than building the SQL. */
  #insertInto(table: keyof Tables, columns: readonly string[]): SqliteStatement {
    const known = this.#inserts.get(table)
    if (known && isSame(known.columns, columns)) return known.statement
    const placeholders = columns.map(() => '?').join(', ')
    const statement = this.#prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders})`)
    this.#inserts.set(table, { columns, statement })
    return statement
  }

  #prepare(sql: string): SqliteStatement {
    return this.#prepared.of(sql)
  }

  /** Copies the write-ahead log into the file, except what readers still need. Not within a transaction. */
  checkpoint(): void {
    this.#prepare('PRAGMA wal_checkpoint(PASSIVE)').all()
  }

  /** Closes the connection; the last one copies the write-ahead log into the file. */
  close(): void {
    this.#db.close()
  }
}

function isSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((text, index) => text === others[index])
}

/** Lists are passed as JSON, which the SQL reads with `json_each`. */
function asParameter(value: unknown): unknown {
  return Array.isArray(value) ? JSON.stringify(value) : value
}
