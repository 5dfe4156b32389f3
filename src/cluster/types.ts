import type { Duplex } from 'node:stream'
import type { Service } from '../base/index.js'

/** Number of partitions. A message has one of them, 0 to 63; a node sends the messages of the partitions that it owns. */
export const PARTITIONS = 64

/** The number of one incarnation of a node, that is, of one process. It grows with every start of any node. */
export type Incarnation = number

/** A node that takes part now. */
export interface Peer {
  readonly incarnation: Incarnation
  /** The name that the operator gave the node. */
  readonly name: string
  /** Host and port of its peer link. */
  readonly advertise: string
  readonly state: 'live' | 'draining'
}

/** A partition that this node owns from now on. */
export interface Gained {
  readonly partition: number
  /** The notes of the previous owner (`PartitionHolder.release`); absent if it was killed. */
  readonly notes?: unknown
}

/** Acts on the messages of partitions. One per node: the queue. */
export interface PartitionHolder {
  /** This node owns these partitions from now on. Their pending messages are only in the store. */
  gained(partitions: readonly Gained[]): void
  /**
   * Another node will own these partitions: the holder starts no more requests for them. Resolves when no
   * request for them is in flight, or after `graceMs`, with notes for the next owners and with the
   * partitions that still have requests in flight. The caller then calls `lost` for the partitions that it
   * gives away, and `gained` for those that it keeps.
   */
  release(partitions: readonly number[], graceMs: number): Promise<ReleasedPartitions>
  /**
   * This node no longer owns these partitions, perhaps without `release` before.
   * Requests in flight finish and are settled.
   */
  lost(partitions: readonly number[]): void
}

/** The result of `PartitionHolder.release`. */
export interface ReleasedPartitions {
  /** JSON values for the next owner, by partition. */
  readonly notes: ReadonlyMap<number, unknown>
  /** Partitions with requests that are still in flight. */
  readonly busy: readonly number[]
}

/** Serves a stream of bytes of another node. @param ip address of the client. @param detail see `TunnelHead.detail`. */
export type StreamHandler = (stream: Duplex, ip: string, detail: string) => void

/** Handles a message of another node under a topic. The payload is parsed JSON, not validated. Returns a JSON value. */
export type PeerHandler = (payload: unknown, from: Incarnation) => Promise<unknown> | unknown

/** The answer of one node. */
export interface PeerAnswer {
  readonly peer: Peer
  readonly answer: unknown
}

/**
 * Which nodes there are, and which of them does what. Other modules use this interface; only this module decides.
 *
 * Correctness rests on the rows of the store: a message is settled only while it is pending and at this attempt, and a
 * schedule fires only if it is still at this fire. So a node that acts on an outdated answer of this interface can delay or
 * repeat something, as a crash can, but never lose or invent anything.
 */
export interface Cluster extends Service {
  /** The incarnation of this process; 0 on a server that is alone. */
  readonly incarnation: Incarnation
  /** Whether this server is alone: no other node uses the store, and this one owns everything for good. */
  readonly isSingleNode: boolean
  /** Whether this node may start effects outside the store, such as requests. False if it may have been declared dead. */
  mayAct(): boolean
  /** Whether this node sends the messages of a partition. */
  owns(partition: number): boolean
  /** The partitions of this node; `undefined` on a server that is alone: all, so reads need no condition. */
  readonly owned: readonly number[] | undefined
  /**
   * The partition of a new message. Messages of a flow-control key have the partition of the key, so that one node counts
   * its use. Other messages get a partition of this node, or any partition while it has none.
   */
  partitionFor(accountId: string, flowKey: string | undefined): number
  /** Whether this node is the leader, which alone does schedules, retention, roll-ups and alerts. */
  readonly isLeader: boolean
  /** Whether everything in this process has started, and it is not stopping. */
  readonly takesPart: boolean
  /** Whether this node gives everything up and should get no new work. */
  readonly isDraining: boolean
  /** Calls `listener` whenever this node begins or ends to be the leader. */
  onLeader(listener: (isLeader: boolean) => void): void
  /** Registers the partition holder. Once, before `open`. */
  hold(holder: PartitionHolder): void
  /** Calls `listener` when a node was declared dead or has left: its life is over and will never act again. */
  onNodeGone(listener: (incarnation: Incarnation) => void): void
  /** The other nodes that take part, as far as this one knows. */
  readonly peers: readonly Peer[]
  /** Whether the operator drains this node. It keeps serving clients. */
  readonly isBeingDrained: boolean
  /**
   * Whether an incarnation may still act, read from the store. False if it was declared dead, has left, or never existed.
   */
  isLive(incarnation: Incarnation): Promise<boolean>
  /** Registers the handler of a topic. Before `start`. */
  handle(topic: string, handler: PeerHandler): void
  /**
   * Notifies all other nodes. Resolves when each of them has handled the notification, or was declared
   * dead and can no longer act. Call it after the commit that it is about: nodes that join later read the
   * store. Handlers must be idempotent, because a node may be notified twice. Usually takes 1 to 3 ms; at
   * worst about 7 s, when a node has just died.
   * @throws HomeportError `store_unavailable` when a node does not answer and the store does not either.
   */
  notify(topic: string, payload: unknown): Promise<void>
  /** Notifies the owner of a partition, without waiting. A hint may get lost; a sweep then finds what it was about. */
  hint(partition: number, topic: string, payload: unknown): void
  /** Sends a hint to the leader. */
  hintLeader(topic: string, payload: unknown): void
  /** Asks all other nodes, or one. Nodes that do not answer within a second are left out. */
  ask(topic: string, payload: unknown, of?: Incarnation): Promise<readonly PeerAnswer[]>
  /**
   * Registers a service for streams of bytes of other nodes. Before `start`.
   * @param isServing whether the service accepts streams now. If not, `tunnel` of the other node rejects, and nothing was
   * sent. Default: always.
   */
  serve(service: string, accept: StreamHandler, isServing?: () => boolean): void
  /**
   * Opens a stream of bytes to a service of the node with this name, for a client with this address.
   * @param detail additional information for the service: short, printable ASCII.
   * @throws Error if no such node takes part or it does not answer.
   */
  tunnel(node: string, service: string, ip: string, detail?: string): Promise<Duplex>
  /** Everything in this process has started: from now on the node takes partitions. */
  open(): void
  /**
   * Gives everything up to other nodes, each partition when it has no requests in flight. Resolves when
   * this node owns nothing, or after `graceMs`.
   */
  drain(graceMs: number): Promise<void>
}
