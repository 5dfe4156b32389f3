import type { Duplex } from 'node:stream'
import type { Service } from '../base/index.js'
import type { Incarnation } from './types.js'

/** Where a node is reached and which life of it is meant. */
export interface PeerAddress {
  readonly incarnation: Incarnation
  /** Host and port of its peer link. */
  readonly advertise: string
}

/** What arrives from another node. */
export interface PeerRequest {
  readonly topic: string
  /** JSON, not checked yet. */
  readonly payload: unknown
  readonly from: Incarnation
}

/** Carries messages between nodes: HTTP/2 over mutual TLS. Who knows the store is a member, nobody else. */
export interface PeerLink extends Service {
  /** The port it listens on; known after `start`. */
  readonly port: number
  /**
   * Sends one message to a node and resolves with its answer, JSON. A node of another life answers nothing.
   * @throws Error when it does not answer in time, or its handler failed.
   */
  request(peer: PeerAddress, topic: string, payload: unknown, timeoutMs: number): Promise<unknown>
  /**
   * Opens a stream of bytes to a node. A node of another life accepts none.
   * @throws Error when the node does not accept it in time.
   */
  tunnel(peer: PeerAddress, head: TunnelHead): Promise<Duplex>
}

/** Where a stream of bytes leads. */
export interface TunnelHead {
  /** What serves it at the other node. */
  readonly service: string
  /** Address of the client whose bytes these are. */
  readonly ip: string
  /** What the service needs to know besides. Default: nothing. */
  readonly detail?: string
}

/** Answers what serves a stream of bytes of another node; undefined: nothing does now, so the stream is refused. */
export type OnTunnel = (head: TunnelHead) => ((stream: Duplex) => void) | undefined

/** Answers a request of another node. A rejection is passed to it as a failure without details. */
export type OnPeerRequest = (request: PeerRequest) => Promise<unknown>
