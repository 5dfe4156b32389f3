import { PARTITIONS } from './types.js'

// For transactions: the store threads load only this file of the module.
export { PARTITIONS }

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/**
 * The partition of a flow-control key: FNV-1a of account and key. Every node computes the same partition, so a key has one
 * owner at any time. The partition is stored with the messages, so the function must never change.
 */
export function partitionOfKey(accountId: string, flowKey: string): number {
  return partitionOfName(`${accountId}/${flowKey}`)
}

/** Like `partitionOfKey`, for the text `<account>/<flow-control key>`. */
export function partitionOfName(text: string): number {
  let hash = FNV_OFFSET
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME)
  }
  // The low bits alone mix the last characters badly.
  return ((hash ^ (hash >>> 15)) >>> 0) % PARTITIONS
}

/** The partition of a group of messages, such as those of a run. */
export const partitionOfGroup = (groupKey: number): number => groupKey % PARTITIONS
