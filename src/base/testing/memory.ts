import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage: unknown = runInNewContext('gc')

/** Memory that this process uses after a garbage collection, bytes. */
export function usedBytes(): number {
  if (typeof collectGarbage !== 'function') throw new Error('V8 does not expose its garbage collector')
  collectGarbage()
  // V8 frees the memory of buffers in the background; the next collection, even a minor one, waits for that.
  collectGarbage({ type: 'minor' })
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
