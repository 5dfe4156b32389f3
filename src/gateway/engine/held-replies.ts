import type { Socket } from 'node:net'
import type { HomeportError } from '../../contract/errors/errors.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'

/** Says whether replies may go out. For databases that another node may take over. */
export interface HomeControl {
  /** Whether this node may serve a database now. Called for each chunk of replies. */
  mayServe(databaseId: string): boolean
  /**
   * Called for each chunk of replies. Undefined: the chunk may go out. Otherwise resolves when everything that the engine
   * has done so far would survive the loss of this node; rejects with the `HomeportError` for clients if that is impossible.
   */
  confirm(databaseId: string): Promise<void> | undefined
}

/** The outcomes for held replies. */
export interface HeldEnds {
  /** Sends a chunk, which is lent. */
  readonly pass: (chunk: LentBytes) => void
  /** Called when the held replies must not go out. */
  readonly fail: (error: HomeportError) => void
}

interface Held {
  readonly bytes: KeptBytes
  isConfirmed: boolean
}

/** Above this number of held bytes, reading from the engine stops. */
const MAX_HELD_BYTES = 1024 * 1024

/** Replies of one connection that wait, in order, until they may go out. */
export class HeldReplies {
  readonly #socket: Pick<Socket, 'pause' | 'resume'>
  readonly #ends: HeldEnds
  #held: Held[] = []
  #bytes = 0
  #isReaderPaused = false

  constructor(socket: Pick<Socket, 'pause' | 'resume'>, ends: HeldEnds) {
    this.#socket = socket
    this.#ends = ends
  }

  /** Stops reading from the engine, because the client does not read. */
  pauseReading(): void {
    this.#isReaderPaused = true
    this.#socket.pause()
  }

  /** Resumes reading, unless more than `MAX_HELD_BYTES` are held. */
  resumeReading(): void {
    this.#isReaderPaused = false
    if (!this.#isFull) this.#socket.resume()
  }

  get #isFull(): boolean {
    return this.#bytes > MAX_HELD_BYTES
  }

  /** Passes a chunk on: at once if it needs no confirmation and no earlier chunk waits. */
  take(chunk: LentBytes, confirmed: Promise<void> | undefined): void {
    if (confirmed === undefined && this.#held.length === 0) {
      this.#ends.pass(chunk)
      return
    }
    const held = { bytes: keep(chunk), isConfirmed: confirmed === undefined }
    this.#held.push(held)
    this.#bytes += held.bytes.length
    if (this.#isFull) this.#socket.pause()
    confirmed?.then(
      () => this.#confirm(held),
      (error: HomeportError) => this.#held.includes(held) && this.#ends.fail(error),
    )
  }

  /** Drops all held replies, because the connection is over. */
  clear(): void {
    this.#held = []
    this.#bytes = 0
  }

  #confirm(held: Held): void {
    held.isConfirmed = true
    const wasFull = this.#isFull
    while (this.#held[0]?.isConfirmed) {
      const bytes = this.#held.shift()?.bytes ?? Buffer.alloc(0)
      this.#bytes -= bytes.length
      this.#ends.pass(bytes)
    }
    if (wasFull && !this.#isFull && !this.#isReaderPaused) this.#socket.resume()
  }
}
