import type { Duplex } from 'node:stream'
import type { Service } from '../base/index.js'
import type { Incarnation } from './types.js'

/** The address of a node, and which of its lives is meant. */
export interface PeerAddress {
  readonly incarnation: Incarnation
  /** Host and port of its peer link. */
  readonly advertise: string
}

/** A message from another node. */
export interface PeerRequest {
  readonly topic: string
  /** Parsed JSON, not validated yet. */
  readonly payload: unknown
  readonly from: Incarnation
}

/** Carries messages between nodes: HTTP/2 over mutual TLS. Only programs that can read the store can be members. */
export interface PeerLink extends Service {
  /** The port it listens on; known after `start`. */
  readonly port: number
  /**
   * Sends one message to a node and resolves with its answer, parsed JSON. Another incarnation of the node refuses the
   * message.
   * @throws Error if the node does not answer in time, refuses the message, or its handler fails.
   */
  request(peer: PeerAddress, topic: string, payload: unknown, timeoutMs: number): Promise<unknown>
  /**
   * Opens a stream of bytes to a node. Another incarnation of the node refuses it.
   * @throws Error if the node does not accept the stream in time.
   */
  tunnel(peer: PeerAddress, head: TunnelHead): Promise<Duplex>
}

/** Where a stream of bytes leads. */
export interface TunnelHead {
  /** Name of the service at the other node. */
  readonly service: string
  /** IP address of the client whose bytes these are. */
  readonly ip: string
  /** Additional information for the service. Default: none. */
  readonly detail?: string
}

/** Returns the handler for a stream of bytes from another node; `undefined`: no service accepts it now, so it is refused. */
export type OnTunnel = (head: TunnelHead) => ((stream: Duplex) => void) | undefined

/** Answers a request of another node. If it rejects, the other node gets a failure without details. */
export type OnPeerRequest = (request: PeerRequest) => Promise<unknown>
