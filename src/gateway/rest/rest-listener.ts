import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ClientMemoryBudget, Clock, ConnectionLimiter } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import {
  BACKLOG,
  ClientAddresses,
  closed,
  framingFault,
  isForwarded,
  KEEP_ALIVE_SECONDS,
  MAX_HEAD_BYTES,
  markForwarded,
  PlainConnections,
  paceRequests,
  type Readiness,
  refuseSocket,
} from '../../http/index.js'
import type { Tracer } from '../../telemetry/index.js'
import { listenError } from '../client/listen-error.js'
import type { PacedAcceptor } from '../client/paced-acceptor.js'
import type { Administration, DatabaseDirectory, GatewayLogger, GatewaySettings, OtherNodes } from '../deps.js'
import type { Lanes } from '../engine/lanes.js'
import type { Guards } from '../limits/guards.js'
import { LoginWatch } from '../limits/login-watch.js'
import type { ReadsHere } from '../replicas/reads-here.js'
import { SyncTokens } from '../replicas/sync-token.js'
import { logAccess } from './access-log.js'
import type { EventStream } from './event-stream.js'
import { Exchange, type ExchangeDeps } from './exchange.js'
import { forwardRequest } from './forward-request.js'
import { answerHealth, answerLive, answerPreflight, answerReady, HttpAnswers } from './http-answers.js'
import { splitTarget, type Target } from './parse-commands.js'
import { answerFromReplica } from './replica-request.js'
import type { UnsentBody } from './request-body.js'
import { RestRequest, type RestRequestDeps } from './rest-request.js'
import { type TokenGrant, TokenGrants, tokenOf } from './token-grants.js'
import { traceExchange } from './traced-request.js'

/** The collaborators and settings of the REST listener. */
export interface RestListenerOptions {
  readonly settings: Pick<GatewaySettings, 'host' | 'restPort' | 'trustedProxies' | 'hosts' | 'accessLog'>
  readonly directory: Pick<DatabaseDirectory, 'byRestToken' | 'onChange'>
  readonly administration: Administration
  /** The nodes that serve other databases. Absent on a server that is alone. */
  readonly otherNodes?: OtherNodes | undefined
  /** Time that a client has for the head of a request. */
  readonly headTimeoutMs: number
  readonly lanes: Lanes
  readonly guards: Guards
  readonly acceptor: PacedAcceptor
  /** The memory that all clients together may use. */
  readonly memory: ClientMemoryBudget
  readonly connectionLimiter: ConnectionLimiter
  /** Reads of replicas that this node keeps for other nodes. Absent where it keeps none. */
  readonly reads?: ReadsHere | undefined
  readonly clock: Clock
  readonly logger: GatewayLogger
  readonly version: string
  /** Source of the answer to `/readyz`. Omitted: ready while the listener serves. */
  readonly readiness?: Pick<Readiness, 'reason'> | undefined
  /** Absent while traces are off. */
  readonly tracer?: Tracer | undefined
}

const METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'POST', 'PUT'])
/** Time that a client has for its whole request. */
const REQUEST_TIMEOUT_MS = 300_000

/** The HTTP listener of the REST data plane. It serves all databases; the token of a request names the database. */
export class RestListener {
  readonly #options: RestListenerOptions
  readonly #server: Server
  readonly #plain: PlainConnections
  readonly #grants: TokenGrants
  readonly #streams = new Set<EventStream>()
  readonly #exchangeDeps: ExchangeDeps
  readonly #requestDeps: RestRequestDeps
  /** Connections of other nodes of the region. */
  readonly #near = new WeakSet<Duplex>()
  /** Connections that Node's server does not count, so that `close` has to wait for them itself. */
  readonly #tracked = new Set<Duplex>()
  #stopping = false

