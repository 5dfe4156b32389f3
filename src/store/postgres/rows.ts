import type pg from 'pg'

/**
 * Rows as one binary parameter: an array of a table's row type, which PostgreSQL unpacks with `unnest`. So a statement
 * over any number of rows has one fixed text and is prepared once, and texts and bytes need no escaping.
 */

const INT8 = 20
const TEXT = 25
const BYTEA = 17
type ColumnType = typeof INT8 | typeof TEXT | typeof BYTEA

/** The row type of a table. */
export interface RowType {
  readonly oid: number
  /** All columns of the table, in its order. */
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[]
}

/** Sends a query and resolves with its result. */
export type Send = (statement: pg.QueryConfig) => Promise<pg.QueryResult>

const COLUMNS = `SELECT c.reltype::bigint AS oid, a.attname AS name, a.atttypid::bigint AS type
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.oid = to_regclass($1) ORDER BY a.attnum`

/** The row types of the tables of one database, read when they are first needed. */
export class RowTypes {
  readonly #known = new Map<string, RowType>()

  /** @returns the type at once if it is known. */
  of(table: string, send: Send): RowType | Promise<RowType> {
    return this.#known.get(table) ?? this.#read(table, send)
  }

  async #read(table: string, send: Send): Promise<RowType> {
    const { rows } = await send({ name: 'row_type', text: COLUMNS, values: [table] })
    if (rows.length === 0) throw new Error(`the store has no table ${table}`)
    const type = { oid: rows[0].oid, columns: rows.map(({ name, type }) => ({ name, type })) }
    this.#known.set(table, type)
    return type
  }

  /**
   * Forgets all types after an error that a changed table explains: another node may have migrated the schema.
   * @returns whether it does, so that the operation can be tried again.
   */
  forgetIfStale(error: unknown): boolean {
    if (!isStale(error) || this.#known.size === 0) return false
    this.#known.clear()
    return true
  }
}

/** Datatype mismatch, and invalid binary representation. */
const STALE = new Set(['42804', '22P03'])

const isStale = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && STALE.has(error.code)

/** Most bytes of rows in one statement; the server holds it in memory more than once. */
const CHUNK_BYTES = 16 * 2 ** 20

/** Rows for one statement. */
export interface Chunk {
  readonly rows: readonly (readonly unknown[])[]
  /** Bytes of their values and the lengths of these. */
  readonly bytes: number
}

/** Splits rows into chunks for one statement each. */
export function chunksOf(rows: readonly (readonly unknown[])[]): readonly Chunk[] {
  const chunks: Chunk[] = []
  let current: (readonly unknown[])[] = []
  let bytes = 0
  for (const row of rows) {
    const size = sizeOf(row)
    if (current.length > 0 && bytes + size > CHUNK_BYTES) {
      chunks.push({ rows: current, bytes })
      current = []
      bytes = 0
    }
    current.push(row)
    bytes += size
  }
  if (current.length > 0) chunks.push({ rows: current, bytes })
  return chunks
}

const LENGTHS_BYTES = 8
/** Of a number, also of its digits in a text column. */
const MOST_NUMBER_BYTES = 17

function sizeOf(row: readonly unknown[]): number {
  let size = 0
  for (const value of row) {
    if (typeof value === 'string') size += Buffer.byteLength(value)
    else if (value instanceof Uint8Array) size += value.byteLength
    else size += MOST_NUMBER_BYTES
  }
  return size
}

/** Encodes rows as an array of a row type. Columns that are not named are NULL. */
export function encodeRows(type: RowType, names: readonly string[], { rows, bytes }: Chunk): Buffer {
  const sources = type.columns.map((column) => names.indexOf(column.name))
  const perRow = LENGTHS_BYTES * (1 + type.columns.length)
  const writer = new RowWriter(ARRAY_HEAD_BYTES + rows.length * perRow + bytes)
  writer.head(type.oid, rows.length)
  for (const row of rows) writer.row(type, sources, row)
  return writer.written()
}

const ARRAY_HEAD_BYTES = 20
const NULL_LENGTH = -1
const TWO_32 = 2 ** 32

/** Writes PostgreSQL's binary formats of arrays and rows into one buffer. */
class RowWriter {
  readonly #buffer: Buffer
  #at = 0

  constructor(maxBytes: number) {
    this.#buffer = Buffer.allocUnsafe(maxBytes)
  }

  written(): Buffer {
    return this.#buffer.subarray(0, this.#at)
  }

  /** One dimension that begins at 1, without NULL elements. */
  head(elementOid: number, length: number): void {
    this.#int32(1)
    this.#int32(0)
    this.#oid(elementOid)
    this.#int32(length)
    this.#int32(1)
  }

  row(type: RowType, sources: readonly number[], values: readonly unknown[]): void {
    const lengthAt = this.#at
    this.#at += 4
    this.#int32(type.columns.length)
    for (let index = 0; index < sources.length; index++) {
      const columnType = type.columns[index]?.type ?? TEXT
      const source = sources[index] ?? -1
      this.#oid(columnType)
      this.#value(columnType, source < 0 ? null : values[source])
    }
    this.#buffer.writeInt32BE(this.#at - lengthAt - 4, lengthAt)
  }

  #value(type: ColumnType, value: unknown): void {
    if (value === null || value === undefined) this.#int32(NULL_LENGTH)
    else if (type === INT8) this.#int8(Number(value))
    else if (value instanceof Uint8Array) this.#bytes(value)
    else this.#text(String(value))
  }

  #int8(value: number): void {
    const high = Math.floor(value / TWO_32)
    this.#int32(8)
    this.#int32(high)
    this.#oid(value - high * TWO_32)
  }

  #bytes(value: Uint8Array): void {
    this.#int32(value.byteLength)
    this.#buffer.set(value, this.#at)
    this.#at += value.byteLength
  }

  #text(value: string): void {
    const length = this.#buffer.write(value, this.#at + 4)
    this.#int32(length)
    this.#at += length
  }

  #int32(value: number): void {
    this.#buffer.writeInt32BE(value, this.#at)
    this.#at += 4
  }

  #oid(value: number): void {
    this.#buffer.writeUInt32BE(value, this.#at)
    this.#at += 4
  }
}
