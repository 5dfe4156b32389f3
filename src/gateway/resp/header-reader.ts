/** The header has not come to its end. */
export const INCOMPLETE = -1
/** The bytes are no header. */
export const INVALID = -2

const LONGEST_HEADER_BYTES = 32
const MOST_DIGITS = 10
const MOST_NEGATIVE_DIGITS = 9
const LF = 10
const CR = 13
const STAR = 42
const MINUS = 45
const ZERO = 48

/** Reads the headers of commands: `*12\r\n` says how many arguments follow, `$12\r\n` how long the next one is. */
export class HeaderReader {
  /** Behind the last header. */
  end = 0

  /** Reads the header at `at`, of which nothing is known behind `limit`. @returns its number, `INCOMPLETE` or `INVALID`. */
  read(buffer: Buffer, at: number, limit: number): number {
    let value = 0
    let behind = at + 1
    for (; behind < limit; behind++) {
      const digit = (buffer[behind] ?? 0) - ZERO
      if (digit < 0 || digit > 9) break
      value = value * 10 + digit
    }
    if (behind + 1 >= limit) return behind - at > LONGEST_HEADER_BYTES ? INVALID : INCOMPLETE
    if (buffer[behind] !== CR || buffer[behind + 1] !== LF) return this.#readNegative(buffer, at, limit)
    if (!isCanonical(buffer, at + 1, behind)) return INVALID
    this.end = behind + 2
    return value
  }

  /** A negative count of arguments is an empty command to the engine; a negative length is an error. */
  #readNegative(buffer: Buffer, at: number, limit: number): number {
    let behind = at + 1
    for (; behind < limit && behind - at <= LONGEST_HEADER_BYTES; behind++) if (buffer[behind] === CR) break
    if (behind + 1 >= limit) return limit - at > LONGEST_HEADER_BYTES ? INVALID : INCOMPLETE
    const isLine = buffer[behind] === CR && buffer[behind + 1] === LF
    if (!isLine || buffer[at] !== STAR || !isNegative(buffer, at + 1, behind)) return INVALID
    this.end = behind + 2
    return 0
  }
}

/** Whether a number of at most nine digits stands at [start, end), with a minus sign and no leading zero. */
function isNegative(buffer: Buffer, start: number, end: number): boolean {
  const digits = end - start - 1
  if (digits < 1 || digits > MOST_NEGATIVE_DIGITS || buffer[start] !== MINUS || buffer[start + 1] === ZERO) return false
  for (let at = start + 1; at < end; at++) {
    const digit = (buffer[at] ?? 0) - ZERO
    if (digit < 0 || digit > 9) return false
  }
  return true
}

/** The engine refuses empty numbers and leading zeros. */
function isCanonical(buffer: Buffer, start: number, end: number): boolean {
  return end > start && end - start <= MOST_DIGITS && (buffer[start] !== ZERO || end - start === 1)
}

/** A byte as it is shown in an error about a header. */
export function printable(byte: number): string {
  return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
}