  constructor(options: RestListenerOptions) {
    this.#options = options
    const { clock, logger, settings } = options
    const tokens = new SyncTokens(clock.now())
    const addresses = new ClientAddresses(settings.trustedProxies ?? [])
    this.#exchangeDeps = { answers: new HttpAnswers(tokens), tokens, addresses, clock, logger, memory: options.memory }
    this.#grants = new TokenGrants({ ...options, logins: new LoginWatch(clock) })
    this.#requestDeps = {
      lanes: options.lanes,
      administration: options,
      streams: this.#streams,
      startAgain: (exchange, target, unsent) =>
        void this.#startAgain(exchange, target, unsent).catch((error: unknown) => exchange.fail(error)),
    }
    this.#plain = new PlainConnections({
      clock,
      sweepMs: options.headTimeoutMs / 4,
      onOpen: (connection) => {
        options.connectionLimiter.admit(connection)
        this.#track(connection)
      },
      serve: (request, response) => this.#onRequest(request, response),
    })
    this.#server = createServer(
      {
        keepAliveTimeout: 1_000 * KEEP_ALIVE_SECONDS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        noDelay: true,
        maxHeaderSize: MAX_HEAD_BYTES,
        requireHostHeader: false,
        headersTimeout: options.headTimeoutMs,
        connectionsCheckingInterval: options.headTimeoutMs / 4,
      },
      (request, response) => this.#onRequest(request, response),
    )
    // A client that waits for `100 Continue` gets a refusal, such as a wrong token, before it sends its body.
    this.#server.on('checkContinue', (request, response) => this.#onRequest(request, response))
    paceRequests(this.#server)
    this.#server.on('connection', (connection) => options.connectionLimiter.admit(connection))
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseSocket(socket, error.code))
  }

  /** The port on which it listens. */
  get port(): number {
    const address: AddressInfo | string | null = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : this.#options.settings.restPort
  }

  /** Resolves when requests are served. Rejects with the error of `listenError`. */
  listen(): Promise<void> {
    const { host, restPort: port } = this.#options.settings
    this.#grants.open()
    return new Promise((resolve, reject) => {
      this.#server.once('error', (cause) => reject(listenError(port, cause)))
      this.#server.listen({ host, port, backlog: BACKLOG }, () => {
        this.#plain.take(this.#server)
        this.#options.acceptor.pace(this.#server)
        resolve()
      })
    })
  }

  /**
   * Serves a connection over which another node passes a request on.
   * @param ip address of the client.
   * @param as whether the other node passes it to the home, or to the node of its region that keeps the replica.
   */
  accept(connection: Duplex, ip: string, as: 'home' | 'near'): void {
    if (this.#stopping) return void connection.destroy()
    markForwarded(connection, ip)
    if (as === 'near') this.#near.add(connection)
    this.#track(connection)
    this.#server.emit('connection', connection)
  }

  #track(connection: Duplex): void {
    this.#tracked.add(connection)
    connection.once('close', () => this.#tracked.delete(connection))
  }

  /** Finishes active requests for up to `graceMs`, then closes. May be called before `listen`, and repeatedly. */
  async close(graceMs: number): Promise<void> {
    this.#stopping = true
    const ended = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    const tracked = [...this.#tracked].map(closed)
    this.#options.acceptor.forget(this.#server)
    for (const stream of this.#streams) stream.close()
    this.#plain.end()
    this.#server.closeIdleConnections()
    const timer = this.#options.clock.after(graceMs, () => {
      this.#server.closeAllConnections()
      for (const connection of this.#tracked) connection.destroy()
    })
    await Promise.all([ended, ...tracked])
    this.#grants.close()
    timer.cancel()
  }

  /** Call it when databases have changed: closes event streams of clients whose address is no longer allowed. */
  recheck(): void {
    for (const stream of this.#streams) stream.recheck()
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { method, url = '/' } = request
    if (this.#stopping) response.shouldKeepAlive = false
    const problem = framingFault(request)
    if (problem !== undefined) {
      response.shouldKeepAlive = false
      new Exchange(request, response, this.#exchangeDeps).answerError(400, `ERR ${problem}`)
      return
    }
    // The node that passed a request on has checked it against its own names.
    const foreign = isForwarded(request) ? undefined : this.#options.settings.hosts?.refusal(request.headers.host)
    if (foreign) {
      new Exchange(request, response, this.#exchangeDeps).answerError(foreign.status, `ERR ${foreign.message}`)
      return
    }
    if (url === '/health') {
      answerHealth(response, this.#options.version, this.#stopping)
      return
    }
    if (url === '/livez') {
      answerLive(response)
      return
    }
    if (url === '/readyz') {
      void this.#answerReady(response)
      return
    }
    if (method === 'OPTIONS') {
      answerPreflight(request, response)
      return
    }
    const exchange = new Exchange(request, response, this.#exchangeDeps)
    if (this.#options.settings.accessLog) logAccess(exchange, this.#options.logger)
    if (METHODS.has(method)) this.#answer(exchange)
    else exchange.answerError(405, `ERR method ${method} is not allowed. Use GET, HEAD, POST or PUT.`)
  }

  /** Never rejects, because `Readiness.reason` does not. */
  async #answerReady(response: ServerResponse): Promise<void> {
    const reason = this.#stopping ? 'stopping' : await this.#options.readiness?.reason()
    answerReady(response, reason)
  }

  #answer(exchange: Exchange): void {
    try {
      const target = splitTarget(exchange.request.url ?? '/')
      const { tracer } = this.#options
      if (tracer) traceExchange(tracer, exchange, target.path)
      const grant = this.#grants.authenticate(exchange, target)
      if (grant) this.#serve(exchange, grant, target)
      else this.#answerWithout(exchange, target).catch((error: unknown) => exchange.fail(error))
    } catch (error) {
      exchange.fail(error)
    }
  }

  #serve(exchange: Exchange, grant: TokenGrant, target: Target): void {
    this.#options.connectionLimiter.markAuthenticated(exchange.request.socket, grant.access.database.owner)
    new RestRequest(exchange, this.#requestDeps, grant, target).receive()
  }

  /** Answers a request whose token is unknown here: another node may know it, or it is wrong. @throws HomeportError */
  async #answerWithout(exchange: Exchange, target: Target): Promise<void> {
    const { otherNodes } = this.#options
    const { request } = exchange
    const token = otherNodes && tokenOf(request, target)
    if (!otherNodes || token === undefined) return this.#grants.refuse(exchange)
    const moving = otherNodes.whileMoving(token)
    if (moving) {
      await moving
      const grant = this.#grants.authenticate(exchange, target)
      if (grant) return this.#serve(exchange, grant, target)
    }
    const isNear = this.#near.has(request.socket)
    const isToHome = isForwarded(request) && !isNear
    const access = isToHome ? undefined : this.#options.reads?.byToken(token)
    const reads = access && this.#options.reads
    const home = () => otherNodes.byToken(token)
    if (access) this.#options.connectionLimiter.markAuthenticated(request.socket, token)
    if (reads && (await answerFromReplica(exchange, target, { reads, access, token, home }))) return
    if (!isForwarded(request) && (await this.#answerNear(exchange, token))) return
    // A forwarded request is only passed on by a node that has handed the database over. Otherwise two nodes that each
    // consider the other the home would pass it on forever.
    const found = isToHome ? otherNodes.movedTo(token) : await home()
    if (!found) return this.#grants.refuse(exchange)
    this.#options.connectionLimiter.markAuthenticated(request.socket, token)
    // This node may get a replica before the answer arrives, so it notes what the client will have seen.
    await forwardRequest(exchange, found, { onAnswer: () => this.#options.reads?.sawPrimary({ kind: 'token', token }) })
  }

  /**
   * Answers a request from its token on, because the database has moved, or its move was aborted, or it was deleted. The
   * token was valid before, so it does not count as a guess.
   * @throws HomeportError
   */
  async #startAgain(exchange: Exchange, target: Target, unsent: UnsentBody): Promise<void> {
    const { otherNodes } = this.#options
    const token = tokenOf(exchange.request, target) ?? ''
    await otherNodes?.whileMoving(token)
    const grant = this.#grants.authenticate(exchange, target)
    if (grant) return new RestRequest(exchange, this.#requestDeps, grant, target).receive(unsent)
    const found = otherNodes?.movedTo(token) ?? (await otherNodes?.byToken(token))
    if (!found) throw new HomeportError('home_not_ready', {})
    await forwardRequest(exchange, found, { body: unsent === 'unread' ? undefined : unsent })
  }

  /** Passes the request on to the node of this region that keeps the replica. False if none can be reached. */
  async #answerNear(exchange: Exchange, token: string): Promise<boolean> {
    const near = this.#options.reads?.replicaInRegion({ kind: 'token', token })
    if (!near) return false
    this.#options.connectionLimiter.markAuthenticated(exchange.request.socket, token)
    try {
      await forwardRequest(exchange, near.rest)
      return true
    } catch (error) {
      if (isError(error, 'node_unreachable')) return false
      throw error
    }
  }
}
