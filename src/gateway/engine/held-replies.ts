import type { Socket } from 'node:net'
import type { HomeportError } from '../../contract/errors/errors.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'

/** What this node knows about the databases that it serves and that another node may take over. */
export interface HomeControl {
  /** Whether this node may serve a database now. Called for each chunk of replies. */
  mayServe(databaseId: string): boolean
  /**
   * Called for each chunk of replies. Undefined: it may go out. Otherwise resolves when all that the engine has done until
   * now survives the loss of this node; rejects with the `HomeportError` for clients when that is not to be had.
   */
  confirm(databaseId: string): Promise<void> | undefined
}

/** Where replies go. */
export interface HeldEnds {
  /** Takes a chunk, which is lent. */
  readonly pass: (chunk: LentBytes) => void
  /** Nothing of what is held may go out. */
  readonly fail: (error: HomeportError) => void
}

interface Held {
  readonly bytes: KeptBytes
  isConfirmed: boolean
}

/** Replies above which no more are read, bytes. */
const MOST_HELD_BYTES = 1024 * 1024

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

  /** Reads no more, because a client does not. */
  pauseReading(): void {
    this.#isReaderPaused = true
    this.#socket.pause()
  }

  /** Reads again, unless much is held. */
  resumeReading(): void {
    this.#isReaderPaused = false
    if (!this.#isFull) this.#socket.resume()
  }

  get #isFull(): boolean {
    return this.#bytes > MOST_HELD_BYTES
  }

  /** Passes a chunk on: at once when nothing is to be waited for. */
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

  /** The connection is over: nothing is passed on any more. */
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
