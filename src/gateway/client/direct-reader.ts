import { isObject } from '../../base/index.js'
import type { StreamInternals } from './stream-internals.js'

/** What is called when a connection has been read from, or cannot be read from any more. */
type ReadCallback = (this: unknown, memory: unknown) => void

/** A connection of the operating system, as Node has it inside of a socket. */
interface ReadableHandle {
  onread: ReadCallback
}

/**
 * Takes what is read from a connection before its socket would pass it on, which costs looking at a dozen places in
 * memory for every read: with many clients none of them is in the processor's cache. The socket still has the end of the
 * connection and its errors. `take` is told how many bytes were read into the memory that the connection was given.
 *
 * Node has no documented way to do this. Where it is missing, nothing happens, and the socket passes everything on.
 */
export function readDirectly(
  handle: unknown,
  internals: StreamInternals | undefined,
  take: (length: number) => void,
): void {
  if (!internals || !isReadable(handle)) return
  const { streamBaseState, kReadBytesOrError } = internals
  const asUsual = handle.onread
  handle.onread = function (memory) {
    const length = streamBaseState[kReadBytesOrError] ?? 0
    if (length > 0) take(length)
    else asUsual.call(this, memory)
  }
}

function isReadable(value: unknown): value is ReadableHandle {
  return isObject(value) && typeof value.onread === 'function'
}
