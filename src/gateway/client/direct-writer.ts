import { isObject } from '../../base/index.js'
import { keep } from '../resp/lent-memory.js'
import { type StreamInternals, streamInternals, type WriteRequest } from './stream-internals.js'

/** A connection of the operating system, as Node has it inside of a socket. */
interface WritableHandle {
  /** @returns 0, or an error of the system as a negative number. */
  writeBuffer(request: WriteRequest, bytes: Buffer): number
}

/** Serves every write that the system takes at once. */
let request = streamInternals && new streamInternals.WriteWrap()

/**
 * Writes to a connection below its socket, whose queue, callbacks and ticks cost a tenth of all that a reply costs and
 * do nothing for bytes that the system takes at once. Only for a socket that has nothing queued; what the socket is given
 * afterwards goes behind these bytes, and so does its end.
 *
 * Node has no documented way to do this, so it may be missing.
 */
export class DirectWriter {
  readonly #handle: WritableHandle
  readonly #internals: StreamInternals
  readonly #settled: (status: number) => void
  #queuedBytes = 0

  private constructor(handle: WritableHandle, known: StreamInternals, settled: (status: number) => void) {
    this.#handle = handle
    this.#internals = known
    this.#settled = settled
  }

  /** For the handle of a socket; `settled` is told when bytes that were queued are gone, or the error of the system. */
  static of(handle: unknown, settled: (status: number) => void): DirectWriter | undefined {
    return streamInternals && isWritable(handle) ? new DirectWriter(handle, streamInternals, settled) : undefined
  }

  /** Bytes of the last write that the system has not taken yet, at most. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** Writes bytes, which may be lent. Not while any are queued. @returns 0, or an error of the system below 0. */
  write(bytes: Buffer): number {
    const { WriteWrap, streamBaseState, kLastWriteWasAsync } = this.#internals
    request ??= new WriteWrap()
    const status = this.#handle.writeBuffer(request, bytes)
    if (status === 0 && streamBaseState[kLastWriteWasAsync] !== 0) this.#queued(request, bytes)
    return status
  }

  #queued(taken: WriteRequest, bytes: Buffer): void {
    request = undefined
    keep(bytes)
    taken.buffer = bytes
    this.#queuedBytes = bytes.length
    taken.oncomplete = (status) => {
      this.#queuedBytes = 0
      this.#settled(status)
    }
  }
}

function isWritable(value: unknown): value is WritableHandle {
  return isObject(value) && typeof value.writeBuffer === 'function'
}
