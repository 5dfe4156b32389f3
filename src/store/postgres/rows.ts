import type pg from 'pg'
import { BinaryArray, type ColumnType, INT8, NUMBER_BYTES, TEXT } from './binary-array.js'
import type { Answer } from './described.js'

/**
 * Rows as one binary parameter: an array of a table's row type, which PostgreSQL unpacks with `unnest`. So a statement
 * over any number of rows has one fixed text and is prepared once, and texts and bytes need no escaping.
 */

/** The row type of a table. */
export interface RowType {
  readonly oid: number
  /** All columns of the table, in its order. */
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[]
}

/** Sends a query and resolves with its result. */
export type Send = (statement: pg.QueryConfig) => Promise<Answer>

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
   * Forgets all types after an error that a changed table would explain: another node may have migrated the schema.
   * @returns whether types were forgotten, so that the operation can be tried again.
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
  const reader = new RowReader(type, rows)
  const encoder = new RowEncoder(type.columns, rows.length)
  const parameters: Buffer[] = []
  let values = reader.noValues()
  let before = reader.noValues()
  for (const row of rows) {
    reader.read(row, values)
    if (encoder.bytes > CHUNK_BYTES) parameters.push(encoder.end(type.oid))
    encoder.add(values, before)
    const free = before
    before = values
    values = free
  }
  parameters.push(encoder.end(type.oid))
  return { columns: reader.columns, parameters }
}

/** Rows of which many differ only in a few columns. */
export interface SharedRows {
  /** The columns that the rows have. */
  readonly columns: readonly string[]
  /**
   * In order: an array of the row type with one row for each run of equal rows; the numbers of the first and last row of
   * each run; for each column in which rows of a run differ, the values of all rows.
   */
  readonly parameters: readonly Buffer[]
}

/** From this many rows, and this many rows in a run on average, sharing pays. */
const SHARED = { rows: 20, perRun: 8 }

/**
 * Encodes rows of which many in succession are equal except in the columns `each`, so that PostgreSQL reads the equal values
 * once. `undefined` when too few rows are equal, or when they have too many bytes for one statement.
 * @throws HomeportError and TypeError as `encodeRows`.
 */
export function encodeShared(type: RowType, rows: readonly object[], each: readonly string[]): SharedRows | undefined {
  if (rows.length < SHARED.rows) return undefined
  const reader = new RowReader(type, rows)
  const own = each.map((name) => reader.placeOf(name))
  const common = [...type.columns.keys()].filter((place) => !own.includes(place))
  const maxRuns = Math.floor(rows.length / SHARED.perRun)
  const values = reader.noValues()
  const runs: unknown[][] = []
  const ends: number[] = []
  const lists = own.map((place) => ({ place, type: type.columns[place]?.type ?? TEXT, out: new BinaryArray(0) }))
  for (const [index, row] of rows.entries()) {
    reader.read(row, values)
    const run = runs.at(-1)
    if (!run || !areAlike(run, values, common)) {
      if (runs.length === maxRuns) return undefined
      runs.push(values.slice())
    }
    ends[runs.length - 1] = index + 1
    for (const { place, type, out } of lists) out.value(type, values[place])
  }
  if (lists.some(({ out }) => out.bytes > CHUNK_BYTES)) return undefined
  const starts = ends.map((_, index) => (ends[index - 1] ?? 0) + 1)
  const written = lists.map(({ type, out }) => out.end(type, rows.length))
  return { columns: reader.columns, parameters: [runsOf(type, runs, own), numbers(starts), numbers(ends), ...written] }
}

function areAlike(one: readonly unknown[], other: readonly unknown[], places: readonly number[]): boolean {
  for (const place of places) if (one[place] !== other[place]) return false
  return true
}

/** Encodes the values that the rows of each run share, one row for each run. */
function runsOf(type: RowType, runs: readonly unknown[][], own: readonly number[]): Buffer {
  const encoder = new RowEncoder(type.columns, runs.length)
  let before: readonly unknown[] = []
  for (const run of runs) {
    for (const place of own) run[place] = null
    encoder.add(run, before)
    before = run
  }
  return encoder.end(type.oid)
}

