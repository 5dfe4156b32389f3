import type { Duplex } from 'node:stream'
import type { Service } from '../base/index.js'

/** Number of partitions. A message has one of them, 0 to 63; a node sends the messages of the partitions that it owns. */
export const PARTITIONS = 64

/** One life of one process of a node. It grows with every start, so a later life of the same node has a larger number. */
export type Incarnation = number

/** A node that takes part now. */
export interface Peer {
  readonly incarnation: Incarnation
  /** As the operator named it. */
  readonly name: string
  /** Host and port of its peer link. */
  readonly advertise: string
  readonly state: 'live' | 'draining'
}

/** A partition that this node owns from now on. */
export interface Gained {
  readonly partition: number
  /** What the owner before has left for the next one (`PartitionHolder.letGo`); absent after it was killed. */
  readonly notes?: unknown
}

/** Acts on the messages of partitions. One per node: the queue. */
export interface PartitionHolder {
  /** These partitions are this node's from now on. Their pending messages are only in the store. */
  gained(partitions: readonly Gained[]): void
  /**
   * Another node will own these partitions: takes nothing of them any more. Resolves when no request for them is in
   * flight, or after `graceMs`, with notes for the next owner and with the partitions that still have requests in flight.
   * The caller then calls `lost` for those that it gives away, and `gained` for those that it keeps.
   */
  letGo(partitions: readonly number[], graceMs: number): Promise<LetGo>
  /** These partitions are no longer this node's, also without `letGo` before. Requests in flight end and are settled. */
  lost(partitions: readonly number[]): void
}

/** The result of `PartitionHolder.letGo`. */
export interface LetGo {
  /** JSON values for the next owner, by partition. */
  readonly notes: ReadonlyMap<number, unknown>
  /** Partitions with requests that are still in flight. */
  readonly busy: readonly number[]
}

/** Serves a stream of bytes of another node. @param ip address of the client. @param detail what the other node adds. */
export type StreamHandler = (stream: Duplex, ip: string, detail: string) => void

/** Handles what another node sends under a topic. The payload is JSON and not checked yet. Answers JSON. */
export type PeerHandler = (payload: unknown, from: Incarnation) => Promise<unknown> | unknown

/** The answer of one node. */
export interface PeerAnswer {
  readonly peer: Peer
  readonly answer: unknown
}

/**
 * Which nodes there are, and which of them does what. The other modules ask it; only this module decides.
 *
 * Everything else rests on the rows of the store: a message is settled only while it is pending and at this attempt, a
 * schedule fires only at this time. So a node that acts on an old answer of this interface can delay or repeat something,
 * as a crash can, and never lose or invent anything.
 */
export interface Cluster extends Service {
  /** The life of this process; 0 when it is alone. */
  readonly incarnation: Incarnation
  /** Whether other nodes may use the store. If not, this node owns everything for good. */
  readonly isAlone: boolean
  /** Whether this node may begin anything that leaves the store, such as a request. False when it may have been declared dead. */
  mayAct(): boolean
  /** Whether this node sends the messages of a partition. */
  owns(partition: number): boolean
  /** The partitions of this node; `undefined` when it is alone: all, and no read needs to choose. */
  readonly owned: readonly number[] | undefined
  /**
   * The partition of a new message. Messages of a flow-control key have the partition of the key, so that one node counts
   * its limits. Others get one of this node, or any one while it has none.
   */
  partitionFor(accountId: string, flowKey: string | undefined): number
  /** Whether this node does what only one node does: schedules, retention, roll-ups, alerts. */
  readonly isLeader: boolean
  /** Whether everything in this process has started, and it does not stop. */
  readonly takesPart: boolean
  /** Whether this node gives everything up and should get nothing new. */
  readonly isDraining: boolean
  /** Calls `listener` whenever this node begins or ends to be the leader. */
  onLeader(listener: (isLeader: boolean) => void): void
  /** Registers what acts on the messages of partitions. Once, before `open`. */
  hold(holder: PartitionHolder): void
  /** Calls `listener` when a node was declared dead or has left: its life is over and will never act again. */
  onGone(listener: (incarnation: Incarnation) => void): void
  /** The other nodes that take part, as far as this one knows. */
  readonly peers: readonly Peer[]
  /** Whether the operator drains this node. It serves meanwhile. */
  readonly isBeingDrained: boolean
  /** Whether a life may still act, read from the store. False for those that were declared dead, have left or never were. */
  isLive(incarnation: Incarnation): Promise<boolean>
  /** Registers the handler of a topic. Before `start`. */
  handle(topic: string, handler: PeerHandler): void
  /**
   * Notifies all other nodes, and resolves when each of them has handled it, or was declared dead and can no longer act. Call it after
   * the commit that it is about: nodes that join later read the store. The handler must not mind to hear it twice. Usually
   * 1 to 3 ms; at worst about 7 s, when a node has just died.
   * @throws HomeportError `store_unavailable` when a node does not answer and the store does not either.
   */
  notify(topic: string, payload: unknown): Promise<void>
  /** Notifies the owner of a partition, without waiting. It may get lost: whatever it is about is found by a sweep. */
  hint(partition: number, topic: string, payload: unknown): void
  /** The same to the leader. */
  hintLeader(topic: string, payload: unknown): void
  /** Asks all other nodes, or one. Those that do not answer within a second are left out. */
  ask(topic: string, payload: unknown, of?: Incarnation): Promise<readonly PeerAnswer[]>
  /**
   * Registers what serves streams of bytes of other nodes. Before `start`.
   * @param isServing whether it does now. If not, `tunnel` of the other node rejects, and nothing was sent. Default: always.
   */
  serve(service: string, accept: StreamHandler, isServing?: () => boolean): void
  /**
   * Opens a stream of bytes to a service of the node with this name, for a client with this address.
   * @param detail what the service needs to know: short, printable ASCII.
   * @throws Error when no such node takes part or it does not answer.
   */
  tunnel(node: string, service: string, ip: string, detail?: string): Promise<Duplex>
  /** Everything in this process has started: from now on it takes partitions. */
  open(): void
  /**
   * Gives everything up to other nodes, each partition when nothing of it is in flight. Resolves when this node owns nothing,
   * or after `graceMs`.
   */
  drain(graceMs: number): Promise<void>
}
