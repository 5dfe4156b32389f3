import pg from 'pg'
import type { AppliedMigration } from '../migrations/index.js'
import { ledgerIn } from '../postgres/migrate.js'
import { type ColumnType, columnList, type FoundColumn, schemaProblemsIn, type Table, tablesToCopy } from './catalog.js'
import { copyOut } from './postgres-wire.js'
import { BATCH_BYTES, BATCH_ROWS, type Batch, endOfRow, fieldsOf, integerIn } from './rows.js'
import type { CopyReader, Reading } from './types.js'

const TYPES: Readonly<Record<string, ColumnType>> = { bigint: 'integer', text: 'text', bytea: 'bytes' }

/** Reads a store in a PostgreSQL database over one connection, which belongs to the caller. */
export class PostgresReader implements CopyReader {
  readonly #client: pg.Client

  constructor(client: pg.Client) {
    this.#client = client
  }

  async #value(text: string, values: readonly unknown[] = []): Promise<unknown> {
    const { rows } = await this.#client.query({ text, values: [...values], rowMode: 'array' })
    return rows[0]?.[0]
  }

  async #has(table: string): Promise<boolean> {
    return (await this.#value('SELECT to_regclass($1) IS NOT NULL', [table])) === true
  }

  async ledger(): Promise<readonly AppliedMigration[] | undefined> {
    const rows = await ledgerIn(this.#client)
    return rows?.map(({ number, name, breaking }) => ({ number: Number(number), name, breaking: Number(breaking) }))
  }

  async schemaProblems(): Promise<readonly string[]> {
    const text = `SELECT attrelid::regclass::text AS "table", attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
      WHERE attrelid = ANY(SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS t (name)) AND attnum > 0 AND NOT attisdropped`
    const { rows } = await this.#client.query<FoundColumn>(text, [tablesToCopy().map(({ name }) => name)])
    return schemaProblemsIn(rows, TYPES)
  }

  async installation(): Promise<string | undefined> {
    if (!(await this.#has('installation'))) return undefined
    const found = await this.#value('SELECT installation_id FROM installation')
    return typeof found === 'string' ? found : undefined
  }

  /** Counts all changes of rows since the statistics were reset. */
  async fingerprint(): Promise<string> {
    const text = `SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables
      WHERE relid = ANY(SELECT to_regclass(name)::oid FROM unnest($1::text[]) AS t (name))`
    return String(await this.#value(text, [tablesToCopy().map(({ name }) => name)]))
  }

  async count({ name }: Table): Promise<number> {
    return Number(await this.#value(`SELECT count(*) FROM ${name}`))
  }

  async sizeBytes(): Promise<number> {
    const text =
      'SELECT coalesce(sum(pg_total_relation_size(to_regclass(name)::oid)), 0) FROM unnest($1::text[]) AS t (name)'
    return Number(await this.#value(text, [tablesToCopy().map(({ name }) => name)]))
  }

  async lastNumber({ name, numbered }: Table): Promise<number> {
    const sequence = await this.#value('SELECT pg_get_serial_sequence($1, $2)', [name, numbered])
    return Number(await this.#value(`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM ${sequence}`))
  }

  async *rows(table: Table, { after, order }: Reading): AsyncGenerator<Batch> {
    const key = table.key.map((column) => `"${column}"`).join(', ')
    const where = after === undefined ? '' : `WHERE (${key}) > (${literalsOf(table, after)})`
    const sorted = order === 'any' ? '' : `ORDER BY ${key}`
    const text = `COPY (SELECT ${columnList(table)} FROM ${table.name} ${where} ${sorted}) TO STDOUT (FORMAT binary)`
    let parts: Buffer[] = []
    let starts: number[] = []
    let length = 0
    const take = (): Batch => {
      const bytes = Buffer.concat(parts)
      const batch = { bytes, starts, cursor: cursorOf(table, bytes.subarray(starts.at(-1))), faulty: [] }
      parts = []
      starts = []
      length = 0
      return batch
    }
    for await (const chunk of copyOut(this.#client, text)) {
      let from = 0
      for (let at = 0; at < chunk.length; ) {
        starts.push(length + at - from)
        at = endOfRow(chunk, at) ?? chunk.length
        if (starts.length < BATCH_ROWS && length + at - from < BATCH_BYTES) continue
        parts.push(chunk.subarray(from, at))
        yield take()
        from = at
      }
      if (from < chunk.length) parts.push(chunk.subarray(from))
      length += chunk.length - from
    }
    if (starts.length > 0) yield take()
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined)
  }
}

/** The key of a row, as a JSON list of texts. */
function cursorOf(table: Table, row: Buffer): string {
  const fields = fieldsOf(row)
  const key = table.key.map((name) => {
    const index = table.columns.findIndex((column) => column.name === name)
    const field = fields[index] ?? Buffer.alloc(0)
    return table.columns[index]?.type === 'integer' ? String(integerIn(field)) : field.toString('utf8')
  })
  return JSON.stringify(key)
}

/** COPY takes no parameters. */
function literalsOf(table: Table, cursor: string): string {
  const key = JSON.parse(cursor) as string[]
  return key
    .map((value, index) => {
      const { type } = table.columns.find(({ name }) => name === table.key[index]) ?? { type: 'text' }
      return type === 'integer' ? String(BigInt(value)) : pg.escapeLiteral(value)
    })
    .join(', ')
}
