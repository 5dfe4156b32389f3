import { finished, type Readable } from 'node:stream'
import { systemClock } from '../base/index.js'

/** How much is read for the sake of the answer. */
const MOST_BYTES = 64 * 2 ** 20
const LONGEST_MS = 5_000

/** So much of the beginning is shown to who wants to know what it was. */
const HEAD_BYTES = 65_536

/** What was thrown away. */
export interface Discarded {
  /** The connection can go on with another request. */
  readonly isAtEnd: boolean
  /** The beginning of it. */
  readonly head: Buffer
}

/**
 * Reads on and throws away the rest of a body that is refused, so that the client gets to read why: a connection that
 * is closed while bytes arrive is reset, and the answer is lost with it. Resolves when the body has ended, and early
 * when there is no end in sight.
 */
export function discardBody(request: Readable): Promise<Discarded> {
  return new Promise((resolve) => {
    let left = MOST_BYTES
    const head: Uint8Array[] = []
    let headBytes = 0
    const settle = (isAtEnd: boolean): void => {
      timer.cancel()
      stopListening()
      request.off('data', count)
      resolve({ isAtEnd, head: Buffer.concat(head) })
    }
    const count = (chunk: Uint8Array): void => {
      left -= chunk.byteLength
      if (headBytes < HEAD_BYTES) headBytes += head[head.push(chunk) - 1]?.byteLength ?? 0
      if (left < 0) settle(false)
    }
    const timer = systemClock.after(LONGEST_MS, () => settle(false))
    const stopListening = finished(request, { writable: false }, (error) => settle(!error))
    request.on('data', count)
    request.resume()
  })
}
