import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import {
  ClientMemoryBudget,
  ConnectionLimiter,
  codeOf,
  OwnerConcurrency,
  randomSecret,
  type Service,
  systemClock,
} from '../base/index.js'
import { HomeportError, isError } from '../contract/errors/errors.js'
import { largeAtOnce } from './body.js'
import { arrivalOf, setArrival } from './caller.js'
import { ClientAddresses } from './client-address.js'
import { BACKLOG, Connections } from './connections.js'
import { DocsPage } from './docs-page.js'
import { isForwarded, markForwarded } from './forwarding.js'
import { framingFault } from './framing.js'
import { HeavyRequests } from './heavy-requests.js'
import type { HttpSettings } from './http-settings.js'
import { openApi } from './openapi.js'
import { paceRequests } from './paced-requests.js'
import { Pipeline, send } from './pipeline.js'
import { PlainConnections } from './plain/plain-connections.js'
import { KEEP_ALIVE_SECONDS } from './plain/plain-messages.js'
import { readyAnswer } from './readiness.js'
import { MAX_HEAD_BYTES, refuseSocket } from './refuse-socket.js'
import { REQUEST_ID_HEADER, requestIdOf } from './request-id.js'
import type { Route } from './route.js'
import { type PathPattern, parsePath } from './route.js'
import { challengeFor } from './safe-headers.js'
import { JSON_TYPE } from './send.js'

/** Longest path parameter, characters; the router's default is 100. */
const MAX_PARAMETER_LENGTH = 2_048
const RETRY_AFTER_SECONDS = '1'
const STOP_GRACE_MS = 10_000
const BODY_TIMEOUT_MS = 300_000
/** Time for the rest of a body that arrives after the request was answered. */
const LEFTOVER_TIMEOUT_MS = 5_000
/** Interval of the search for idle connections. */
const SWEEP_MS = 5_000
/** Methods with a request body. */
const METHODS_WITH_BODY = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** Explanations of the router's errors, by their codes. */
const UNROUTABLE: ReadonlyMap<string, string> = new Map([
  ['FST_ERR_BAD_URL', 'The path of the request has a % that is not followed by two hexadecimal digits.'],
  [
    'FST_ERR_MAX_PARAM_LENGTH',
    `The path of the request has a part of more than ${MAX_PARAMETER_LENGTH} characters. No id or name is that long.`,
  ],
])

type RawRest = NonNullable<PathPattern['rest']>

interface Mounted {
  readonly route: Route
  readonly bodyLimitBytes: number
  readonly path: PathPattern
}

/** An HTTP listener for declared endpoints, with `/health`, `/openapi.json` and `/docs`. */
export class HttpServer implements Service {
  readonly name: string
  readonly #settings: HttpSettings
  readonly #mounted: readonly Mounted[]
  /** Paths that end in a raw rest, by method: with another method, the same path may have parameters. */
  readonly #withRest: ReadonlyMap<string, readonly RawRest[]>
  readonly #connections: Connections
  readonly #memory: ClientMemoryBudget
  readonly #large: OwnerConcurrency
  readonly #connectionLimiter: ConnectionLimiter
  readonly #heavy: HeavyRequests
  readonly #addresses: ClientAddresses
  readonly #app: FastifyInstance
  readonly #plain: PlainConnections
  #phase: 'starting' | 'serving' | 'stopping' = 'starting'

