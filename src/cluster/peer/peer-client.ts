import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2'
import type { ClientMemoryBudget, Clock, Timer } from '../../base/index.js'
import type { Logger } from '../../telemetry/index.js'
import type { PeerAddress, TunnelHead } from '../peer-link.js'
import type { Incarnation } from '../types.js'
import { type ByteStream, countedStream } from './byte-stream.js'
import type { PeerCredentials } from './credentials.js'
import { type HeldMessage, HeldMessages } from './held-messages.js'
import {
  FORMAT,
  HEADERS,
  MAX_BODY_BYTES,
  MAX_STREAMS,
  MEMORY_MB,
  PATH,
  PEER_NAME,
  STATUS,
  TUNNEL_PATH,
  TUNNEL_WITHIN_MS,
  WINDOW_BYTES,
} from './protocol.js'

/** How often a connection is pinged, and after how long without an answer it is given up. */
const PING_EVERY_MS = 500
const PING_TIMEOUT_MS = 1_500
/** Exponential backoff after failed connections. */
const BACKOFF_MS = { first: 50, most: 1_000 }
const CONNECT_TIMEOUT_MS = 2_000
/** A connection is closed when nothing was sent over it for this long. */
const IDLE_MS = 120_000

/** What the sending end is built from. */
export interface PeerClientDeps {
  readonly clock: Clock
  readonly credentials: PeerCredentials
  readonly incarnation: () => Incarnation
  readonly memory: ClientMemoryBudget
  readonly logger: Pick<Logger, 'warn'>
}

/** What a connection carries. */
type Cargo = 'messages' | 'streams'

/**
 * The sending end of the link. It has two connections to each node, each opened when it is first
 * needed: one for messages, on which the guarantees of the cluster depend, and one for the streams
 * of clients, which may be many and large.
 */
export class PeerClient {
  readonly #deps: PeerClientDeps
  readonly #connections = new Map<string, Connection>()
  readonly #messages = new HeldMessages()
  #isClosed = false

  constructor(deps: PeerClientDeps) {
    this.#deps = deps
  }

