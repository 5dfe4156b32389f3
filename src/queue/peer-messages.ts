import { isObject } from '../base/index.js'
import type { Place } from './dispatcher/entry.js'
import type { FlowNote } from './dispatcher/flow-control.js'
import type { FlowUse } from './dispatcher/flow-key.js'
import type { DropSelector } from './types.js'

/**
 * The messages that the queues of a cluster's nodes send each other. A node of another version may send fields that this one
 * does not understand, so each payload is validated and unexpected values are left out.
 */

/** `Cluster.notify`: forget these messages. */
export const DROP = 'queue.drop'

/** `Cluster.hint`, to the owner of a partition: look at these messages. */
export const DUE = 'queue.due'
/** `Cluster.notify`: these flow-control keys have changed. */
export const FLOW = 'queue.flow'
/** `Cluster.ask`: what the flow-control keys of an account use. */
export const FLOW_USE = 'queue.flow.use'
/** `Cluster.ask`: requests in flight. */
export const LOAD = 'queue.load'
/** `Cluster.hintLeader`: schedules have changed. */
export const SCHEDULES = 'queue.schedules'

const isNumber = (value: unknown): value is number => Number.isSafeInteger(value)

const numbersOf = (value: unknown): number[] => (Array.isArray(value) ? value.filter(isNumber) : [])

/** Reads the payload of `DROP`. */
export function readDrop(payload: unknown): DropSelector {
  if (!isObject(payload)) return { seqs: [] }
  const again = {
    ...(payload.mayBeOfferedAgain === true && { mayBeOfferedAgain: true as const }),
    ...(payload.inFlight === 'ends' && { inFlight: 'ends' as const }),
  }
  return 'groupKeys' in payload
    ? { groupKeys: numbersOf(payload.groupKeys), ...again }
    : { seqs: numbersOf(payload.seqs), ...again }
}

/** A flow-control key: account and name. */
export type KeyName = readonly [accountId: string, key: string]

/** Payload of `DUE`. */
export interface DueHint {
  readonly partition: number
  /** Messages that were published or changed. */
  readonly places: readonly Place[]
  /** Flow-control keys whose limits have changed. */
  readonly keys: readonly KeyName[]
}

function placeOf(value: unknown): Place[] {
  if (!isObject(value) || !isNumber(value.nextAt) || !isNumber(value.seq)) return []
  return [{ nextAt: value.nextAt, seq: value.seq }]
}

function keyOf(value: unknown): KeyName[] {
  if (!Array.isArray(value)) return []
  const [accountId, key]: unknown[] = value
  return typeof accountId === 'string' && typeof key === 'string' ? [[accountId, key]] : []
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Reads the payload of `DUE`. */
export function readDue(payload: unknown): DueHint {
  const { partition, places, keys } = isObject(payload) ? payload : {}
  return {
    partition: isNumber(partition) ? partition : -1,
    places: listOf(places).flatMap(placeOf),
    keys: listOf(keys).flatMap(keyOf),
  }
}

/** Reads the notes that the previous owner of a partition left. */
export function readFlowNotes(notes: unknown): FlowNote[] {
  return listOf(notes).flatMap((note) => {
    const { name, begun, periodStart } = isObject(note) ? note : {}
    return typeof name === 'string' && isNumber(begun) && isNumber(periodStart) ? [{ name, begun, periodStart }] : []
  })
}

/** Payload of `FLOW`. */
export interface FlowChange {
  readonly keys: readonly KeyName[]
  /** Ends the current period of the keys. */
  readonly isReset: boolean
}

/** Reads the payload of `FLOW`. */
export function readFlowChange(payload: unknown): FlowChange {
  const { keys, isReset } = isObject(payload) ? payload : {}
  return { keys: listOf(keys).flatMap(keyOf), isReset: isReset === true }
}

/** Answer of `FLOW_USE`: the uses of keys by name. */
export function readFlowUses(answer: unknown): (readonly [string, FlowUse])[] {
  return listOf(answer).flatMap((entry) => {
    const [key, use]: unknown[] = Array.isArray(entry) ? entry : []
    const { open, begun, periodStart } = isObject(use) ? use : {}
    return typeof key === 'string' && isNumber(open) && isNumber(begun) && isNumber(periodStart)
      ? [[key, { open, begun, periodStart }] as const]
      : []
  })
}

/** Requests in flight of one node, and their limit. */
export interface NodeLoad {
  readonly sending: number
  readonly most: number
}

/** Reads the answer of `LOAD`. */
export function readLoad(answer: unknown): NodeLoad {
  const { sending, most } = isObject(answer) ? answer : {}
  return { sending: isNumber(sending) ? sending : 0, most: isNumber(most) ? most : 0 }
}
