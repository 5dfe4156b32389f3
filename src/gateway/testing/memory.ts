import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collectGarbage: unknown = runInNewContext('gc')

/** Memory that this process has in use once garbage is collected, bytes. */
export function usedBytes(): number {
  if (typeof collectGarbage !== 'function') throw new Error('this engine cannot be told to collect garbage')
  collectGarbage()
  // Memory of buffers is given back in the background, which the next collection waits for.
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