function numbers(values: readonly number[]): Buffer {
  const out = new BinaryArray((4 + NUMBER_BYTES) * values.length)
  for (const value of values) out.value(INT8, value)
  return out.end(INT8, values.length)
}

/** Reads the values of rows that have the same columns. */
class RowReader {
  /** The columns of the rows. */
  readonly columns: readonly string[]
  readonly #type: RowType
  readonly #places: readonly number[]

  constructor(type: RowType, rows: readonly object[]) {
    this.#type = type
    this.columns = Object.keys(rows[0] ?? {})
    this.#places = this.columns.map((name) => this.placeOf(name))
  }

  /** The place of a column in the table. */
  placeOf(name: string): number {
    const place = this.#type.columns.findIndex((column) => column.name === name)
    if (place < 0) throw new TypeError(`the table of these rows has no column ${name}`)
    return place
  }

  noValues(): unknown[] {
    return new Array(this.#type.columns.length).fill(null)
  }

  /** Puts the values of a row into the places of their columns. */
  read(row: object, values: unknown[]): void {
    const { columns } = this
    const members = row as Readonly<Record<string, unknown>>
    let index = 0
    for (const name in members) {
      // Rows of one statement nearly always have their columns in the same order.
      const at = columns[index] === name ? index : columns.indexOf(name)
      const place = this.#places[at]
      if (place === undefined) throw new TypeError(`only some rows of one statement have a column ${name}`)
      values[place] = members[name] ?? null
      index++
    }
    if (index !== columns.length) throw new TypeError('rows of one statement differ in their columns')
  }
}

/** Bytes of the type and length of a value, and of the length and columns of a row. */
const LENGTHS_BYTES = 8

/**
 * Writes arrays of rows. Rows of one statement are often the same in most columns: such values are copied from the row
 * before, which costs a fraction of encoding them.
 */
class RowEncoder {
  readonly #columns: RowType['columns']
  /** Rows that the caller is going to add in total. */
  readonly #expected: number
  #out = new BinaryArray(0)
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
    return this.#out.bytes
  }

  /** Ends an array. The next row begins a new one. */
  end(elementOid: number): Buffer {
    const array = this.#out.end(elementOid, this.#rows)
    this.#out = new BinaryArray(0)
    this.#rows = 0
    return array
  }

  /** @param before the values of the last row. */
  add(values: readonly unknown[], before: readonly unknown[]): void {
    if (this.#rows === 0) this.#out = new BinaryArray(this.#sizeFor(values))
    const out = this.#out
    const isFirst = this.#rows++ === 0
    out.reserve(LENGTHS_BYTES)
    const start = out.skipLength()
    const count = this.#columns.length
    out.int32(count)
    let index = 0
    while (index < count) {
      let end = index
      if (!isFirst) while (end < count && values[end] === before[end]) end++
      if (end > index) this.#repeat(index, end)
      else this.#column(end++, values[index])
      index = end
    }
    this.#starts[count] = out.bytes
    out.setLength(start)
  }

  /** Bytes of as many rows of this size as are expected. */
  #sizeFor(values: readonly unknown[]): number {
    let bytes = LENGTHS_BYTES * (1 + values.length)
    for (const value of values) {
      if (typeof value === 'string') bytes += value.length
      else if (value instanceof Uint8Array) bytes += value.byteLength
      else if (value !== null) bytes += NUMBER_BYTES
    }
    return Math.min(CHUNK_BYTES, bytes * this.#expected)
  }

  /** Copies columns from the last row. */
  #repeat(first: number, end: number): void {
    const from = this.#starts[first] ?? 0
    const shift = this.#out.bytes - from
    this.#out.repeat(from, this.#starts[end] ?? 0)
    for (let index = first; index < end; index++) this.#starts[index] = (this.#starts[index] ?? 0) + shift
  }

  #column(index: number, value: unknown): void {
    const type = this.#columns[index]?.type ?? TEXT
    this.#starts[index] = this.#out.bytes
    this.#out.reserve(LENGTHS_BYTES)
    this.#out.oid(type)
    this.#out.value(type, value)
  }
}
