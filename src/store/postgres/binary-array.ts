import { storable } from '../query.js'

/** PostgreSQL's OIDs of the types of the store's columns. */
export const INT8 = 20
/** A text. */
export const TEXT = 25
/** Bytes. */
export const BYTEA = 17
/** The type of a column. */
export type ColumnType = typeof INT8 | typeof TEXT | typeof BYTEA

/** Bytes before the elements of an array. */
const ARRAY_HEAD_BYTES = 20
/** Bytes of an integer. */
export const NUMBER_BYTES = 8
const NULL_LENGTH = -1
const TWO_32 = 2 ** 32
/** A character of a text has at most this many bytes. */
const CHARACTER_BYTES = 3

/** An array in PostgreSQL's binary format: one dimension that begins at 1. It grows with what is written. */
export class BinaryArray {
  #buffer: Buffer
  #at = ARRAY_HEAD_BYTES

  /** @param bytes expected size of the elements. */
  constructor(bytes: number) {
    this.#buffer = Buffer.allocUnsafe(ARRAY_HEAD_BYTES + bytes)
  }

  /** Bytes so far, which is also the position of the next one. */
  get bytes(): number {
    return this.#at
  }

  /** Writes the head. Nothing may follow. */
  end(elementOid: number, elements: number): Buffer {
    const array = this.#buffer.subarray(0, this.#at)
    this.#at = 0
    this.int32(1)
    // The flag for NULL elements may be 0: PostgreSQL finds them itself.
    this.int32(0)
    this.oid(elementOid)
    this.int32(elements)
    this.int32(1)
    return array
  }

  /** Ensures space for this many bytes, such as those of the calls of `int32` and `oid` that follow. */
  reserve(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(this.#at + bytes, this.#buffer.length * 2))
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }

  /** Writes a number within reserved space. */
  int32(value: number): void {
    this.#buffer.writeInt32BE(value, this.#at)
    this.#at += 4
  }

  /** Writes the OID of a type within reserved space. */
  oid(value: number): void {
    this.#buffer.writeUInt32BE(value, this.#at)
    this.#at += 4
  }

  /** Leaves four bytes for a length. Returns the position after them, for `setLength`. */
  skipLength(): number {
    this.#at += 4
    return this.#at
  }

  /** Writes the number of bytes after a position into the four bytes before it. */
  setLength(place: number): void {
    this.#buffer.writeInt32BE(this.#at - place, place - 4)
  }

  /** Repeats bytes that were written before. */
  repeat(from: number, to: number): void {
    this.reserve(to - from)
    this.#buffer.copyWithin(this.#at, from, to)
    this.#at += to - from
  }

  /**
   * Writes a value with its length.
   * @throws HomeportError `invalid_request` for U+0000 in a text.
   * @throws TypeError for a value that no column keeps.
   */
  value(type: ColumnType, given: unknown): void {
    const value = storable(given)
    this.reserve(4 + NUMBER_BYTES)
    if (value === null) this.int32(NULL_LENGTH)
    else if (type === INT8) this.#int8(Number(value))
    else if (value instanceof Uint8Array) this.#bytes(value)
    else this.#text(String(value))
  }

  #int8(value: number): void {
    const high = Math.floor(value / TWO_32)
    this.int32(NUMBER_BYTES)
    this.int32(high)
    this.oid(value - high * TWO_32)
  }

  #bytes(value: Uint8Array): void {
    this.int32(value.byteLength)
    this.reserve(value.byteLength)
    this.#buffer.set(value, this.#at)
    this.#at += value.byteLength
  }

  #text(value: string): void {
    this.reserve(4 + value.length * CHARACTER_BYTES)
    const length = this.#buffer.write(value, this.#at + 4)
    this.int32(length)
    this.#at += length
  }
}