  constructor(settings: HttpSettings) {
    this.name = `${settings.service} API`
    this.#settings = settings
    this.#memory = settings.memory ?? new ClientMemoryBudget()
    this.#connectionLimiter = settings.connectionLimiter ?? new ConnectionLimiter()
    this.#heavy = settings.heavy ?? new HeavyRequests()
    this.#mounted = [settings, settings.guests ?? { routes: [], bodyLimitBytes: 0 }].flatMap(
      ({ routes, bodyLimitBytes }) =>
        routes.map((route) => ({ route, bodyLimitBytes, path: parsePath(route.endpoint.path) })),
    )
    const limitBytes = Math.max(settings.bodyLimitBytes, settings.guests?.bodyLimitBytes ?? 0)
    this.#large = new OwnerConcurrency(largeAtOnce(this.#memory, limitBytes))
    this.#withRest = rawRests(this.#mounted)
    this.#addresses = new ClientAddresses(settings.trustedProxies ?? [])
    this.#connections = new Connections(Math.min(LEFTOVER_TIMEOUT_MS, settings.bodyTimeoutMs ?? BODY_TIMEOUT_MS))
    this.#app = fastify({
      routerOptions: { maxParamLength: MAX_PARAMETER_LENGTH },
      // Fastify passes Node's request to this hook, under a narrower type.
      rewriteUrl: (request) => this.#arrive(request as IncomingMessage),
      frameworkErrors: (error, _request, response) => this.#renderError(error, response),
      clientErrorHandler: (error, socket) => refuseSocket(socket, error.code),
      http: { maxHeaderSize: MAX_HEAD_BYTES, requireHostHeader: false },
      keepAliveTimeout: 1_000 * KEEP_ALIVE_SECONDS,
      forceCloseConnections: 'idle',
    })
    this.#plain = new PlainConnections({
      clock: systemClock,
      sweepMs: SWEEP_MS,
      onOpen: (connection) => {
        this.#connectionLimiter.admit(connection)
        this.#connections.add(connection)
      },
      serve: (request, response) => void this.#app.server.emit('request', request, response),
    })
    this.#prepare()
  }

  async start(): Promise<void> {
    await this.#app.listen({ host: this.#settings.host, port: this.#settings.port, backlog: BACKLOG })
    this.#plain.take(this.#app.server)
    this.#phase = 'serving'
  }

  /** Lets requests in flight finish within the grace period; new ones get 503. */
  async stop(graceMs = this.#settings.stopGraceMs ?? STOP_GRACE_MS): Promise<void> {
    this.#phase = 'stopping'
    // An incomplete request has not been accepted, and its client may never complete it.
    this.#connections.endIncomplete()
    const timer = systemClock.after(graceMs, () => this.#app.server.closeAllConnections())
    try {
      await Promise.all([this.#app.close(), this.#connections.endUnused()])
      // The server does not wait for connections of other nodes.
      await this.#connections.closed()
    } finally {
      timer.cancel()
    }
  }

  /** Whether the listener accepts connections. */
  get isServing(): boolean {
    return this.#phase === 'serving'
  }

  /** Serves a connection over which another node passes a request on. @param ip address of the client. */
  accept(connection: Duplex, ip: string): void {
    if (!this.isServing) return void connection.destroy()
    markForwarded(connection, ip)
    this.#app.server.emit('connection', connection)
  }

  /** The port it listens on. */
  get port(): number {
    const address: AddressInfo | string | null = this.#app.server.address()
    return typeof address === 'object' && address !== null ? address.port : this.#settings.port
  }

  /** Stores the arrival of a request and returns a target that the router can match. */
  #arrive(request: IncomingMessage): string {
    this.#connections.note(request)
    const target = request.url ?? '/'
    const ip = this.#addresses.of(request) ?? ''
    const requestId = requestIdOf(request.headers)
    const found = this.#restOf(request.method ?? '', target)
    setArrival(request, {
      target,
      rest: found?.rest,
      ip,
      requestId,
      memory: this.#memory,
      caller: undefined,
      answerBytes: undefined,
    })
    return found?.routerTarget ?? target
  }

  /** The raw rest of a target, for a path that ends in one. */
  #restOf(method: string, target: string): ReturnType<RawRest['find']> {
    for (const path of this.#withRest.get(method) ?? []) {
      const found = path.find(target)
      if (found !== undefined) return found
    }
    return undefined
  }

  #prepare(): void {
    this.#connections.follow(this.#app.server)
    paceRequests(this.#app.server)
    this.#app.server.on('connection', (connection) => this.#connectionLimiter.admit(connection))
    this.#app.addHook('onRequest', (request, response, done) => done(this.#refusal(request, response)))
    // The pipeline reads bodies itself, of any content type, after it has checked the credentials.
    for (const method of METHODS_WITH_BODY) this.#app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
    // The handlers return nothing: for a returned reply, the framework would wait for the end of each response.
    this.#app.setErrorHandler((error, _request, response) => void this.#renderError(error, response))
    this.#app.setNotFoundHandler((request, response) => void this.#answerUnknown(request, response))
    this.#reportAnswers()
    for (const mounted of this.#mounted) this.#mount(mounted)
    this.#mountPages()
    this.#mountProbes()
  }

  /** The error for a request that no operation may get. */
  #refusal({ raw }: FastifyRequest, response: FastifyReply): HomeportError | undefined {
    const problem = framingFault(raw)
    if (problem !== undefined) {
      response.header('connection', 'close')
      return new HomeportError('invalid_request', { problem })
    }
    // The node that passed a request on has checked it against its own names.
    return isForwarded(raw) ? undefined : this.#settings.hosts?.refusal(raw.headers.host)
  }

  #reportAnswers(): void {
    const { onAnswered } = this.#settings
    if (!onAnswered) return
    this.#app.addHook('onResponse', (request, response, done) => {
      const { requestId, caller, answerBytes } = arrivalOf(request.raw)
      const { method, routeOptions } = request
      const { statusCode: status, elapsedTime: durationMs } = response
      const bytes = answerBytes ?? lengthOf(response)
      const accountId = caller?.accountId
      const answered = { requestId, method, path: routeOptions.url, status, durationMs, bytes, accountId }
      onAnswered(answered, request.headers)
      done()
    })
  }

  /** `/livez`: the process answers. `/readyz`: the server can serve writes now. */
  #mountProbes(): void {
    const { service, readiness } = this.#settings
    this.#app.get('/livez', (_request, response) => send(response, 200, { status: 'alive', service }))
    this.#app.get('/readyz', async (_request, response) => {
      const reason = this.#phase === 'serving' ? await readiness?.reason() : this.#phase
      const { status, body } = readyAnswer(service, reason)
      send(response, status, body)
    })
  }

  #mount({ route, path, bodyLimitBytes }: Mounted): void {
    const { authenticator, sessions } = this.#settings
    const authentication = { authenticator, sessions }
    const { body } = route.endpoint
    const own = body.kind === 'raw' ? (body.maxBytes ?? bodyLimitBytes) : bodyLimitBytes
    const bodyLimits = { bytes: Math.min(own, bodyLimitBytes), ms: this.#settings.bodyTimeoutMs ?? BODY_TIMEOUT_MS }
    const pipeline = new Pipeline({
      route,
      restName: path.rest?.name,
      authentication,
      bodyLimits,
      memory: this.#memory,
      large: this.#large,
      connectionLimiter: this.#connectionLimiter,
      heavy: this.#heavy,
      onForward: this.#settings.onForward,
    })
    this.#app.route({
      method: route.endpoint.method,
      url: path.routerPath,
      onRequest: (request, _response, done) => {
        const refusal = pipeline.refusal(request)
        if (refusal instanceof Promise) refusal.then(done, done)
        else done(refusal)
      },
      handler: (request, response) => pipeline.serve(request, response),
    })
  }

  #mountPages(): void {
    const { service, version, publicUrl, routes, problems } = this.#settings
    const endpoints = routes.map((route) => route.endpoint)
    // Made at the first request, then shared by all.
    let description: Buffer | undefined
    const describe = () => (description ??= jsonOf(openApi({ service, version, publicUrl, endpoints })))
    const page = new DocsPage(service, this.#settings.docsFolder)
    this.#app.get('/health', (_request, response) => {
      const serving = this.#phase === 'serving'
      const status = serving ? 'ok' : this.#phase
      return send(response, serving ? 200 : 503, { status, service, version, problems: problems?.count ?? 0 })
    })
    this.#app.get('/openapi.json', (_request, response) => send(response.type(JSON_TYPE), 200, describe()))
    this.#app.get('/docs', (_request, response) => page.send(withRequestId(response)))
    this.#app.get<{ Params: { name: string } }>(
      '/docs/:name',
      (request, response) =>
        page.sendFile(request.params.name, request, withRequestId(response)) ??
        this.#renderError(this.#notFound(request), response),
    )
  }

  #answerUnknown(request: FastifyRequest, response: FastifyReply): FastifyReply {
    const { target } = arrivalOf(request.raw)
    const page = this.#settings.site?.answer(request.raw, target, withRequestId(response))
    return page ?? this.#renderError(this.#notFound(request), response)
  }

  #notFound(request: FastifyRequest): HomeportError {
    const { target } = arrivalOf(request.raw)
    const path = target.split('?', 1)[0] ?? target
    const allowed = this.#mounted
      .filter((mounted) => mounted.path.matches(path))
      .map((mounted) => mounted.route.endpoint.method)
    if (allowed.length === 0) return new HomeportError('unknown_route', { method: request.method, path })
    return new HomeportError('wrong_method', { method: request.method, path, allowed })
  }

  #renderError(error: unknown, response: FastifyReply): FastifyReply {
    const known = this.#catalogued(error, response)
    if (known.status === 401) response.header('www-authenticate', this.#challenge(known, response.request.headers))
    if (isError(known, 'wrong_method')) response.header('allow', known.details.allowed.join(', '))
    if (known.retry === 'later') response.header('retry-after', retryAfterOf(known))
    if (isError(known, 'daily_limit')) {
      // Clients recognise this limit by these headers (reference queue 1.3).
      const { limit, remaining, resetAtSeconds } = known.details
      response.headers({
        'ratelimit-limit': limit,
        'ratelimit-remaining': remaining,
        'ratelimit-reset': resetAtSeconds,
      })
    }
    return send(response, known.status, { error: known.message })
  }

  #challenge(error: HomeportError, headers: IncomingHttpHeaders): string {
    const scheme = this.#settings.service === 'management' ? 'Basic' : 'Bearer'
    return challengeFor(isError(error, 'unauthorized') ? error.details.scheme : scheme, headers)
  }

  #catalogued(error: unknown, { request }: FastifyReply): HomeportError {
    if (error instanceof HomeportError) return error
    const problem = UNROUTABLE.get(codeOf(error))
    if (problem !== undefined) return new HomeportError('invalid_request', { problem })
    const reference = randomSecret(6)
    this.#settings.onInternalError(error, reference, arrivalOf(request.raw).requestId)
    return new HomeportError('internal', { reference })
  }
}

const jsonOf = (value: object): Buffer => Buffer.from(JSON.stringify(value))

/** Adds the request id to an answer that is not sent with `send`, which adds the id itself. */
function withRequestId(response: FastifyReply): FastifyReply {
  return response.header(REQUEST_ID_HEADER, arrivalOf(response.request.raw).requestId)
}

/** The declared size of the body of an answer. */
function lengthOf(response: FastifyReply): number | undefined {
  const length = response.getHeader('content-length')
  return length === undefined ? undefined : Number(length)
}

/** Seconds for `Retry-After`: those of the error, or 1, because most such errors pass within a moment. */
function retryAfterOf({ details }: HomeportError): string {
  return 'retryAfterSeconds' in details ? String(details.retryAfterSeconds) : RETRY_AFTER_SECONDS
}

/** Paths that end in a raw rest, by method. */
function rawRests(mounted: readonly Mounted[]): ReadonlyMap<string, readonly RawRest[]> {
  const byMethod = new Map<string, RawRest[]>()
  for (const { route, path } of mounted) {
    if (!path.rest) continue
    const { method } = route.endpoint
    byMethod.set(method, [...(byMethod.get(method) ?? []), path.rest])
  }
  return byMethod
}
