import { nextTurn } from '../../base/index.js'
import type { ReplyReader, RestReply } from './reply-reader.js'

/** Replies up to this length are read in one go, bytes. */
export const READ_AT_ONCE_BYTES = 262_144
/** So much is copied in one turn of the event loop, bytes; copying is much less work than reading. */
const JOINED_A_TURN_BYTES = 4_194_304

/** Joins any number of bytes in slices, between which others are served. The parts must not be lent. */
export async function joinInTurns(parts: readonly Buffer[]): Promise<Buffer> {
  const joined = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  let copiedBytes = 0
  for (const part of parts) {
    at += part.copy(joined, at)
    copiedBytes += part.length
    if (copiedBytes < JOINED_A_TURN_BYTES) continue
    copiedBytes = 0
    await nextTurn()
  }
  return joined
}

/** Reads any number of replies in slices, between which others are served. */
export class PatientReader {
  readonly #reader: ReplyReader
  /** Up to here the present turn of the event loop may read. */
  #until: number

  constructor(reader: ReplyReader) {
    this.#reader = reader
    this.#until = reader.position + READ_AT_ONCE_BYTES
  }

  /** Reads one reply. */
  async next(): Promise<RestReply> {
    for (;;) {
      if (this.#reader.position >= this.#until) await this.#nextTurn()
      const reply = this.#reader.some(this.#until - this.#reader.position)
      if (reply) return reply
    }
  }

  async #nextTurn(): Promise<void> {
    await nextTurn()
    this.#until = this.#reader.position + READ_AT_ONCE_BYTES
  }
}
