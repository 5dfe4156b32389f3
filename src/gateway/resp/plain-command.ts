import type { CommandLimits } from './command-limits.js'

const LF = 10
const CR = 13
const DOLLAR = 36
const STAR = 42
const ZERO = 48
const NINE = 57
const LINE_END_BYTES = 2
const MOST_DIGITS = 7
/** How many low bits of a header tell its length, the others its number. */
const LENGTH_BITS = 4
const LENGTH_MASK = 2 ** LENGTH_BITS - 1
const SPECIAL = -1

/**
 * Recognizes a command that lies whole in a buffer and about which nothing is special, as nearly all do, in a third of
 * the time that the step-by-step parser needs.
 */
export class PlainCommand {
  /** Where the command that was recognized last ends. */
  end = 0
  argumentCount = 0
  nameStart = 0
  nameEnd = 0

  /** Whether such a command begins at `begin`, of which nothing is known behind `limit`. */
  isAt(buffer: Buffer, begin: number, limit: number, limits: CommandLimits): boolean {
    if (begin >= limit || buffer[begin] !== STAR) return false
    const first = readHeader(buffer, begin, limit)
    const count = first >> LENGTH_BITS
    if (count <= 0 || count > limits.maxArguments) return false
    const mostBytes = Math.min(limits.maxArgumentBytes, limits.largeArgumentBytes - 1)
    this.argumentCount = count
    let at = begin + (first & LENGTH_MASK)
    for (let left = count; left > 0; left--) {
      if (at >= limit || buffer[at] !== DOLLAR) return false
      const header = readHeader(buffer, at, limit)
      const length = header >> LENGTH_BITS
      if (length < 0 || length > mostBytes) return false
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

/** @returns the number of the header at `at` and its length in the low bits; `SPECIAL` where that is not so simple. */
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
  if (digits > MOST_DIGITS || (digits > 1 && buffer[at + 1] === ZERO)) return SPECIAL
  return (value << LENGTH_BITS) | (digits + 1 + LINE_END_BYTES)
}
