import { getSystemErrorName } from 'node:util'
import { DirectWriter } from '../../base/index.js'
import { keep, keepInPlace } from '../resp/lent-memory.js'
import type { ClientSocket } from './client-socket.js'
import type { Inlet } from './inlet.js'

/** Whether the client gets its replies (CLIENT REPLY). `skip`: not the next one; `skipping`: the skipped one is pending. */
export type Replies = 'on' | 'off' | 'skip' | 'skipping'

/** Reply bytes that a client may leave unread. */
export interface ReaderBounds {
  /** Above this, the client is slow: it gets a dedicated lane, and its next command waits. Default 1 MiB. */
  readonly slowBytes: number
  /** Above this, a client on a shared lane is disconnected, because the lane cannot wait for it. Default 256 MiB. */
  readonly lostBytes: number
}

/** The default bounds. */
export const DEFAULT_READER_BOUNDS: ReaderBounds = { slowBytes: 2 ** 20, lostBytes: 2 ** 28 }

/** Counts the bytes of a client: the meter of its database, once it has logged in. */
export interface Traffic {
  bytesIn: number
  bytesOut: number
}

/** The sending side of a client's connection. */
export class Outlet {
  replies: Replies = 'on'
  /** Bytes that were sent to the client. */
  sentBytes = 0
  /** Before login, bytes are not counted for a database: a stranger must not use up its month. */
  #traffic: Traffic = { bytesIn: 0, bytesOut: 0 }
  readonly #socket: ClientSocket
  readonly #direct: DirectWriter | undefined
  readonly #bounds: ReaderBounds
  readonly #drained: () => void
  readonly #grew: (bytes: number) => void

  /**
   * `drained` is called when a slow client has read everything, `grew` with the number of bytes when more is queued after
   * unread ones.
   */
  constructor(
    { socket, handle }: Inlet,
    bounds: ReaderBounds,
    { drained, grew }: { readonly drained: () => void; readonly grew: (bytes: number) => void },
  ) {
    this.#socket = socket
    this.#direct = DirectWriter.of(handle, { keep: keepInPlace, settled: (status) => this.#settled(status) })
    this.#bounds = bounds
    this.#drained = drained
    this.#grew = grew
    socket.on('drain', drained)
  }

  /** Counts bytes in `meter` from now on, and adds those before the login. Undefined: the client is a stranger again. */
  countIn(meter: Traffic | undefined): void {
    const past = this.#traffic
    if (meter === past) return
    this.#traffic = meter ?? { bytesIn: 0, bytesOut: 0 }
    if (!meter) return
    meter.bytesIn += past.bytesIn
    meter.bytesOut += past.bytesOut
  }

  /** Counts bytes that the client has sent. */
  received(bytes: number): void {
    this.#traffic.bytesIn += bytes
  }

  /** Whether the client has left so much unread that its next command waits. */
  get isSlow(): boolean {
    return this.queuedBytes > this.#bounds.slowBytes
  }

  /** Whether the client has left so much unread that no more may be queued for it. */
  get isLost(): boolean {
    return this.queuedBytes > this.#bounds.lostBytes
  }

  /** Reply bytes that the client could leave unread without being lost. */
  get maxUnreadBytes(): number {
    return this.#bounds.lostBytes
  }

  /** Whether bytes that a slow client did not read are still queued. */
  get needsDrain(): boolean {
    return this.#socket.writableNeedDrain || (this.#direct !== undefined && this.#direct.queuedBytes > 0)
  }

  /** Bytes that the system has not taken yet. */
  get queuedBytes(): number {
    const { writableLength } = this.#socket
    return this.#direct ? writableLength + this.#direct.queuedBytes : writableLength
  }

  /** Sends bytes, which may be lent, unless the client has turned replies off. @returns whether the client is slow. */
  write(bytes: Buffer): boolean {
    if (this.replies !== 'on' || !this.#socket.writable) return false
    this.#traffic.bytesOut += bytes.length
    this.sentBytes += bytes.length
    if (this.queuedBytes > 0) this.#queue(bytes)
    else if (this.#direct) this.#failed(this.#direct.write(bytes))
    else this.#writeFirst(bytes)
    return this.isSlow
  }

  #queue(bytes: Buffer): void {
    this.#socket.write(keep(bytes))
    this.#grew(bytes.length)
  }

  /** If the system does not take all bytes, the socket queues the given buffer, so the buffer must not be lent any more. */
  #writeFirst(bytes: Buffer): void {
    this.#socket.write(bytes)
    if (this.#socket.writableLength > 0) keepInPlace(bytes)
  }

  #settled(status: number): void {
    if (!this.#socket.destroyed && !this.#failed(status) && !this.needsDrain) this.#drained()
  }

  /** Closes the connection if `status` is an error of the system. @returns whether it is one. */
  #failed(status: number): boolean {
    if (status === 0) return false
    this.#socket.destroy(new Error(`writing failed with ${getSystemErrorName(status)}`))
    return true
  }
}
