import { dirname } from 'node:path'
import {
  codeOf,
  openSqlite,
  type SqliteDatabase,
  type SqliteStatement,
  syncPath,
  yieldToEventLoop,
} from '../../base/index.js'
import { type ColumnTypes, sqliteDialect } from '../dialect.js'
import { columnList, type Table } from './catalog.js'
import { type Batch, rowOf, valuesIn } from './rows.js'
import { messageOf } from './sqlite-gaps.js'
import { SqliteReader } from './sqlite-reader.js'
import type { CopyTarget, Notes, Refused } from './types.js'

/** The log is copied into the file after this many pages (64 MB). */
const CHECKPOINT_PAGES = 16_000
const CACHE_KIB = 131_072
/** Rows to write before yielding to the event loop. */
const ROWS_AT_ONCE = 500
/** Codes with which SQLite refuses the values of a row. */
const REFUSED = /^SQLITE_(?:CONSTRAINT|TOOBIG|MISMATCH)/

/** Writes a store into a SQLite file. */
export class SqliteTarget implements CopyTarget {
  readonly types: ColumnTypes = sqliteDialect.types
  readonly reader: SqliteReader
  readonly #db: SqliteDatabase
  readonly #path: string
  readonly #inserts = new Map<Table, SqliteStatement>()

  /** Opens the file, and creates it if it is missing. */
  constructor(path: string) {
    this.#path = path
    this.#db = openSqlite(path)
    // NORMAL: a power cut may lose the last commits, but never one in the middle. `settle` makes all of them durable.
    this.#db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON')
    this.#db.exec(`PRAGMA temp_store = MEMORY; PRAGMA cache_size = -${CACHE_KIB}`)
    this.#db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
    this.reader = new SqliteReader(this.#db, path)
  }

  async tableNames(): Promise<readonly string[]> {
    const text = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return (this.#db.prepare(text).all() as { name: string }[]).map(({ name }) => name)
  }

  async notes(): Promise<ReadonlyMap<string, string>> {
    const rows = this.#db.prepare('SELECT subject, state FROM store_copy').all() as { subject: string; state: string }[]
    return new Map(rows.map(({ subject, state }) => [subject, state]))
  }

  async change(statements: readonly string[], notes: Notes = []): Promise<void> {
    await this.#transaction(() => {
      for (const statement of statements) this.#db.exec(statement)
      this.#note(notes)
    })
  }

  async #transaction(work: () => void | Promise<void>): Promise<void> {
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      await work()
      this.#db.exec('COMMIT')
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec('ROLLBACK')
      throw error
    }
  }

  #note(notes: Notes): void {
    if (notes.length === 0) return
    const put = this.#db.prepare('INSERT OR REPLACE INTO store_copy (subject, state) VALUES (?, ?)')
    for (const [subject, state] of notes) put.run(subject, state)
  }

  async write(table: Table, batch: Batch, notesOf: (refused: readonly Refused[]) => Promise<Notes>): Promise<void> {
    await this.#transaction(async () => {
      const refused: Refused[] = []
      for (let index = 0; index < batch.starts.length; index++) {
        const problem = this.#insert(table, rowOf(batch, index))
        if (problem) refused.push(problem)
        if (index % ROWS_AT_ONCE === ROWS_AT_ONCE - 1) await yieldToEventLoop()
      }
      this.#note(await notesOf(refused))
    })
  }

  #insert(table: Table, row: Buffer): Refused | undefined {
    const values = valuesIn(table, row)
    try {
      this.#insertInto(table).run(...values)
      return undefined
    } catch (error) {
      if (!REFUSED.test(codeOf(error))) throw error
      const named = Object.fromEntries(table.columns.map(({ name }, index) => [name, values[index] ?? null]))
      return { reason: messageOf(error), values: named, row }
    }
  }

  #insertInto(table: Table): SqliteStatement {
    let statement = this.#inserts.get(table)
    if (!statement) {
      const marks = table.columns.map(() => '?').join(', ')
      statement = this.#db.prepare(`INSERT INTO ${table.name} (${columnList(table)}) VALUES (${marks})`)
      this.#inserts.set(table, statement)
    }
    return statement
  }

  emptyStatements(tables: readonly Table[]): readonly string[] {
    const deletions = tables.map(({ name }) => `DELETE FROM ${name}`).reverse()
    return [...deletions, 'DELETE FROM sqlite_sequence']
  }

  async setNumber({ name }: Table, last: number): Promise<void> {
    await this.#transaction(() => {
      this.#db.prepare('DELETE FROM sqlite_sequence WHERE name = ?').run(name)
      if (last > 0) this.#db.prepare('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, last)
    })
  }

  async settle(): Promise<void> {
    // The next commit waits until it and all earlier ones are on the disk; then the log is copied into the file.
    this.#db.exec('PRAGMA synchronous = FULL')
    this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').all()
    await syncPath(dirname(this.#path))
  }

  async close(): Promise<void> {
    this.#db.close()
  }
}
