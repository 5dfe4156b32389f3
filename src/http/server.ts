import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { randomSecret, type Service, systemClock } from '../base/index.js'
import type { ServiceName } from '../contract/endpoint.js'
import { ERRORS, HomeportError } from '../contract/errors.js'
import type { Authenticator } from './caller.js'
import { discardBody } from './discard-body.js'
import { docsPage } from './docs-page.js'
import { openApi } from './openapi.js'
import { type PathPattern, parsePath } from './path.js'
import { type Arrival, Pipeline, send } from './pipeline.js'
import type { Route } from './route.js'
import type { SessionKeeper } from './session-cookie.js'
import type { Site } from './site.js'

/** Long enough for ids and names of any client; the router's own default is 100. */
const LONGEST_PARAMETER = 2_048
const RETRY_AFTER_SECONDS = '1'
const STOP_GRACE_MS = 10_000
/** The framework's name for a body above the limit. */
const BODY_TOO_LARGE = 'FST_ERR_CTP_BODY_TOO_LARGE'

/** How one HTTP listener is to be. */
export interface HttpSettings {
  /** Which of the services it is; only its endpoints may be mounted. */
  readonly service: ServiceName
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Larger bodies are refused with 413. */
  readonly bodyLimitBytes: number
  readonly routes: readonly Route[]
  readonly authenticator: Authenticator
  /** Lets the cookie of the console stand for credentials; absent: cookies mean nothing here. */
  readonly sessions?: SessionKeeper
  /** Operations of another service that are served here too, undescribed, so that the console has one origin. */
  readonly guests?: { readonly routes: readonly Route[]; readonly bodyLimitBytes: number }
  /** The pages of the console. */
  readonly site?: Site | undefined
  readonly version: string
  /** Where users reach it, for OpenAPI. */
  readonly publicUrl: string
  /** Told of errors that are our fault; the reference stands in the answer too. */
  readonly onInternalError: (error: unknown, reference: string) => void
  /** How long requests in flight may take to be answered once the server stops. Default 10,000. */
  readonly stopGraceMs?: number
}

interface Mounted {
  readonly route: Route
  readonly bodyLimitBytes: number
  readonly path: PathPattern
}

/** An HTTP listener over declared endpoints, with `/health`, `/openapi.json` and `/docs`. */
export class HttpServer implements Service {
  readonly name: string
  readonly #settings: HttpSettings
  readonly #mounted: readonly Mounted[]
  readonly #arrivals = new WeakMap<IncomingMessage, Arrival>()
  readonly #inFlight = new Set<IncomingMessage>()
  readonly #app: FastifyInstance
  #phase: 'starting' | 'serving' | 'stopping' = 'starting'

