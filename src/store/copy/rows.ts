import { hash } from 'node:crypto'
import type { Table } from './catalog.js'

/**
 * The format in which rows are transferred and digested. It does not depend on the database: PostgreSQL's
 * binary format of COPY, with the columns in the order of the catalogue. A row is the number of its fields (16 bits), then
 * for each field its length (32 bits; -1 is NULL) and its bytes: an integer as 64 bits, a text as UTF-8, bytes as they are.
 */

/** A value of a row. `bigint` only for integers beyond 53 bits. */
export type Value = number | bigint | string | Uint8Array | null

/** Consecutive rows of a table. */
export interface Batch {
  /** The rows, one after the other. */
  readonly bytes: Buffer
  /** Where each row begins in `bytes`. */
  readonly starts: readonly number[]
  /** Position of the last row in its source, to continue after it. */
  readonly cursor: string
  /** Rows at these positions that cannot be copied. They are not in `bytes`. */
  readonly faulty: readonly FaultyRow[]
}

/** A row that the other database could not store unchanged. */
export interface FaultyRow {
  readonly reason: string
  readonly values: Readonly<Record<string, Value>>
}

/** A batch ends with the row that reaches one of these sizes. */
export const BATCH_ROWS = 5_000
export const BATCH_BYTES = 4 * 2 ** 20

const NULL_LENGTH = -1
const FIRST_BYTES = 2 ** 18
/** A character of a JavaScript string takes at most three bytes in UTF-8. */
const BYTES_PER_UNIT = 3

/** Encodes rows into a buffer that grows. */
export class BatchWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES)
  #length = 0
  #starts: number[] = []

  get rows(): number {
    return this.#starts.length
  }

  get isFull(): boolean {
    return this.#starts.length >= BATCH_ROWS || this.#length >= BATCH_BYTES
  }

  /** Adds a row. The values are in the order of the table's columns, and of their types. */
  add(values: readonly Value[]): void {
    this.#starts.push(this.#length)
    this.#reserve(2)
    this.#length = this.#bytes.writeInt16BE(values.length, this.#length)
    for (const value of values) this.#field(value)
  }

  #field(value: Value): void {
    if (value === null) {
      this.#reserve(4)
      this.#length = this.#bytes.writeInt32BE(NULL_LENGTH, this.#length)
    } else if (typeof value === 'string') {
      this.#reserve(4 + value.length * BYTES_PER_UNIT)
      const written = this.#bytes.write(value, this.#length + 4, 'utf8')
      this.#bytes.writeInt32BE(written, this.#length)
      this.#length += 4 + written
    } else if (typeof value === 'object') {
      this.#reserve(4 + value.byteLength)
      this.#length = this.#bytes.writeInt32BE(value.byteLength, this.#length)
      this.#bytes.set(value, this.#length)
      this.#length += value.byteLength
    } else {
      this.#reserve(12)
      this.#length = this.#bytes.writeInt32BE(8, this.#length)
      this.#integer(value)
    }
  }

  #integer(value: number | bigint): void {
    if (typeof value === 'bigint') {
      this.#length = this.#bytes.writeBigInt64BE(value, this.#length)
      return
    }
    const high = Math.floor(value / 2 ** 32)
    this.#bytes.writeInt32BE(high, this.#length)
    this.#length = this.#bytes.writeUInt32BE(value - high * 2 ** 32, this.#length + 4)
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }

  /** Takes the rows so far; the writer continues with a new buffer. */
  take(cursor: string, faulty: readonly FaultyRow[]): Batch {
    const batch = { bytes: this.#bytes.subarray(0, this.#length), starts: this.#starts, cursor, faulty }
    this.#bytes = Buffer.allocUnsafe(Math.max(FIRST_BYTES, this.#length))
    this.#length = 0
    this.#starts = []
    return batch
  }
}

/** The bytes of a row of a batch. */
export function rowOf({ bytes, starts }: Batch, index: number): Buffer {
  return bytes.subarray(starts[index], starts[index + 1] ?? bytes.length)
}

