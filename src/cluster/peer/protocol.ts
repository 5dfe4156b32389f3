/**
 * The protocol of the link between nodes: HTTP/2 over TLS 1.3. Both ends show a certificate of the cluster's authority and
 * trust only that authority. `POST /peer/<topic>` has a JSON body and a JSON answer.
 */

/** Version of the protocol. Nodes with different versions refuse each other's messages. */
export const FORMAT = '1'
/** The name in every node's certificate. A node is authenticated by its signer, not by its address. */
export const PEER_NAME = 'node.homeport.internal'
/** Longest body, bytes, in both directions. */
export const MAX_BODY_BYTES = 4 * 2 ** 20
/** Most messages of one connection that a node works on at a time. */
export const MAX_MESSAGES = 1_000
/** Most bytes of messages and answers that a node holds for one connection: the largest 8 at a time. */
export const MAX_HELD_BYTES = 8 * MAX_BODY_BYTES
/** A node reads an answer within this time. */
export const READ_WITHIN_MS = 15_000
/** Path of a message, before its topic. */
export const PATH = '/peer/'
/** Path of a stream of bytes, before its service. The bodies of request and answer are the two directions of the stream. */
export const TUNNEL_PATH = '/tunnel/'
/** A node accepts a stream within this time. */
export const TUNNEL_WITHIN_MS = 3_000
/**
 * Request headers: protocol version, receiving incarnation, sending incarnation; for streams the client's IP address and
 * the detail.
 */
export const HEADERS = {
  format: 'homeport-format',
  to: 'homeport-to',
  from: 'homeport-from',
  ip: 'homeport-client',
  detail: 'homeport-detail',
} as const
/** Most unacknowledged bytes of a stream, and of all streams of a connection together: enough for links between regions. */
export const WINDOW_BYTES = { stream: 2 ** 20, connection: 2 ** 24 } as const
/** Memory that one connection may use, megabytes. */
export const MEMORY_MB = 256
/** Most concurrent streams of one connection. */
export const MAX_STREAMS = 10_000
/** Status of an answer. */
export const STATUS = {
  ok: 200,
  malformed: 400,
  otherLife: 421,
  otherFormat: 426,
  tooLarge: 413,
  failed: 500,
  notServing: 503,
} as const
