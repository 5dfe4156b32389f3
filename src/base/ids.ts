import { createHash, randomBytes } from 'node:crypto'

/** Digits in ascending ASCII order, so that ids sort by the numbers they encode. */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const TIME_DIGITS = 8
const RANDOM_DIGITS = 14

/** Random bytes are fetched in blocks, because a call to the operating system per id would be slow. */
let pool = Buffer.alloc(0)
let poolOffset = 0

/** All pairs of digits: an id is put together from few texts. */
const PAIRS = [...DIGITS].flatMap((first) => [...DIGITS].map((second) => first + second))

function randomPair(): string {
  for (;;) {
    if (poolOffset >= pool.length) {
      pool = randomBytes(4096)
      poolOffset = 0
    }
    const pair = PAIRS[pool.readUInt16LE(poolOffset) & 4095]
    poolOffset += 2
    if (pair !== undefined) return pair
  }
}

/** The digits of the last time: many ids are made in a millisecond. */
let last = { ms: Number.NaN, digits: '' }

function timeDigits(ms: number): string {
  if (ms !== last.ms) last = { ms, digits: digitsOf(ms) }
  return last.digits
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
  let id = prefix + timeDigits(nowMs)
  for (let i = 0; i < RANDOM_DIGITS; i += 2) id += randomPair()
  return id
}

/** A secret of `bytes` random bytes in URL-safe base64 without padding. */
export function randomSecret(bytes = 32): string {
  return randomBytes(bytes).toString('base64url')
}

/** The SHA-256 of a text or of bytes, in lower-case hexadecimal. */
export function sha256Hex(input: string | Uint8Array): string {
  return createHash('sha256').update(input).digest('hex')
}
