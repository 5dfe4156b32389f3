import {
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import { type ClientMemoryBudget, type Clock, ConnectionLimiter, type Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Logger } from '../../telemetry/index.js'
import type { OnPeerRequest, OnTunnel, PeerRequest } from '../peer-link.js'
import type { Incarnation } from '../types.js'
import { countedStream } from './byte-stream.js'
import type { PeerCredentials } from './credentials.js'
import { type HeldMessage, HeldMessages } from './held-messages.js'
import {
  FORMAT,
  HEADERS,
  MAX_BODY_BYTES,
  MAX_STREAMS,
  MEMORY_MB,
  PATH,
  READ_WITHIN_MS,
  STATUS,
  TUNNEL_PATH,
  WINDOW_BYTES,
} from './protocol.js'

/** Most unfinished handshakes, and the longest time of each, which limit what unauthenticated clients can use. */
const MAX_HANDSHAKES = 64
const HANDSHAKE_TIMEOUT_MS = 3_000
/** 512 connections of nodes, and the unfinished handshakes. */
const MAX_CONNECTIONS = 512 + MAX_HANDSHAKES
const BODY_TIMEOUT_MS = 10_000
/** How often connections are checked for silence. */
const LOOK_EVERY_MS = 10_000
/** After this many checks without a new byte, the other node is considered gone. */
const MAX_SILENT_LOOKS = 3

/** What was received over a connection so far. */
interface Heard {
  readonly bytes: number
  readonly silentLooks: number
}

/** What the server of the link is built from. */
export interface PeerServerDeps {
  readonly host: string
  readonly port: number
  readonly clock: Clock
  readonly credentials: PeerCredentials
  readonly logger: Pick<Logger, 'warn' | 'error'>
  /** The incarnation of this node. Messages for another incarnation are refused. */
  readonly incarnation: () => Incarnation
  readonly onRequest: OnPeerRequest
  readonly memory: ClientMemoryBudget
  readonly onTunnel?: OnTunnel
}

/**
 * The listening end of the link: answers the messages of other nodes. The other end pings each connection regularly. So
 * a silent connection is ended: its machine has lost power or network without closing it.
 */
export class PeerServer {
  readonly #deps: PeerServerDeps
  readonly #server: Http2SecureServer
  readonly #sockets = new Set<Socket>()
  readonly #sessions = new Map<ServerHttp2Session, Heard>()
  readonly #messages = new HeldMessages()
  /** Limits connections without a certificate. It closes the oldest: a node shows its certificate at once. */
  readonly #limiter: ConnectionLimiter
  #unsubscribe: () => void = () => undefined
  #look: Timer | undefined

  constructor(deps: PeerServerDeps) {
    this.#deps = deps
    this.#limiter = new ConnectionLimiter({
      most: MAX_HANDSHAKES,
      onUnauthenticatedClosed: (connections) => deps.logger.warn('peer_strangers_closed', { connections }),
    })
    this.#server = createSecureServer({
      ...tlsOf(deps.credentials),
      requestCert: true,
      rejectUnauthorized: true,
      ALPNProtocols: ['h2'],
      allowHTTP1: false,
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      settings: { maxConcurrentStreams: MAX_STREAMS, enablePush: false, initialWindowSize: WINDOW_BYTES.stream },
      maxSessionMemory: MEMORY_MB,
    })
    this.#server.on('session', (session) => this.#greet(session))
    this.#server.maxConnections = MAX_CONNECTIONS
    this.#server.on('connection', (socket: Socket) => this.#admit(socket))
    this.#server.on('secureConnection', (socket) => this.#limiter.markAuthenticated(socket))
    this.#server.on('stream', (stream, headers) => void this.#serve(stream, headers))
    for (const event of ['sessionError', 'tlsClientError'] as const) this.#server.on(event, () => undefined)
  }

  get port(): number {
    const address = this.#server.address() as AddressInfo | null
    return address?.port ?? this.#deps.port
  }

  /** @throws HomeportError `port_taken`. */
  async listen(): Promise<void> {
    const { host, port, credentials } = this.#deps
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) =>
        reject(error.code === 'EADDRINUSE' ? new HomeportError('port_taken', { port }) : error),
      )
      // Not shared between the workers of a Node cluster: each process of a machine has its own peer port.
      this.#server.listen({ host, port, exclusive: true }, resolve)
    })
    this.#server.on('error', (error) => this.#deps.logger.error('peer_listener_failed', { error }))
    this.#unsubscribe = credentials.own.onChange(() => this.#server.setSecureContext(tlsOf(credentials)))
    this.#lookLater()
  }

  #greet(session: ServerHttp2Session): void {
    if (session.destroyed) return
    session.setLocalWindowSize(WINDOW_BYTES.connection)
    this.#sessions.set(session, { bytes: 0, silentLooks: 0 })
    session.once('close', () => this.#sessions.delete(session))
  }

  #lookLater(): void {
    this.#look = this.#deps.clock.after(LOOK_EVERY_MS, () => {
      for (const [session, heard] of this.#sessions) {
        const { bytesRead: bytes } = session.socket
        const silentLooks = bytes === heard.bytes ? heard.silentLooks + 1 : 0
        if (silentLooks >= MAX_SILENT_LOOKS) session.destroy(new Error('the node does not answer'))
        else this.#sessions.set(session, { bytes, silentLooks })
      }
      this.#lookLater()
    })
  }

  /** Ends all connections. */
  close(): Promise<void> {
    this.#unsubscribe()
    this.#look?.cancel()
    if (!this.#server.listening) return Promise.resolve()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      for (const socket of this.#sockets) socket.destroy()
    })
  }

  #admit(socket: Socket): void {
    this.#limiter.admit(socket)
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** Never rejects. */
  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on('error', () => undefined)
    const late = this.#deps.clock.after(BODY_TIMEOUT_MS, () => stream.destroy())
    stream.once('close', () => late.cancel())
    const wrong = this.#wrong(headers)
    if (wrong !== undefined) return end(stream, wrong)
    const path = String(headers[':path'])
    if (path.startsWith(TUNNEL_PATH)) {
      late.cancel()
      const [ip, detail] = [HEADERS.ip, HEADERS.detail].map((name) => String(headers[name] ?? ''))
      const head = { service: path.slice(TUNNEL_PATH.length), ip: ip ?? '', detail: detail ?? '' }
      const serve = this.#deps.onTunnel?.(head)
      if (!serve) return end(stream, STATUS.notServing)
      stream.respond({ ':status': STATUS.ok })
      return serve(countedStream(stream, head, this.#deps))
    }
    const message = stream.session && this.#messages.begin(stream.session)
    if (!message) return end(stream, STATUS.notServing)
    try {
      const body = await bodyOf(stream, message)
      late.cancel()
      if (body === 'too large') return end(stream, STATUS.tooLarge)
      await this.#answer(stream, requestOf(headers, body), message)
    } finally {
      message.end()
    }
  }

  /** Resolves when the other node has read the answer, or does not get it. */
  async #answer(stream: ServerHttp2Stream, request: PeerRequest | undefined, message: HeldMessage): Promise<void> {
    if (!request) return end(stream, STATUS.malformed)
    try {
      const answer = JSON.stringify((await this.#deps.onRequest(request)) ?? null)
      if (answer.length > MAX_BODY_BYTES) end(stream, STATUS.tooLarge)
      else if (message.hold(answer.length)) end(stream, STATUS.ok, answer)
      else end(stream, STATUS.notServing)
    } catch (error) {
      this.#deps.logger.warn('peer_request_failed', { error, topic: request.topic })
      end(stream, STATUS.failed)
    }
    if (stream.destroyed) return
    const late = this.#deps.clock.after(READ_WITHIN_MS, () => stream.destroy())
    await new Promise<void>((resolve) => stream.once('close', resolve))
    late.cancel()
  }

  /** The error status for a request that is malformed or not for this node; `undefined` if it is acceptable. */
  #wrong(headers: IncomingHttpHeaders): number | undefined {
    const path = headers[':path'] ?? ''
    if (headers[':method'] !== 'POST') return STATUS.malformed
    if (!path.startsWith(PATH) && !path.startsWith(TUNNEL_PATH)) return STATUS.malformed
    if (headers[HEADERS.format] !== FORMAT) return STATUS.otherFormat
    if (Number(headers[HEADERS.to]) !== this.#deps.incarnation()) return STATUS.otherLife
    if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) return STATUS.tooLarge
    return undefined
  }
}

