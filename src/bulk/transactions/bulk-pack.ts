/**
 * Encodings of the fixed set of a bulk action. A million runs take about one megabyte: the ascending numbers of a chunk
 * are stored as deltas in variable-length bytes (seven bits each, the high bit set if more follow).
 */

const MORE = 0x80
const LOW_BITS = 0x7f

/** Outcomes of an item. The index in this list is the byte on disk: append only. */
export const OUTCOMES = [
  'pending',
  'succeeded',
  'alreadyFinished',
  'alreadyCancelled',
  'notFound',
  'failed',
  'skipped',
  'fenced',
  'notKept',
] as const

/** Outcome of an item of a bulk action. */
export type ItemOutcome = (typeof OUTCOMES)[number]

/** The byte that stores an outcome. */
export function outcomeByte(outcome: ItemOutcome): number {
  return OUTCOMES.indexOf(outcome)
}

/** The outcome that a byte stores. */
export function outcomeOf(byte: number | undefined): ItemOutcome {
  return OUTCOMES[byte ?? 0] ?? 'pending'
}

/** Longest encoding of a delta below 2^53, bytes. */
const MAX_ENCODED_BYTES = 8

/** Packs ascending whole numbers below 2^53. */
export function packSeqs(seqs: readonly number[]): Uint8Array {
  const bytes = new Uint8Array(seqs.length * MAX_ENCODED_BYTES)
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

/** Unpacks numbers that `packSeqs` packed. */
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
