import type { Socket } from 'node:net'
import { getSystemErrorName } from 'node:util'
import type { DatabaseMeter } from '../../telemetry/index.js'
import { keep, kept } from '../resp/lent-memory.js'
import type { Inlet } from './inlet.js'
import { DirectWriter } from './node-internals.js'

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
  readonly #direct: DirectWriter | undefined
  readonly #meter: DatabaseMeter
  readonly #bounds: ReaderBounds
  readonly #drained: () => void
  readonly #grew: (bytes: number) => void

  /**
   * `drained` is called when the client has read everything that it was slow to read, `grew` when more is queued behind
   * what it has not read.
   */
  constructor(
    { socket, handle }: Inlet,
    meter: DatabaseMeter,
    bounds: ReaderBounds,
    { drained, grew }: { readonly drained: () => void; readonly grew: (bytes: number) => void },
  ) {
    this.#socket = socket
    this.#direct = DirectWriter.of(handle, (status) => this.#settled(status))
    this.#meter = meter
    this.#bounds = bounds
    this.#drained = drained
    this.#grew = grew
    socket.on('drain', drained)
  }

  /** Whether the client has left so much unread that it has to wait. */
  get isSlow(): boolean {
    return this.queuedBytes > this.#bounds.slowBytes
  }

  /** Whether it has left so much unread that no more may be kept for it. */
  get isLost(): boolean {
    return this.queuedBytes > this.#bounds.lostBytes
  }

  /** Whether it has not yet read what it was slow to read. */
  get needsDrain(): boolean {
    return this.#socket.writableNeedDrain || (this.#direct !== undefined && this.#direct.queuedBytes > 0)
  }

  /** Bytes that the system has not taken. */
  get queuedBytes(): number {
    const { writableLength } = this.#socket
    return this.#direct ? writableLength + this.#direct.queuedBytes : writableLength
  }

  /** Sends bytes, which may be lent, unless the client wants no replies. @returns whether it reads too slowly. */
  write(bytes: Buffer): boolean {
    if (this.replies !== 'on' || !this.#socket.writable) return false
    this.#meter.bytesOut += bytes.length
    if (this.queuedBytes > 0) this.#queue(bytes)
    else if (this.#direct) this.#failed(this.#direct.write(bytes))
    else this.#writeFirst(bytes)
    return this.isSlow
  }

  #queue(bytes: Buffer): void {
    this.#socket.write(kept(bytes))
    this.#grew(bytes.length)
  }

  /** The system may not take all of it, and the socket holds the rest as it was given. */
  #writeFirst(bytes: Buffer): void {
    this.#socket.write(bytes)
    if (this.#socket.writableLength > 0) keep(bytes)
  }

  #settled(status: number): void {
    if (!this.#socket.destroyed && !this.#failed(status) && !this.needsDrain) this.#drained()
  }

  /** Whether `status` is an error of the system, which ends the connection. */
  #failed(status: number): boolean {
    if (status === 0) return false
    this.#socket.destroy(new Error(`writing failed with ${getSystemErrorName(status)}`))
    return true
  }
}
