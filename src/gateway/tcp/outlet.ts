import type { Socket } from 'node:net'
import type { DatabaseMeter } from '../../telemetry/index.js'
import { keep, kept } from '../resp/lent-memory.js'

/**
 * Whether the client gets its replies (CLIENT REPLY). `skip`: all but the next one; `skipping`: that one is on its way.
 */
export type Replies = 'on' | 'off' | 'skip' | 'skipping'

/** How much a client may leave unread. */
export interface ReaderBounds {
  /** From here on the client is slow, bytes: it gets a lane of its own and has to wait. Default 1 MiB. */
  readonly slowBytes: number
  /** From here on it is lost, bytes, where nobody can be made to wait for it. Default 256 MiB. */
  readonly lostBytes: number
}

/** What clients may leave unread if nobody says otherwise. */
export const DEFAULT_READER_BOUNDS: ReaderBounds = { slowBytes: 2 ** 20, lostBytes: 2 ** 28 }

/** What goes to one client. */
export class Outlet {
  replies: Replies = 'on'
  readonly #socket: Socket
  readonly #meter: DatabaseMeter
  readonly #bounds: ReaderBounds

  constructor(socket: Socket, meter: DatabaseMeter, bounds: ReaderBounds) {
    this.#socket = socket
    this.#meter = meter
    this.#bounds = bounds
  }

  /** Whether the client has left so much unread that it has to wait. */
  get isSlow(): boolean {
    return this.#socket.writableLength > this.#bounds.slowBytes
  }

  /** Whether it has left so much unread that no more may be kept for it. */
  get isLost(): boolean {
    return this.#socket.writableLength > this.#bounds.lostBytes
  }

  /** Whether it has not yet read what it was slow to read. */
  get needsDrain(): boolean {
    return this.#socket.writableNeedDrain
  }

  /** Sends bytes, which may be lent, unless the client wants no replies. @returns whether it reads too slowly. */
  write(bytes: Buffer): boolean {
    const socket = this.#socket
    if (socket.destroyed || this.replies !== 'on') return false
    this.#meter.bytesOut += bytes.length
    const isClear = socket.writableLength === 0
    socket.write(isClear ? bytes : kept(bytes))
    if (socket.writableLength === 0) return false
    // The system has not taken all of it, and the socket holds the rest as it was given.
    if (isClear) keep(bytes)
    return this.isSlow
  }
}
