import { keep } from '../resp/lent-memory.js'

/** What Node makes for a write. Only where the system does not take all bytes at once, it is used and called back. */
interface WriteRequest {
  /** `status` is 0, or an error of the system as a negative number. */
  oncomplete: (status: number) => void
  /** Keeps the bytes alive for the system. */
  buffer: Buffer
}

/** What Node keeps of streams. */
interface StreamInternals {
  readonly WriteWrap: new () => WriteRequest
  readonly streamBaseState: Int32Array
  /** Where the state says whether the last write left bytes for later. */
  readonly kLastWriteWasAsync: number
}

/** A connection of the operating system, as Node has it inside of a socket. */
interface WritableHandle {
  /** @returns 0, or an error of the system as a negative number. */
  writeBuffer(request: WriteRequest, bytes: Buffer): number
}

const internals = findInternals()
/** Serves every write that the system takes at once. */
let request = internals && new internals.WriteWrap()

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
    return internals && isWritable(handle) ? new DirectWriter(handle, internals, settled) : undefined
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

function findInternals(): StreamInternals | undefined {
  if (!('binding' in process) || typeof process.binding !== 'function') return undefined
  const found: unknown = process.binding('stream_wrap')
  return isInternals(found) ? found : undefined
}

function isInternals(value: unknown): value is StreamInternals {
  return (
    isObject(value) &&
    typeof value.WriteWrap === 'function' &&
    value.streamBaseState instanceof Int32Array &&
    typeof value.kLastWriteWasAsync === 'number'
  )
}

function isWritable(value: unknown): value is WritableHandle {
  return isObject(value) && typeof value.writeBuffer === 'function'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
