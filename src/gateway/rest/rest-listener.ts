import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ClientMemoryBudget, Clock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { ClientAddresses, LONGEST_HEAD_BYTES, refuseSocket } from '../../http/index.js'
import type { Doorway } from '../client/doorway.js'
import type { Administration, DatabaseDirectory, GatewayLogger, GatewaySettings } from '../deps.js'
import type { Lanes } from '../engine/lanes.js'
import type { Guards } from '../limits/guards.js'
import { LoginWatch } from '../limits/login-watch.js'
import { SyncTokens } from '../replicas/sync-token.js'
import type { EventStream } from './event-stream.js'
import { Exchange, type ExchangeDeps } from './exchange.js'
import { answerHealth, answerPreflight, HttpAnswers } from './http-answers.js'
import { handleRequest, type RestDeps } from './rest-request.js'
import { TokenGrants } from './token-grants.js'

/** What the REST listener is made of. */
export interface RestListenerOptions {
  readonly settings: Pick<GatewaySettings, 'host' | 'restPort' | 'trustedProxies' | 'hosts'>
  readonly directory: Pick<DatabaseDirectory, 'byRestToken' | 'onChange'>
  readonly administration: Administration
  /** How long a client may take for the head of a request. */
  readonly headTimeoutMs: number
  readonly lanes: Lanes
  readonly guards: Guards
  readonly doorway: Doorway
  /** What all clients together may make the process hold. */
  readonly memory: ClientMemoryBudget
  readonly clock: Clock
  readonly logger: GatewayLogger
  readonly version: string
}

const METHODS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'POST', 'PUT'])
const KEEP_ALIVE_TIMEOUT_MS = 75_000
/** A client has this long for its whole request, however slowly it sends. */
const REQUEST_TIMEOUT_MS = 300_000

/** The HTTP listener of the REST data plane; one for all databases, which are told apart by their tokens. */
export class RestListener {
  readonly #options: RestListenerOptions
  readonly #server: Server
  readonly #grants: TokenGrants
  readonly #streams = new Set<EventStream>()
  readonly #exchanges: ExchangeDeps
  readonly #shared: RestDeps
  #stopping = false

  constructor(options: RestListenerOptions) {
    this.#options = options
    const { clock, logger, settings } = options
    const tokens = new SyncTokens(clock.now())
    const addresses = new ClientAddresses(settings.trustedProxies ?? [])
    this.#exchanges = { answers: new HttpAnswers(tokens), tokens, addresses, clock, logger, memory: options.memory }
    this.#grants = new TokenGrants(options)
    this.#shared = {
      options,
      grants: this.#grants,
      streams: this.#streams,
      logins: new LoginWatch(clock),
    }
    this.#server = createServer(
      {
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        noDelay: true,
        maxHeaderSize: LONGEST_HEAD_BYTES,
        headersTimeout: options.headTimeoutMs,
        connectionsCheckingInterval: options.headTimeoutMs / 4,
      },
      (request, response) => this.#onRequest(request, response),
    )
    // Whoever asks before sending a body is told by the answer where its token is wrong.
    this.#server.on('checkContinue', (request, response) => this.#onRequest(request, response))
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseSocket(socket, error.code))
  }

  /** The port it listens on. */
  get port(): number {
    const address: AddressInfo | string | null = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : this.#options.settings.restPort
  }

  /** Resolves when requests are served; rejects with `port_taken`. */
  listen(): Promise<void> {
    const { host, restPort: port } = this.#options.settings
    this.#grants.open()
    return new Promise((resolve, reject) => {
      this.#server.once('error', (cause) => reject(new HomeportError('port_taken', { port }, { cause })))
      this.#server.listen({ host, port }, () => {
        this.#options.doorway.pace(this.#server)
        resolve()
      })
    })
  }

  /** Answers what has been asked, for `graceMs`, and closes. May be called before `listen` and repeatedly. */
  async close(graceMs: number): Promise<void> {
    this.#stopping = true
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.#options.doorway.dismiss(this.#server)
    for (const stream of this.#streams) stream.close()
    this.#server.closeIdleConnections()
    const timer = this.#options.clock.after(graceMs, () => this.#server.closeAllConnections())
    await closed
    this.#grants.close()
    timer.cancel()
  }

  /** The databases have changed: ends streams whose clients may not stay. */
  recheck(): void {
    for (const stream of this.#streams) stream.recheck()
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { method, url = '/' } = request
    if (this.#stopping) response.shouldKeepAlive = false
    const foreign = this.#options.settings.hosts?.refusal(request.headers.host)
    if (foreign) {
      new Exchange(request, response, this.#exchanges).answerError(foreign.status, `ERR ${foreign.message}`)
      return
    }
    if (url === '/health') {
      answerHealth(response, this.#options.version, this.#stopping)
      return
    }
    if (method === 'OPTIONS') {
      answerPreflight(request, response)
      return
    }
    const exchange = new Exchange(request, response, this.#exchanges)
    if (METHODS.has(method)) handleRequest(exchange, this.#shared)
    else exchange.answerError(405, `ERR method ${method} is not allowed. Use GET, HEAD, POST or PUT.`)
  }
}
