import { hash, randomBytes, randomFillSync } from 'node:crypto'

/** Digits in ascending ASCII order, so that ids sort by the numbers they encode. */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const TIME_DIGITS = 8
const RANDOM_DIGITS = 14

const DIGIT_CODES = Buffer.from(DIGITS, 'latin1')

/** Random bytes are fetched in blocks, because a call to the operating system per id would be slow. */
const pool = Buffer.alloc(4096)
let poolOffset = pool.length

/** The character code of a random digit. Six bits make 64 numbers; the two without a digit are skipped. */
function randomDigit(): number {
  for (;;) {
    if (poolOffset >= pool.length) {
      randomFillSync(pool)
      poolOffset = 0
    }
    const code = DIGIT_CODES[(pool[poolOffset++] ?? 0) & 63]
    if (code !== undefined) return code
  }
}

/**
 * The bytes of the last id. Many ids are made in a millisecond, so its beginning is reused. Ids are made from bytes because
 * V8 keeps a concatenated string as a tree of its pieces: that takes several times the memory, and the first read copies it.
 */
const id = Buffer.alloc(256)
let last = { ms: Number.NaN, prefix: '', bytes: 0 }

function beginningOf(prefix: string, ms: number): number {
  if (ms !== last.ms || prefix !== last.prefix) last = { ms, prefix, bytes: id.write(prefix + digitsOf(ms), 'latin1') }
  return last.bytes
}

function digitsOf(ms: number): string {
  let rest = ms
  let text = ''
  for (let i = 0; i < TIME_DIGITS; i++) {
    text = DIGITS.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/**
 * Makes an id such as `msg_0Nk3…`: 8 digits of time, then 14 random digits (83 bits). Ids sort by the millisecond in which
 * they were made, so an index over them grows at its end.
 * @param nowMs Unix milliseconds.
 */
export function newId(prefix: string, nowMs: number): string {
  let at = beginningOf(prefix, nowMs)
  const end = at + RANDOM_DIGITS
  while (at < end) id[at++] = randomDigit()
  return id.toString('latin1', 0, end)
}

/** The latest time that the digits can encode. */
const LAST_MS = 62 ** TIME_DIGITS - 1

/** The prefix of all ids of this millisecond: ids made earlier sort before it, ids made later after it. */
export function idsFrom(prefix: string, ms: number): string {
  return prefix + digitsOf(Math.min(Math.max(0, Math.floor(ms)), LAST_MS))
}

/** When an id was made, Unix milliseconds, from the 8 digits after its prefix; `undefined` for a text that is no such id. */
export function timeOfId(prefix: string, id: string): number | undefined {
  let ms = 0
  for (let at = prefix.length; at < prefix.length + TIME_DIGITS; at++) {
    const digit = DIGITS.indexOf(id.charAt(at) || '-')
    if (digit < 0) return undefined
    ms = ms * 62 + digit
  }
  return id.startsWith(prefix) ? ms : undefined
}

/** A secret of `bytes` random bytes in URL-safe base64 without padding. */
export function randomSecret(bytes = 32): string {
  return randomBytes(bytes).toString('base64url')
}

/** The SHA-256 of a text or of bytes, in lower-case hexadecimal. */
export function sha256Hex(input: string | Uint8Array): string {
  return hash('sha256', input, 'hex')
}