  /** See `PeerLink.request`. */
  async request({ advertise, incarnation }: PeerAddress, topic: string, payload: unknown, timeoutMs: number) {
    if (this.#isClosed) throw new Error('the link between nodes is closed')
    const body = JSON.stringify(payload ?? null)
    if (body.length > MAX_BODY_BYTES) throw new Error(`a message to a node is too large: ${body.length} characters`)
    const headers = { ...this.#headers(PATH + topic, incarnation), 'content-type': 'application/json' }
    return this.#to(advertise, 'messages').ask(headers, body, timeoutMs)
  }

  /** See `PeerLink.tunnel`. */
  async tunnel({ advertise, incarnation }: PeerAddress, head: TunnelHead): Promise<ByteStream> {
    if (this.#isClosed) throw new Error('the link between nodes is closed')
    const { service, ip, detail = '' } = head
    const about = { [HEADERS.ip]: ip, ...(detail !== '' && { [HEADERS.detail]: detail }) }
    const headers = { ...this.#headers(TUNNEL_PATH + service, incarnation), ...about }
    return this.#to(advertise, 'streams').tunnel(headers, head)
  }

  #headers(path: string, to: Incarnation): IncomingHttpHeaders {
    return {
      ':method': 'POST',
      ':path': path,
      [HEADERS.format]: FORMAT,
      [HEADERS.to]: String(to),
      [HEADERS.from]: String(this.#deps.incarnation()),
    }
  }

  #to(address: string, cargo: Cargo): Connection {
    const key = `${cargo} ${address}`
    const known = this.#connections.get(key)
    if (known) return known
    const connection = new Connection(this.#deps, address, this.#messages, () => this.#connections.delete(key))
    this.#connections.set(key, connection)
    return connection
  }

  close(): void {
    this.#isClosed = true
    for (const connection of this.#connections.values()) connection.end()
    this.#connections.clear()
  }
}

/** A connection to one node. */
class Connection {
  readonly #deps: PeerClientDeps
  readonly #address: string
  readonly #messages: HeldMessages
  readonly #onIdle: () => void
  #session: ClientHttp2Session | undefined
  #ping: Timer | undefined
  #failures = 0
  #retryAtMs = 0
  #inFlight = 0
  #usedAtMs = performance.now()

  constructor(deps: PeerClientDeps, address: string, messages: HeldMessages, onIdle: () => void) {
    this.#deps = deps
    this.#address = address
    this.#messages = messages
    this.#onIdle = onIdle
  }

  async ask(headers: IncomingHttpHeaders, body: string, timeoutMs: number): Promise<unknown> {
    const tooMany = (): Error => new Error(`too many messages to the node at ${this.#address}`)
    const message = this.#messages.begin(this)
    if (!message) throw tooMany()
    this.#inFlight++
    try {
      if (!message.hold(body.length)) throw tooMany()
      const session = this.#opened()
      this.#usedAtMs = performance.now()
      return await exchange(session.request(headers), { clock: this.#deps.clock, body, timeoutMs, message })
    } finally {
      this.#inFlight--
      message.end()
    }
  }

  async tunnel(headers: IncomingHttpHeaders, head: TunnelHead): Promise<ByteStream> {
    if (this.#inFlight >= MAX_STREAMS) throw new Error(`too many requests to the node at ${this.#address}`)
    const stream = this.#opened().request(headers)
    this.#usedAtMs = performance.now()
    this.#inFlight++
    stream.once('close', () => this.#inFlight--)
    await accepted(this.#deps.clock, stream)
    return countedStream(stream, head, this.#deps)
  }

  /** The current session, or a new one. */
  #opened(): ClientHttp2Session {
    if (this.#session && !this.#session.closed && !this.#session.destroyed) return this.#session
    if (performance.now() < this.#retryAtMs) throw new Error(`the node at ${this.#address} cannot be reached`)
    const { own, authority } = this.#deps.credentials
    const session = connect(`https://${this.#address}`, {
      key: own.current.key,
      cert: own.current.certificate,
      ca: authority,
      servername: PEER_NAME,
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['h2'],
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES.stream },
      maxSessionMemory: MEMORY_MB,
    })
    this.#session = session
    const late = this.#deps.clock.after(CONNECT_TIMEOUT_MS, () => session.destroy(new Error('no connection in time')))
    session.once('connect', () => {
      late.cancel()
      // Node reports the connection a tick later, and the session may have been given up by then.
      if (session.destroyed) return
      session.setLocalWindowSize(WINDOW_BYTES.connection)
      this.#failures = 0
      this.#pingLater(session)
    })
    session.on('error', () => undefined)
    session.once('close', () => {
      late.cancel()
      if (this.#session !== session) return
      this.#session = undefined
      this.#ping?.cancel()
      const waitMs = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** this.#failures++)
      this.#retryAtMs = performance.now() + waitMs
    })
    return session
  }

  /** Pings the node again and again: only a ping notices a network that silently drops all packets. */
  #pingLater(session: ClientHttp2Session): void {
    this.#ping = this.#deps.clock.after(PING_EVERY_MS, () => {
      if (session.destroyed || session.closed) return
      if (this.#inFlight === 0 && performance.now() - this.#usedAtMs > IDLE_MS) return this.#forget()
      const awaiting = this.#awaitSign(session)
      session.ping((error) => {
        awaiting.cancel()
        if (error === null) this.#pingLater(session)
      })
    })
  }

  /**
   * Ends the session when no byte arrives within the timeout. Any byte shows that the node lives, because the answer to
   * a ping queues behind all data that is already on its way.
   */
  #awaitSign(session: ClientHttp2Session): Timer {
    const { clock } = this.#deps
    let heard = session.socket.bytesRead
    const look = (): Timer =>
      clock.after(PING_TIMEOUT_MS, () => {
        if (session.destroyed) return
        const { bytesRead } = session.socket
        if (bytesRead === heard) return session.destroy(new Error('the node does not answer'))
        heard = bytesRead
        late = look()
      })
    let late = look()
    return { cancel: () => late.cancel() }
  }

  #forget(): void {
    this.end()
    this.#onIdle()
  }

  end(): void {
    this.#ping?.cancel()
    this.#session?.destroy()
  }
}

/** Resolves when the other node has accepted a stream. */
function accepted(clock: Clock, stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = clock.after(TUNNEL_WITHIN_MS, () => stream.destroy(new Error('the node does not answer')))
    stream.once('close', () => late.cancel())
    stream.on('error', reject)
    stream.once('close', () => reject(new Error('the connection to the node was lost')))
    stream.once('response', (headers) => {
      late.cancel()
      if (headers[':status'] === STATUS.ok) return resolve()
      reject(new Error(`the node answered ${headers[':status']}`))
      stream.destroy()
    })
  })
}

interface Exchange {
  readonly clock: Clock
  readonly body: string
  readonly timeoutMs: number
  readonly message: HeldMessage
}

/** Sends one request and reads its answer. */
function exchange(stream: ClientHttp2Stream, { clock, body, timeoutMs, message }: Exchange): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    let status = 0
    const late = clock.after(timeoutMs, () => stream.destroy(new Error(`no answer within ${timeoutMs} ms`)))
    const fail = (error: Error): void => {
      late.cancel()
      reject(error)
    }
    stream.once('response', (headers) => {
      status = headers[':status'] ?? 0
    })
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_BODY_BYTES) stream.destroy(new Error('the answer is too large'))
      else if (!message.hold(chunk.length)) stream.destroy(new Error('the node answers too much at a time'))
      else chunks.push(chunk)
    })
    stream.once('error', fail)
    stream.once('close', () => fail(new Error('the connection to the node was lost')))
    stream.once('end', () => {
      if (status !== STATUS.ok) return fail(new Error(`the node answered ${status}`))
      late.cancel()
      try {
        resolve(JSON.parse(Buffer.concat(chunks).toString('utf8')))
      } catch (error) {
        reject(error as Error)
      }
    })
    stream.end(body)
  })
}
