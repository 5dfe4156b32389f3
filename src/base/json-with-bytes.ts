import { TimeSlice } from './event-loop.js'

/** Fewer bytes than this are encoded in one go, in a millisecond or less. */
const SMALL_BYTES = 262_144
/** Bytes that are encoded in one go. Divisible by three, so that base64 has no padding within. */
const PIECE_BYTES = 786_432

const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')

/**
 * The JSON of an object as UTF-8, with members that are bytes in base64. Large bodies are encoded in slices, which yield to
 * the event loop.
 */
export async function jsonWithBytes(object: Readonly<Record<string, unknown>>): Promise<Uint8Array> {
  const members = Object.entries(object)
  const bytes = members.reduce((sum, [, member]) => sum + (member instanceof Uint8Array ? member.byteLength : 0), 0)
  if (bytes > SMALL_BYTES) return joinedInSlices(partsOf(members))
  const texts = members.map(([name, member]) => [name, member instanceof Uint8Array ? base64(member) : member])
  return new TextEncoder().encode(JSON.stringify(Object.fromEntries(texts)))
}

type Part = string | Uint8Array

function partsOf(members: readonly (readonly [string, unknown])[]): Part[] {
  const parts: Part[] = []
  let before = '{'
  for (const [name, member] of members) {
    if (member === undefined) continue
    parts.push(`${before}${JSON.stringify(name)}:`)
    if (member instanceof Uint8Array) parts.push('"', member, '"')
    else parts.push(JSON.stringify(member))
    before = ','
  }
  return [...parts, '}']
}

/** Joins texts, as UTF-8, and bytes, in base64. Yields to the event loop. */
export async function joinedInSlices(parts: readonly Part[]): Promise<Uint8Array> {
  const slice = new TimeSlice()
  let length = 0
  for (const part of parts) {
    length += lengthOf(part)
    if (slice.isOver) await slice.rest()
  }
  const whole = new Uint8Array(length)
  const view = Buffer.from(whole.buffer)
  let at = 0
  for (const part of parts) {
    if (typeof part === 'string') {
      at += view.write(part, at)
      if (slice.isOver) await slice.rest()
      continue
    }
    for (let from = 0; from < part.byteLength; from += PIECE_BYTES) {
      at += view.write(base64(part.subarray(from, from + PIECE_BYTES)), at, 'latin1')
      if (slice.isOver) await slice.rest()
    }
  }
  return whole
}

const lengthOf = (part: Part): number =>
  typeof part === 'string' ? Buffer.byteLength(part) : Math.ceil(part.byteLength / 3) * 4
