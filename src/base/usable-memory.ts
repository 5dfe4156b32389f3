import { totalmem } from 'node:os'

/** Memory that this process and its children may use, bytes: that of the machine, or less in a container with a limit. */
export const usableMemoryBytes = (): number =>
  // 0, or a number beyond all memory, means no limit.
  Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
