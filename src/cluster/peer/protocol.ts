/**
 * The protocol of the link between nodes: HTTP/2 over TLS 1.3. Both ends show a certificate of the cluster's authority, and
 * trust no other. `POST /peer/<topic>` with a JSON body is answered with JSON.
 */

/** Version of the wire: nodes with another one refuse each other's messages. */
export const FORMAT = '1'
/** The name in every node's certificate. A node is known by what signed it, not by its address. */
export const PEER_NAME = 'node.homeport.internal'
/** Longest body, bytes, in both directions. */
export const MOST_BODY_BYTES = 4 * 2 ** 20
/** Before the topic in the path of a request. */
export const PATH = '/peer/'
/** Before the service in the path of a stream of bytes: the bodies of request and answer are its two directions. */
export const TUNNEL_PATH = '/tunnel/'
/** A node accepts a stream within this time. */
export const TUNNEL_WITHIN_MS = 3_000
/** Request headers: version of the wire, the incarnation that is meant, and the one that sends. */
export const HEADERS = {
  format: 'homeport-format',
  to: 'homeport-to',
  from: 'homeport-from',
  ip: 'homeport-client',
  detail: 'homeport-detail',
} as const
/** Bytes that a stream may have on its way, and all streams of a connection together: enough for links between regions. */
export const WINDOW_BYTES = { stream: 2 ** 20, connection: 2 ** 24 } as const
/** Memory that one connection may use, megabytes. */
export const MEMORY_MB = 256
/** Streams at a time on one connection. */
export const MOST_STREAMS = 10_000
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
