import type { CommandLimits } from './command-limits.js'

/** Result of `HeaderReader.read`: the rest of the header is missing. */
export const INCOMPLETE = -1
/** Result of `HeaderReader.read`: the bytes are no header. */
export const INVALID = -2

const MAX_HEADER_BYTES = 32
const MAX_DIGITS = 10
/** Longer numbers are left to the step-by-step parser, so that number and header length fit into 31 bits. */
const MAX_PLAIN_DIGITS = 7
const MAX_NEGATIVE_DIGITS = 9
const LF = 10
const CR = 13
const DOLLAR = 36
const STAR = 42
const MINUS = 45
const ZERO = 48
const NINE = 57
const LINE_END_BYTES = 2

/** Reads the headers of a command: `*12\r\n` is the number of arguments, `$12\r\n` the length of the next one. */
export class HeaderReader {
  /** End of the last header. */
  end = 0

  /** Reads the header at `at`, in the bytes up to `limit`. @returns its number, `INCOMPLETE` or `INVALID` */
  read(buffer: Buffer, at: number, limit: number): number {
    let value = 0
    let behind = at + 1
    for (; behind < limit; behind++) {
      const digit = (buffer[behind] ?? 0) - ZERO
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
    }
    if (behind + 1 >= limit) return behind - at > MAX_HEADER_BYTES ? INVALID : INCOMPLETE
    if (buffer[behind] !== CR || buffer[behind + 1] !== LF) return this.#readNegative(buffer, at, limit)
    if (!isCanonical(buffer, at + 1, behind)) return INVALID
    this.end = behind + 2
    return value
  }

  /** Reads a negative number. For the engine, a negative argument count is an empty command, a negative length an error. */
  #readNegative(buffer: Buffer, at: number, limit: number): number {
    let behind = at + 1
    for (; behind < limit && behind - at <= MAX_HEADER_BYTES; behind++) if (buffer[behind] === CR) break
    if (behind + 1 >= limit) return limit - at > MAX_HEADER_BYTES ? INVALID : INCOMPLETE
    const isLine = buffer[behind] === CR && buffer[behind + 1] === LF
    if (!isLine || buffer[at] !== STAR || !isNegative(buffer, at + 1, behind)) return INVALID
    this.end = behind + 2
    return 0
  }
}

/** Whether [start, end) is a minus sign and a number of at most nine digits without a leading zero. */
function isNegative(buffer: Buffer, start: number, end: number): boolean {
  const digits = end - start - 1
  if (digits < 1 || digits > MAX_NEGATIVE_DIGITS || buffer[start] !== MINUS || buffer[start + 1] === ZERO) return false
  for (let at = start + 1; at < end; at++) {
    const digit = (buffer[at] ?? 0) - ZERO
    if (digit < 0 || digit > 9) return false
  }
  return true
}

/** The engine refuses empty numbers and leading zeros. */
function isCanonical(buffer: Buffer, start: number, end: number): boolean {
  return end > start && end - start <= MAX_DIGITS && (buffer[start] !== ZERO || end - start === 1)
}

/** A byte as an error about a header shows it. */
export function printable(byte: number): string {
  return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
}

/** A header is packed into one number: its length in the low bits, its value in the others. */
const LENGTH_BITS = 4
const LENGTH_MASK = 2 ** LENGTH_BITS - 1
const SPECIAL = -1

/**
 * Recognizes a command that lies whole in a buffer and needs no special treatment, as nearly all do, in a third of the
 * time that the step-by-step parser needs.
 */
export class PlainCommand {
  /** End of the last recognized command. */
  end = 0
  argumentCount = 0
  nameStart = 0
  nameEnd = 0

  /** Whether such a command begins at `begin`, in the bytes up to `limit`. */
  isAt(buffer: Buffer, begin: number, limit: number, limits: CommandLimits): boolean {
    if (begin >= limit || buffer[begin] !== STAR) return false
    const first = readHeader(buffer, begin, limit)
    const count = first >> LENGTH_BITS
    if (count <= 0 || count > limits.maxArguments) return false
    const maxBytes = Math.min(limits.maxArgumentBytes, limits.largeArgumentBytes - 1)
    this.argumentCount = count
    let at = begin + (first & LENGTH_MASK)
    for (let left = count; left > 0; left--) {
      if (at >= limit || buffer[at] !== DOLLAR) return false
      const header = readHeader(buffer, at, limit)
      const length = header >> LENGTH_BITS
      if (length < 0 || length > maxBytes) return false
      at += header & LENGTH_MASK
      if (left === count) this.#noteName(at, length)
      at += length + LINE_END_BYTES
    }
    this.end = at
    return at <= limit && at - begin <= limits.maxRequestBytes
  }

  #noteName(at: number, length: number): void {
    this.nameStart = at
    this.nameEnd = at + length
  }
}

/** @returns the packed header at `at`, or `SPECIAL` for one that the step-by-step parser has to read */
function readHeader(buffer: Buffer, at: number, limit: number): number {
  let value = (buffer[at + 1] ?? 0) - ZERO
  if (value < 0 || value > 9) return SPECIAL
  let behind = at + 2
  for (; behind < limit; behind++) {
    const byte = buffer[behind] ?? 0
    if (byte < ZERO || byte > NINE) break
    value = value * 10 + byte - ZERO
  }
  if (behind + 1 >= limit || buffer[behind] !== CR || buffer[behind + 1] !== LF) return SPECIAL
  const digits = behind - at - 1
  if (digits > MAX_PLAIN_DIGITS || (digits > 1 && buffer[at + 1] === ZERO)) return SPECIAL
  return (value << LENGTH_BITS) | (digits + 1 + LINE_END_BYTES)
}
