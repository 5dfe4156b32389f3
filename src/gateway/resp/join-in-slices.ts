import { yieldToEventLoop } from '../../base/index.js'
import type { KeptBytes } from './lent-memory.js'

/** Bytes that are copied in one turn of the event loop; copying is much faster than reading. */
export const JOINED_AT_ONCE_BYTES = 4_194_304

/** Joins any number of bytes in slices that yield to the event loop. */
export async function joinInSlices(parts: readonly KeptBytes[]): Promise<Buffer> {
  const joined = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  let copiedBytes = 0
  for (const part of parts) {
    for (let from = 0; from < part.length; ) {
      const copied = part.copy(joined, at, from, from + JOINED_AT_ONCE_BYTES - copiedBytes)
      from += copied
      at += copied
      copiedBytes += copied
      if (copiedBytes < JOINED_AT_ONCE_BYTES) continue
      copiedBytes = 0
      await yieldToEventLoop()
    }
  }
  return joined
}
