import { isObject } from '../base/index.js'
import type { DropSelector } from './types.js'

/**
 * What the queues of the nodes of a cluster send each other. A node of another version may send what this one does not
 * understand, so each payload is read with care: what is not as expected is left out.
 */

/** `Cluster.notify`: forget these messages. */
export const DROP = 'queue.drop'

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value)

const numbersOf = (value: unknown): number[] => (Array.isArray(value) ? value.filter(isNumber) : [])

/** Reads the payload of `DROP`. */
export function readDrop(payload: unknown): DropSelector {
  if (!isObject(payload)) return { seqs: [] }
  const again = payload['mayBeOfferedAgain'] === true ? { mayBeOfferedAgain: true as const } : {}
  return 'groupKeys' in payload
    ? { groupKeys: numbersOf(payload['groupKeys']), ...again }
    : { seqs: numbersOf(payload['seqs']), ...again }
}
