import { yieldToEventLoop } from '../../base/index.js'
import type { KeptBytes } from './lent-memory.js'

/** Bytes that are copied in one turn of the event loop; copying is much faster than reading. */
export const JOINED_AT_ONCE_BYTES = 4_194_304

/**
 * Calls `done` with the joined bytes: now when they are few, otherwise after slices that yield to the event loop.
 * @param done must not throw.
 */
export function joinThen(parts: readonly KeptBytes[], done: (joined: Buffer) => void): void {
  const bytes = totalBytes(parts)
  if (bytes <= JOINED_AT_ONCE_BYTES) done(Buffer.concat(parts, bytes))
  else void joinInSlices(parts).then(done)
}

/** Joins any number of bytes in slices that yield to the event loop. Never rejects. */
export async function joinInSlices(parts: readonly KeptBytes[]): Promise<Buffer> {
  const joined = Buffer.allocUnsafeSlow(totalBytes(parts))
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

function totalBytes(parts: readonly KeptBytes[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}
