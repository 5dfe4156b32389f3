import { statSync } from 'node:fs'
import { codeOf, type SqliteDatabase, type SqliteStatement, yieldToEventLoop } from '../../base/index.js'
import { isDamage } from '../damage.js'
import type { AppliedMigration } from '../migrations/index.js'
import { columnList, type FoundColumn, SQLITE_TYPES, schemaProblemsIn, type Table } from './catalog.js'
import { type Batch, BatchWriter, type FaultyRow, type Value } from './rows.js'
import { firstReadable, messageOf } from './sqlite-gaps.js'
import { inspectRow, isPlain, nulColumn } from './sqlite-values.js'
import type { CopyReader, Findings, Reading } from './types.js'

const NUMBER = 'row number'
const HAS_NUL = 'has U+0000'
const BEFORE_ALL = Number.MIN_SAFE_INTEGER
/** Code of the built-in driver's error for an integer beyond 53 bits. */
const OUT_OF_RANGE = 'ERR_OUT_OF_RANGE'
/** The most rows of a batch that are not plain; each is inspected separately after the batch. */
const MAX_NOT_PLAIN = 1_000

/** Rows that were read at once. */
interface Page {
  kind: 'full' | 'end' | 'damaged'
  /** The message about damage. */
  found: string
  readonly writer: BatchWriter
  /** The number of the last row. */
  last: number | undefined
  readonly faulty: FaultyRow[]
}

/** Reads a store in a SQLite file over a connection that belongs to the caller. Tables are read in the order of the file. */
export class SqliteReader implements CopyReader {
  readonly #db: SqliteDatabase
  readonly #path: string
  readonly #statements = new Map<Table, SqliteStatement>()

  constructor(db: SqliteDatabase, path: string) {
    this.#db = db
    this.#path = path
  }

  #value(text: string, ...values: readonly unknown[]): unknown {
    const row = this.#db.prepare(text).get(...values)
    return row === undefined ? undefined : Object.values(row as object)[0]
  }

  #has(table: string): boolean {
    return this.#value("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", table) === 1
  }

  async ledger(): Promise<readonly AppliedMigration[] | undefined> {
    if (!this.#has('schema_migrations')) return undefined
    const text = 'SELECT number, name, breaking FROM schema_migrations ORDER BY number'
    return this.#db.prepare(text).all() as AppliedMigration[]
  }

  async schemaProblems(): Promise<readonly string[]> {
    const text = `SELECT t.name AS "table", c.name, c.type FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'`
    return schemaProblemsIn(this.#db.prepare(text).all() as FoundColumn[], SQLITE_TYPES)
  }

  async installation(): Promise<string | undefined> {
    if (!this.#has('installation')) return undefined
    const found = this.#value('SELECT installation_id FROM installation')
    return typeof found === 'string' ? found : undefined
  }

  /** Sizes and times of the file and its log. */
  async fingerprint(): Promise<string> {
    const parts = [this.#path, `${this.#path}-wal`].map((path) => {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false })
      return found && found.size > 0n ? `${found.size}@${found.mtimeNs}` : 'none'
    })
    return parts.join(' ')
  }

  async count({ name }: Table): Promise<number> {
    try {
      return Number(this.#value(`SELECT count(*) FROM ${name}`))
    } catch (error) {
      // The copy itself reports which rows cannot be read.
      if (isDamage(error)) return 0
      throw error
    }
  }

  async sizeBytes(): Promise<number> {
    const sizes = [this.#path, `${this.#path}-wal`].map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0)
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  async lastNumber({ name, numbered }: Table): Promise<number> {
    const assigned = Number(this.#value('SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?', name))
    try {
      return Math.max(assigned, Number(this.#value(`SELECT coalesce(max("${numbered}"), 0) FROM ${name}`)))
    } catch (error) {
      if (isDamage(error)) return assigned
      throw error
    }
  }

  async *rows(table: Table, { after, findings }: Reading): AsyncGenerator<Batch> {
    let last = after === undefined ? BEFORE_ALL : Number(after)
    for (;;) {
      const page = this.#page(table, last, findings)
      const reached = page.last ?? last
      if (page.writer.rows > 0 || page.faulty.length > 0) yield page.writer.take(String(reached), page.faulty)
      last = reached
      if (page.kind === 'end') return
      if (page.kind === 'damaged') {
        const next = firstReadable(this.#db, table, last + 1)
        const from = last === BEFORE_ALL ? undefined : last + 1
        findings?.onGap({ table: table.name, found: page.found, from, to: next && next - 1 })
        if (next === undefined) return
        last = next - 1
      }
      await yieldToEventLoop()
    }
  }

  /** Reads rows until a batch is full. */
  #page(table: Table, after: number, findings: Findings | undefined): Page {
    const page: Page = { kind: 'end', found: '', writer: new BatchWriter(), last: undefined, faulty: [] }
    const notPlain: number[] = []
    try {
      for (const row of this.#statement(table).iterate(after + 1) as Iterable<Record<string, Value>>) {
        page.last = Number(row[NUMBER])
        const values = table.columns.map(({ name }) => row[name] as Value)
        if (row[HAS_NUL] !== 1 && isPlain(table, values)) page.writer.add(values)
        else notPlain.push(page.last)
        if (!page.writer.isFull && notPlain.length < MAX_NOT_PLAIN) continue
        page.kind = 'full'
        break
      }
    } catch (error) {
      if (codeOf(error) === OUT_OF_RANGE) {
        // The driver of Node refuses an integer beyond 53 bits.
        page.last = this.#numberAfter(table, page.last ?? after)
        notPlain.push(page.last)
        page.kind = 'full'
      } else if (isDamage(error)) {
        page.kind = 'damaged'
        page.found = messageOf(error)
        // Node's driver throws the error of an iteration once more at the next iteration of the statement.
        this.#statements.delete(table)
      } else throw error
    }
    for (const number of notPlain) this.#inspect(table, number, page, findings)
    return page
  }

  /** Prepared once, because the driver never releases a statement. `rowid > n` would read the page of n, perhaps damaged. */
  #statement(table: Table): SqliteStatement {
    let statement = this.#statements.get(table)
    if (!statement) {
      const nul = nulColumn(this.#db, table)
      const columns = nul === undefined ? columnList(table) : `${nul} AS "${HAS_NUL}", ${columnList(table)}`
      const text = `SELECT rowid AS "${NUMBER}", ${columns} FROM ${table.name} WHERE rowid >= ? ORDER BY rowid`
      statement = this.#db.prepare(text)
      this.#statements.set(table, statement)
    }
    return statement
  }

  #numberAfter({ name }: Table, number: number): number {
    return Number(this.#value(`SELECT rowid FROM ${name} WHERE rowid > ? ORDER BY rowid LIMIT 1`, number))
  }

  #inspect(table: Table, number: number, page: Page, findings: Findings | undefined): void {
    const row = inspectRow(this.#db, table, number)
    if (row.kind === 'faulty') return void page.faulty.push({ reason: row.reason, values: row.values })
    page.writer.add(row.values)
    for (const column of row.repaired) findings?.onRepaired(table.name, column, number)
  }

  async close(): Promise<void> {
    this.#db.close()
  }
}
