/**
 * How the fixed set of a bulk action lies on disk. A million runs are about a megabyte: the ascending numbers of a
 * chunk are kept as differences, seven bits a byte, the highest bit saying that more bytes follow.
 */

const MORE = 0x80
const LOW_BITS = 0x7f

/** What became of an item. The position in this list is its byte on disk. */
export const OUTCOMES = [
  'pending',
  'succeeded',
  'alreadyFinished',
  'alreadyCancelled',
  'notFound',
  'failed',
  'skipped',
  'fenced',
] as const

/** What became of an item of a bulk action. */
export type ItemOutcome = (typeof OUTCOMES)[number]

/** The byte of an outcome. */
export function outcomeByte(outcome: ItemOutcome): number {
  return OUTCOMES.indexOf(outcome)
}

/** The outcome of a byte. */
export function outcomeOf(byte: number | undefined): ItemOutcome {
  return OUTCOMES[byte ?? 0] ?? 'pending'
}

/** The most bytes that a difference below 2^53 takes. */
const LONGEST_BYTES = 8

/** Packs ascending whole numbers below 2^53. */
export function packSeqs(seqs: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(seqs.length * LONGEST_BYTES)
  let length = 0
  let previous = 0
  for (const seq of seqs) {
    let rest = seq - previous
    // Division instead of shifts: differences may exceed 32 bits.
    for (; rest > LOW_BITS; rest = Math.floor(rest / MORE)) bytes[length++] = (rest % MORE) | MORE
    bytes[length++] = rest
    previous = seq
  }
  return bytes.slice(0, length)
}

/** Takes packed numbers apart again. */
export function unpackSeqs(bytes: Uint8Array): number[] {
  const seqs: number[] = []
  let seq = 0
  let scale = 1
  for (const byte of bytes) {
    seq += (byte & LOW_BITS) * scale
    scale = byte & MORE ? scale * MORE : 1
    if (scale === 1) seqs.push(seq)
  }
  return seqs
}