/** All settings, also for a new certificate: Node resets those that are missing, such as the lowest version. */
function tlsOf({ own, authority }: PeerCredentials): SecureContextOptions {
  return { key: own.current.key, cert: own.current.certificate, ca: authority, minVersion: 'TLSv1.3' }
}

function end(stream: ServerHttp2Stream, status: number, body = ''): void {
  if (stream.destroyed || stream.headersSent) return
  stream.respond({ ':status': status })
  stream.end(status === STATUS.ok ? body : '')
}

/** Undefined when the other node has aborted the request, or must not send so much at a time. */
async function bodyOf(stream: ServerHttp2Stream, message: HeldMessage): Promise<string | 'too large' | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of stream) {
      bytes += (chunk as Buffer).length
      if (bytes > MAX_BODY_BYTES) return 'too large'
      if (!message.hold((chunk as Buffer).length)) return undefined
      chunks.push(chunk as Buffer)
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks).toString('utf8')
}

function requestOf(headers: IncomingHttpHeaders, body: string | undefined): PeerRequest | undefined {
  const from = Number(headers[HEADERS.from])
  if (body === undefined || !Number.isSafeInteger(from)) return undefined
  try {
    const payload: unknown = JSON.parse(body)
    return { topic: String(headers[':path']).slice(PATH.length), payload, from }
  } catch {
    return undefined
  }
}
