import type pg from 'pg'
import { storable } from '../query.js'

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

/** Most bytes of rows in one statement, except for a single larger row; the server holds it in memory more than once. */
const CHUNK_BYTES = 16 * 2 ** 20

/** Rows encoded for one statement over them, or for several if they are too many bytes. */
export interface EncodedRows {
  /** The columns that the rows have. */
  readonly columns: readonly string[]
  /** One parameter for each statement: an array of the row type. */
  readonly parameters: readonly Buffer[]
}

/**
 * Encodes rows, at least one, as arrays of a row type. Columns that the rows do not have are NULL.
 * @throws HomeportError `invalid_request` for U+0000 in a text.
 * @throws TypeError for a value that no column keeps, or a row with other columns than the first.
 */
export function encodeRows(type: RowType, rows: readonly object[]): EncodedRows {
  const columns = Object.keys(rows[0] ?? {})
  const places = columns.map((name) => type.columns.findIndex((column) => column.name === name))
  const unknown = columns[places.indexOf(-1)]
  if (unknown !== undefined) throw new TypeError(`the table of these rows has no column ${unknown}`)
  const encoder = new RowEncoder(type.columns, rows.length)
  const parameters: Buffer[] = []
  let values: unknown[] = new Array(type.columns.length).fill(null)
  let before: unknown[] = new Array(type.columns.length).fill(null)
  for (const row of rows) {
    collect(row, columns, places, values)
    if (encoder.bytes > CHUNK_BYTES) parameters.push(encoder.end(type.oid))
    encoder.add(values, before)
    const free = before
    before = values
    values = free
  }
  parameters.push(encoder.end(type.oid))
  return { columns, parameters }
}

/** Puts the values of a row into the places of their columns. */
function collect(row: object, columns: readonly string[], places: readonly number[], values: unknown[]): void {
  const members = row as Readonly<Record<string, unknown>>
  let index = 0
  for (const name in members) {
    // Rows of one statement nearly always have their columns in the same order.
    const at = columns[index] === name ? index : columns.indexOf(name)
    const place = places[at]
    if (place === undefined) throw new TypeError(`only some rows of one statement have a column ${name}`)
    values[place] = members[name] ?? null
    index++
  }
  if (index !== columns.length) throw new TypeError('rows of one statement differ in their columns')
}

const ARRAY_HEAD_BYTES = 20
const NULL_LENGTH = -1
const TWO_32 = 2 ** 32
/** Bytes of the type and length of a value, and of the length and columns of a row. */
const LENGTHS_BYTES = 8
/** A character of a text has at most this many bytes. */
const CHARACTER_BYTES = 3
const NUMBER_BYTES = 8

/**
 * Writes PostgreSQL's binary formats of arrays and rows. Rows of one statement are often the same in most columns: such
 * values are copied from the row before, which costs a fraction of encoding them.
 */
class RowEncoder {
  readonly #columns: RowType['columns']
  /** Rows that the caller is going to add in total. */
  readonly #expected: number
  #buffer = Buffer.alloc(0)
  #at = 0
  #rows = 0
  /** Where the columns of the last row start, and where it ends. */
  readonly #starts: number[]

  constructor(columns: RowType['columns'], expected: number) {
    this.#columns = columns
    this.#expected = expected
    this.#starts = new Array(columns.length + 1).fill(0)
  }

  /** Bytes since the last `end`. */
  get bytes(): number {
    return this.#at
  }

  /** Ends an array. The next row begins a new one. */
  end(elementOid: number): Buffer {
    const array = this.#buffer.subarray(0, this.#at)
    this.#at = 0
    // One dimension that begins at 1, without NULL elements.
    this.#int32(1)
    this.#int32(0)
    this.#oid(elementOid)
    this.#int32(this.#rows)
    this.#int32(1)
    this.#buffer = Buffer.alloc(0)
    this.#at = 0
    this.#rows = 0
    return array
  }

  /** @param before the values of the last row. */
  add(values: readonly unknown[], before: readonly unknown[]): void {
    if (this.#rows === 0) this.#begin(values)
    const isFirst = this.#rows++ === 0
    this.#reserve(LENGTHS_BYTES)
    const lengthAt = this.#at
    this.#at += 4
    const count = this.#columns.length
    this.#int32(count)
    let index = 0
    while (index < count) {
      let end = index
      if (!isFirst) while (end < count && values[end] === before[end]) end++
      if (end > index) this.#repeat(index, end)
      else this.#column(end++, values[index])
      index = end
    }
    this.#starts[count] = this.#at
    this.#buffer.writeInt32BE(this.#at - lengthAt - 4, lengthAt)
  }

  /** Takes a buffer for as many rows of this size as are expected. */
  #begin(values: readonly unknown[]): void {
    let bytes = LENGTHS_BYTES * (1 + values.length)
    for (const value of values) {
      if (typeof value === 'string') bytes += value.length
      else if (value instanceof Uint8Array) bytes += value.byteLength
      else if (value !== null) bytes += NUMBER_BYTES
    }
    this.#buffer = Buffer.allocUnsafe(ARRAY_HEAD_BYTES + Math.min(CHUNK_BYTES, bytes * this.#expected))
    this.#at = ARRAY_HEAD_BYTES
  }

  /** Copies columns from the last row. */
  #repeat(first: number, end: number): void {
    const from = this.#starts[first] ?? 0
    const to = this.#starts[end] ?? 0
    this.#reserve(to - from)
    this.#buffer.copyWithin(this.#at, from, to)
    const shift = this.#at - from
    for (let index = first; index < end; index++) this.#starts[index] = (this.#starts[index] ?? 0) + shift
    this.#at += to - from
  }

  #column(index: number, given: unknown): void {
    const type = this.#columns[index]?.type ?? TEXT
    const value = storable(given)
    this.#starts[index] = this.#at
    this.#reserve(LENGTHS_BYTES)
    this.#oid(type)
    if (value === null) this.#int32(NULL_LENGTH)
    else if (type === INT8) this.#int8(Number(value))
    else if (value instanceof Uint8Array) this.#bytes(value)
    else this.#text(String(value))
  }

  #int8(value: number): void {
    const high = Math.floor(value / TWO_32)
    this.#int32(NUMBER_BYTES)
    this.#reserve(NUMBER_BYTES)
    this.#int32(high)
    this.#oid(value - high * TWO_32)
  }

  #bytes(value: Uint8Array): void {
    this.#int32(value.byteLength)
    this.#reserve(value.byteLength)
    this.#buffer.set(value, this.#at)
    this.#at += value.byteLength
  }

  #text(value: string): void {
    this.#reserve(4 + value.length * CHARACTER_BYTES)
    const length = this.#buffer.write(value, this.#at + 4)
    this.#int32(length)
    this.#at += length
  }

  /** Ensures space for this many bytes. */
  #reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#at + bytes, this.#buffer.length * 2))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
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