/** The rows of a batch from index `from` up to, not including, `to`. */
export function partOf(batch: Batch, from: number, to: number): Batch {
  const first = batch.starts[from] ?? 0
  const end = batch.starts[to] ?? batch.bytes.length
  const starts = batch.starts.slice(from, to).map((start) => start - first)
  return { ...batch, bytes: batch.bytes.subarray(first, end), starts }
}

/** Where the row that begins at `at` ends; undefined if the bytes end before it. */
export function endOfRow(bytes: Buffer, at: number): number | undefined {
  if (at + 2 > bytes.length) return undefined
  const fields = bytes.readInt16BE(at)
  let end = at + 2
  for (let field = 0; field < fields; field++) {
    if (end + 4 > bytes.length) return undefined
    end += 4 + Math.max(0, bytes.readInt32BE(end))
  }
  return end > bytes.length ? undefined : end
}

/** The bytes of each field of a row; null for NULL. They are part of the row's own bytes. */
export function fieldsOf(row: Buffer): (Buffer | null)[] {
  const fields: (Buffer | null)[] = new Array(row.readInt16BE(0))
  let at = 2
  for (let field = 0; field < fields.length; field++) {
    const length = row.readInt32BE(at)
    at += 4
    fields[field] = length === NULL_LENGTH ? null : row.subarray(at, at + length)
    at += Math.max(0, length)
  }
  return fields
}

/** The integer in a field. */
export function integerIn(field: Buffer): number | bigint {
  const value = field.readInt32BE(0) * 2 ** 32 + field.readUInt32BE(4)
  return Number.isSafeInteger(value) ? value : field.readBigInt64BE(0)
}

/** The values of a row of a table. */
export function valuesIn(table: Table, row: Buffer): Value[] {
  return fieldsOf(row).map((field, index) => {
    if (field === null) return null
    const type = table.columns[index]?.type
    if (type === 'integer') return integerIn(field)
    return type === 'text' ? field.toString('utf8') : field
  })
}

const LANES = 8

/**
 * Digest of a set of rows: the sum of their SHA-256, as eight numbers modulo 2^32, and their number. It does not depend on
 * the order, so that each database may read a table in the order that is cheapest for it.
 */
export class Digest {
  rows = 0
  readonly #lanes = new Uint32Array(LANES)

  /** Adds a row. */
  add(row: Uint8Array): void {
    const sum = hash('sha256', row, 'buffer')
    for (let lane = 0; lane < LANES; lane++) this.#lanes[lane] = (this.#lanes[lane] ?? 0) + sum.readUInt32BE(lane * 4)
    this.rows++
  }

  /** Adds all rows of a batch. */
  addAll(batch: Batch): void {
    for (let index = 0; index < batch.starts.length; index++) this.add(rowOf(batch, index))
  }

  /** The digest without the rows of another one, all of which were added to this one. */
  without({ rows, hex }: { readonly rows: number; readonly hex: string }): Digest {
    const rest = new Digest()
    const taken = Buffer.from(hex, 'hex')
    for (let lane = 0; lane < LANES; lane++) rest.#lanes[lane] = (this.#lanes[lane] ?? 0) - taken.readUInt32BE(lane * 4)
    rest.rows = this.rows - rows
    return rest
  }

  /** A digest that continues from stored numbers. */
  static from({ rows, hex }: { readonly rows: number; readonly hex: string }): Digest {
    const digest = new Digest()
    const stored = Buffer.from(hex, 'hex')
    for (let lane = 0; lane < LANES; lane++) digest.#lanes[lane] = stored.readUInt32BE(lane * 4)
    digest.rows = rows
    return digest
  }

  get hex(): string {
    const bytes = Buffer.alloc(LANES * 4)
    for (const [index, lane] of this.#lanes.entries()) bytes.writeUInt32BE(lane, index * 4)
    return bytes.toString('hex')
  }
}