  constructor(settings: HttpSettings) {
    this.name = `${settings.service} API`
    this.#settings = settings
    this.#mounted = [settings, settings.guests ?? { routes: [], bodyLimitBytes: 0 }].flatMap(
      ({ routes, bodyLimitBytes }) =>
        routes.map((route) => ({ route, bodyLimitBytes, path: parsePath(route.endpoint.path) })),
    )
    this.#app = fastify({
      bodyLimit: settings.bodyLimitBytes,
      routerOptions: { maxParamLength: LONGEST_PARAMETER },
      // The framework hands the plain request of Node to this hook, under a narrower type.
      rewriteUrl: (request) => this.#arrive(request as IncomingMessage),
      frameworkErrors: (error, request, response) => this.#renderError(error, request, response),
      clientErrorHandler: (_error, socket) => refuseSocket(socket),
      forceCloseConnections: 'idle',
    })
    this.#prepare()
  }

  async start(): Promise<void> {
    await this.#app.listen({ host: this.#settings.host, port: this.#settings.port })
    this.#phase = 'serving'
  }

  /** Lets requests in flight finish, as long as the grace lasts; new ones get 503. */
  async stop(graceMs = this.#settings.stopGraceMs ?? STOP_GRACE_MS): Promise<void> {
    this.#phase = 'stopping'
    // What has not come whole cannot be work that was taken on; its sender may never go on.
    for (const request of this.#inFlight) if (!request.complete) request.destroy()
    const timer = systemClock.after(graceMs, () => this.#app.server.closeAllConnections())
    await this.#app.close()
    timer.cancel()
  }

  /** The port it listens on. */
  get port(): number {
    const address: AddressInfo | string | null = this.#app.server.address()
    return typeof address === 'object' && address !== null ? address.port : this.#settings.port
  }

  /** Notes a request as it came and gives the router one that it can match. */
  #arrive(request: IncomingMessage): string {
    this.#inFlight.add(request)
    request.once('close', () => this.#inFlight.delete(request))
    const target = request.url ?? '/'
    const contentType = hideContentType(request)
    for (const { path, route } of this.#mounted) {
      // Another method may know the same path by its parts: POST takes a destination where GET takes an id.
      const found = route.endpoint.method === request.method ? path.rest?.find(target) : undefined
      if (found === undefined) continue
      this.#arrivals.set(request, { target, contentType, rest: found.rest })
      return found.routerTarget
    }
    this.#arrivals.set(request, { target, contentType })
    return target
  }

  #arrivalOf(request: FastifyRequest): Arrival {
    const arrival = this.#arrivals.get(request.raw)
    if (!arrival) throw new Error('a request came past the door')
    return arrival
  }

  #prepare(): void {
    this.#app.removeAllContentTypeParsers()
    // Content types are never refused: bytes come in, the endpoint says what they are.
    this.#app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    this.#app.setErrorHandler(async (error: FastifyError, request, response) => {
      // Whoever still sends would not get to read the answer.
      if (error.code === BODY_TOO_LARGE && (await discardBody(request.raw))) response.removeHeader('connection')
      return this.#renderError(error, request, response)
    })
    this.#app.setNotFoundHandler((request, response) => this.#answerUnknown(request, response))
    for (const mounted of this.#mounted) this.#mount(mounted)
    this.#mountPages()
  }

  #mount({ route, path, bodyLimitBytes }: Mounted): void {
    const { authenticator, sessions } = this.#settings
    const pipeline = new Pipeline(route, path.rest?.name, { authenticator, sessions })
    const add = (app: FastifyInstance): unknown =>
      app.route({
        method: route.endpoint.method,
        url: path.routerPath,
        bodyLimit: bodyLimitBytes,
        onRequest: async (request) => pipeline.authenticate(request, this.#arrivalOf(request)),
        handler: (request, response) => pipeline.serve(request, response, this.#arrivalOf(request)),
      })
    if (route.endpoint.body.kind !== 'stream') return void add(this.#app)
    this.#app.register(async (app) => {
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('*', (_request, body, done) => done(null, body))
      add(app)
    })
  }

  #mountPages(): void {
    const { service, version, publicUrl, routes } = this.#settings
    const endpoints = routes.map((route) => route.endpoint)
    const description = openApi({ service, version, publicUrl, endpoints })
    const page = docsPage({ service, version, publicUrl, endpoints })
    this.#app.get('/health', (_request, response) => {
      const serving = this.#phase === 'serving'
      return send(response, serving ? 200 : 503, { status: serving ? 'ok' : this.#phase, service, version })
    })
    this.#app.get('/openapi.json', (_request, response) => send(response, 200, description))
    this.#app.get('/docs', (_request, response) => response.type('text/html; charset=utf-8').send(page))
  }

  #answerUnknown(request: FastifyRequest, response: FastifyReply): FastifyReply {
    const { target } = this.#arrivalOf(request)
    const page = this.#settings.site?.answer(request.raw, target, response)
    return page ?? this.#renderError(this.#notFound(request), request, response)
  }

  #notFound(request: FastifyRequest): HomeportError {
    const { target } = this.#arrivalOf(request)
    const path = target.split('?', 1)[0] ?? target
    const allowed = this.#mounted
      .filter((mounted) => mounted.path.matches(path))
      .map((mounted) => mounted.route.endpoint.method)
    if (allowed.length === 0) return new HomeportError('unknown_route', { method: request.method, path })
    return new HomeportError('wrong_method', { method: request.method, path, allowed })
  }

  #renderError(error: unknown, request: FastifyRequest, response: FastifyReply): FastifyReply {
    const known = this.#catalogued(error, request)
    if (known.status === 405)
      response.header('allow', (known.details as { allowed: readonly string[] }).allowed.join(', '))
    if (known.retry === 'later' && (known.status === 503 || known.status === 429)) {
      response.header('retry-after', retryAfterOf(known))
    }
    return send(response, known.status, { error: known.message })
  }

  #catalogued(error: unknown, request: FastifyRequest): HomeportError {
    if (error instanceof HomeportError) return error
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code === BODY_TOO_LARGE) {
      return new HomeportError('body_too_large', { limitBytes: request.routeOptions.bodyLimit })
    }
    if (code === 'FST_ERR_BAD_URL') {
      return new HomeportError('invalid_request', {
        problem: 'The path of the request has a % that is not followed by two hexadecimal digits.',
      })
    }
    if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH') {
      return new HomeportError('invalid_request', { problem: 'The body is not as long as its Content-Length says.' })
    }
    const reference = randomSecret(6)
    this.#settings.onInternalError(error, reference)
    return new HomeportError('internal', { reference })
  }
}

/** Most errors do not know when they pass; a moment is a fair guess. */
function retryAfterOf({ details }: HomeportError): string {
  return 'retryAfterSeconds' in details ? String(details.retryAfterSeconds) : RETRY_AFTER_SECONDS
}

/**
 * The framework refuses content types that it cannot parse; ours may be anything. It sees a neutral one, and the
 * pipeline puts the original back.
 */
function hideContentType(request: IncomingMessage): string | undefined {
  const original = request.headers['content-type']
  if (original !== undefined) request.headers['content-type'] = 'application/octet-stream'
  return original
}

/** Answers bytes that are not HTTP, and closes. */
export function refuseSocket(socket: Duplex): void {
  if (!socket.writable) return
  const body = JSON.stringify({ error: ERRORS.invalid_request.text({ problem: 'The request is not valid HTTP/1.1.' }) })
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
