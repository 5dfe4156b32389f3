import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ClientMemoryBudget, type ConnectionLimiter, namePattern, type OwnerConcurrency } from '../base/index.js'
import type { Endpoint } from '../contract/endpoint.js'
import { HomeportError, isError } from '../contract/errors/errors.js'
import type { TraceHeaders } from '../telemetry/index.js'
import { type BodyLimits, discardBody, readBody } from './body.js'
import { type Arrival, type Authenticator, arrivalOf, type Caller, idOf, scopeRefusal } from './caller.js'
import { answerHeaders, forward, isForwarded, mayForward } from './forwarding.js'
import type { HeavyRequests } from './heavy-requests.js'
import { parseJson } from './json.js'
import { ReceivedCall } from './received-call.js'
import { REQUEST_ID_HEADER } from './request-id.js'
import { type Call, isReply, type Route } from './route.js'
import { DATA_HEADER_MAP } from './safe-headers.js'
import { chunksOfLarge, chunksOfList, isLarge, isLongList, sendChunks, sendJson } from './send.js'
import { requireConsoleHeader, type SessionResolver, sessionSecretOf } from './session-cookie.js'
import { countUnread } from './unread.js'
import { type Checker, compileChecker } from './validation.js'

/** The validators of one endpoint. */
interface Checkers {
  readonly params: Checker | undefined
  readonly query: Checker | undefined
  readonly body: Checker | undefined
}

/** How a listener authenticates callers. */
export interface Authentication {
  readonly authenticator: Authenticator
  /** If set, the console's cookie is accepted on requests without an `Authorization` header. */
  readonly sessions: SessionResolver | undefined
}

/** How one route is served. */
export interface PipelineSettings {
  readonly route: Route
  /** The parameter that takes the raw rest of the target, if the path ends in one. */
  readonly restName: string | undefined
  readonly authentication: Authentication
  /** Larger bodies are refused with 413, slower ones with 503. */
  readonly bodyLimits: BodyLimits
  /** The budget of incomplete bodies. */
  readonly memory: ClientMemoryBudget
  /** Turns of large bodies; see `largeAtOnce`. */
  readonly large: OwnerConcurrency
  /** Limits connections without credentials; the pipeline reports which clients have shown some. */
  readonly connectionLimiter: ConnectionLimiter
  readonly heavy: HeavyRequests
  readonly onForward: OnForward | undefined
}

/**
 * Called before a request is passed on to another node. @param sinceMs time since the request arrived, milliseconds.
 * @returns the trace context for that node; `undefined`: that of the client.
 */
export type OnForward = (headers: IncomingHttpHeaders, sinceMs: number) => TraceHeaders | undefined

/**
 * Serves the requests of one route: checks credentials, reads and parses the body, validates, calls the handler, responds.
 */
export class Pipeline {
  readonly #settings: PipelineSettings
  #compiled: Checkers | undefined

  constructor(settings: PipelineSettings) {
    this.#settings = settings
  }

  get #endpoint(): Endpoint {
    return this.#settings.route.endpoint
  }

  /** Compiled at the first request, because most servers use only a few operations. */
  get #checkers(): Checkers {
    this.#compiled ??= compile(this.#endpoint)
    return this.#compiled
  }

  /** The error for wrong credentials, or for a write with read-only ones. Synchronous for credentials in a header. */
  refusal(request: FastifyRequest): HomeportError | undefined | Promise<HomeportError | undefined> {
    if (this.#endpoint.auth === 'none') return undefined
    const arrival = arrivalOf(request.raw)
    const caller = this.#byHeader(request, arrival)
    return caller ? this.#admit(request, caller) : this.#refusalOfSession(request, arrival)
  }

  async #refusalOfSession(request: FastifyRequest, arrival: Arrival): Promise<HomeportError | undefined> {
    return this.#admit(request, await this.#bySession(request, arrival))
  }

  /** Stores the caller of a request, or returns the error for it. */
  #admit({ raw }: FastifyRequest, caller: Caller | undefined): HomeportError | undefined {
    const { auth, access, id, scopes } = this.#endpoint
    if (!caller) return new HomeportError('unauthorized', { scheme: auth === 'basic' ? 'Basic' : 'Bearer' })
    this.#settings.connectionLimiter.markAuthenticated(raw.socket, caller.accountId)
    const standing = this.#refusalOfStanding(caller)
    if (standing) return standing
    if (caller.scope !== undefined && !scopes?.includes(caller.scope.kind)) return scopeRefusal(caller.scope, id)
    if (access === 'write' && caller.access === 'read') return new HomeportError('readonly_api_key', {})
    // Only the management API logs the id. Requests with a queue token are too frequent for a copy of the caller each.
    const arrival = arrivalOf(raw)
    arrival.caller = auth === 'basic' ? { ...caller, requestId: arrival.requestId } : caller
    return undefined
  }

  /** The error if nobody may act for the caller's account now; undefined if the caller may. */
  #refusalOfStanding({ accountId }: Caller): HomeportError | undefined {
    // A caller that only a route recognises, such as a scraper of metrics, acts for no account.
    if (accountId === '') return undefined
    const standing = this.#settings.authentication.authenticator.standingOf?.(accountId) ?? 'active'
    if (standing === 'active') return undefined
    if (standing === 'suspended') return new HomeportError('account_suspended', {})
    return new HomeportError('unauthorized', { scheme: this.#endpoint.auth === 'basic' ? 'Basic' : 'Bearer' })
  }

  #byHeader(request: FastifyRequest, arrival: Arrival): Caller | undefined {
    const { authenticator } = this.#settings.authentication
    const header = request.headers.authorization
    const special = this.#settings.route.recognise?.(header, arrival.ip)
    if (special) return special
    if (this.#endpoint.auth === 'basic') return authenticator.basic(header, arrival.ip)
    const token = tokenOfHeader(header)
    const caller = token === undefined ? undefined : authenticator.bearer(token, arrival.ip)
    // A webhook may carry an `Authorization` header of its sender that is not ours; its token is in the query.
    return caller ?? authenticator.bearer(tokenOfQuery(arrival.target), arrival.ip)
  }

  async #bySession(request: FastifyRequest, { ip }: Arrival): Promise<Caller | undefined> {
    const { sessions } = this.#settings.authentication
    if (!sessions || request.headers.authorization !== undefined) return undefined
    const secret = sessionSecretOf(request.headers, sessions.cookieName)
    if (secret === undefined) return undefined
    // A few operations with GET change something, and a link on any page can send a GET.
    const { method, access } = this.#endpoint
    if (method !== 'GET' || access === 'write') requireConsoleHeader(request.headers)
    return sessions.caller(secret, ip)
  }

  /** Reads the body, validates, calls the handler and sends its result or error. */
  serve(request: FastifyRequest, response: FastifyReply): void {
    this.#work(request, response).catch((error: unknown) =>
      response.send(
        error instanceof Error ? error : new Error('a value that is not an Error was thrown', { cause: error }),
      ),
    )
  }

  async #work(request: FastifyRequest, response: FastifyReply): Promise<void> {
    const received = await this.#receive(request.raw, response)
    const parsing = parseBody(this.#endpoint, received)
    // A body may take minutes to arrive, and the account may be suspended or deleted meanwhile.
    const { caller } = arrivalOf(request.raw)
    const refused = caller && this.#refusalOfStanding(caller)
    if (refused) throw refused
    const body = parsing instanceof Promise ? await parsing : parsing
    if (this.#settings.route.elsewhere && (await this.#forward(request, response, { received, body }))) return
    const call = this.#call(request, response, body)
    const answer = await this.#handle(call, request, response)
    if (isReply(answer)) send(response.headers(answer.headers), answer.status, answer.value)
    else await sendAnswer(response, this.#endpoint.success.status, answer)
  }

  /** Passes the request on if another node has to answer it. Returns whether it did. */
  async #forward(request: FastifyRequest, response: FastifyReply, { received, body }: Bodies): Promise<boolean> {
    const { raw, params } = request
    const { caller, target, ip, requestId } = arrivalOf(raw)
    const addressed = { params, body, headers: raw.headers, isForwarded: isForwarded(raw) }
    const to = caller && (await this.#settings.route.elsewhere?.({ ...addressed, caller }))
    if (!to) return false
    if (!mayForward(raw)) throw new HomeportError('forwarded_twice', { node: to.node })
    const gone = new AbortController()
    response.raw.once('close', () => gone.abort())
    const answer = await forward(to, {
      original: raw,
      target,
      ip,
      body: received,
      signal: gone.signal,
      requestId: { header: REQUEST_ID_HEADER, value: requestId },
      trace: this.#settings.onForward?.(raw.headers, response.elapsedTime),
    })
    const { raw: client } = response.hijack()
    client.writeHead(answer.statusCode ?? 502, answerHeaders(answer))
    // If the answer breaks off, so does the client's connection: the client does not mistake the answer for a complete one.
    pipeline(answer, client, () => undefined)
    return true
  }

  /** The unparsed body: nothing, bytes, or the stream that the handler reads itself. */
  #receive(request: IncomingMessage, response: FastifyReply): Received | Promise<Uint8Array> {
    const { method, body } = this.#endpoint
    if (method === 'GET') return undefined
    if (body.kind === 'stream') return request
    const { bodyLimits, memory, large } = this.#settings
    const { caller, ip } = arrivalOf(request)
    const account = { memory, large, owner: caller?.accountId ?? ip }
    return this.#orRefused(readBody(request, bodyLimits, account), request, response)
  }

  /** Awaits the body; if that fails, decides whether the connection must be closed. */
  async #orRefused<Body>(reading: Promise<Body>, request: IncomingMessage, response: FastifyReply): Promise<Body> {
    try {
      return await reading
    } catch (error) {
      const discarded = isError(error, 'body_too_large') ? await this.#discard(request, error) : undefined
      // The rest of the body is unread, and the server does not wait for it: the connection cannot carry another request.
      if (!discarded?.isAtEnd) response.header('connection', 'close')
      throw discarded?.error ?? error
    }
  }

  /** Discards a body that is too large, and chooses the error. */
  async #discard(request: IncomingMessage, error: HomeportError) {
    const { isAtEnd, head } = await discardBody(request)
    const { refuseTooLarge } = this.#settings.route
    const { target, caller } = arrivalOf(request)
    return { isAtEnd, error: refuseTooLarge?.({ headers: request.headers, target, caller, head, error }) ?? error }
  }

  async #handle(call: Call, request: FastifyRequest, response: FastifyReply): Promise<unknown> {
    const { body, cost } = this.#endpoint
    const { route, heavy } = this.#settings
    if (cost === 'heavy') {
      const exchange = { request: request.raw, response: response.raw }
      return heavy.serve(call.caller.accountId, exchange, () => route.handler(call))
    }
    if (body.kind !== 'stream') return route.handler(call)
    try {
      return await route.handler(call)
    } finally {
      // The rest of an unread body would be parsed as the next request.
      if (!request.raw.complete) response.header('connection', 'close')
    }
  }

  #call(request: FastifyRequest, response: FastifyReply, body: unknown): Call {
    const arrival = arrivalOf(request.raw)
    // Both may be changed: the router creates them for this request.
    const params = request.params as Record<string, unknown>
    const query = request.query as Record<string, unknown>
    const { restName } = this.#settings
    if (restName !== undefined) params[restName] = arrival.rest ?? ''
    // The token is a credential, not a parameter of an operation.
    if (query.qstash_token !== undefined) delete query.qstash_token
    const checkers = this.#checkers
    checkers.params?.(params)
    checkers.query?.(query)
    if (body !== undefined) checkers.body?.(body)
    return new ReceivedCall({ params, query, body }, request, response, this)
  }
}

function compile(endpoint: Endpoint): Checkers {
  const params = endpoint.params && compileChecker(endpoint.params, 'path')
  if (endpoint.checkedBy === 'handler') return { params, query: undefined, body: undefined }
  return {
    params,
    query: endpoint.query && compileChecker(endpoint.query, 'query'),
    body: endpoint.body.kind === 'json' ? compileChecker(endpoint.body.schema, 'body') : undefined,
  }
}

const tokenOfHeader = (header: string | undefined): string | undefined =>
  header === undefined ? undefined : /^Bearer +(\S+) *$/i.exec(header)?.[1]

/** The query parameter `qstash_token`, for clients that cannot send a header (reference queue 1.1). */
function tokenOfQuery(target: string): string | undefined {
  const start = target.indexOf('?')
  // Only this pair is decoded, because a stranger may send thousands of parameters.
  const pair = start < 0 ? undefined : TOKEN_PAIR.exec(target.slice(start + 1))?.[1]
  return pair === undefined ? undefined : (new URLSearchParams(pair).get('qstash_token') ?? undefined)
}

const TOKEN_PAIR = new RegExp(`(?:^|&)(${namePattern('qstash_token')}(?:=[^&]*)?)(?:&|$)`)

const NO_BYTES = new Uint8Array()

/** A body before it is parsed. */
type Received = Uint8Array | Readable | undefined

/** A body, before and after it is parsed. */
interface Bodies {
  readonly received: Received
  readonly body: unknown
}

/** Parses a body. For writes without fields, clients send an empty body, `{}` or `null`; all three mean the same. */
function parseBody(endpoint: Endpoint, received: Received): unknown {
  if (endpoint.body.kind === 'stream') return received ?? Readable.from([])
  const bytes = received instanceof Uint8Array ? received : NO_BYTES
  switch (endpoint.body.kind) {
    case 'none':
      return undefined
    case 'raw':
      return bytes
    case 'json': {
      const value = bytes.length === 0 ? null : parseJson(bytes, endpoint.body.texts)
      return value instanceof Promise ? value.then((long) => withoutNull(endpoint, long)) : withoutNull(endpoint, value)
    }
  }
}

function withoutNull({ body }: Endpoint, value: unknown): unknown {
  if (value !== null) return value
  return body.kind === 'json' && body.optional ? undefined : {}
}

/** Sends bytes and byte streams unchanged and everything else as JSON; `undefined` is an empty body. */
export function send(response: FastifyReply, status: number, value: unknown): FastifyReply {
  if (value === undefined || value instanceof Uint8Array || value instanceof Readable) {
    response
      .headers({ ...DATA_HEADER_MAP, ...response.getHeaders(), [REQUEST_ID_HEADER]: idOf(response.request.raw) })
      .code(status)
      .send(value)
    if (value instanceof Uint8Array) countUnread(response.request.raw, response.raw, value.byteLength)
    return response
  }
  // Serialized before the take-over: if that fails, the framework must still be able to send the error.
  const json = JSON.stringify(value)
  sendJson(response.request.raw, takeOver(response), status, json)
  return response
}

/** Like `send`, but serializes a long list, or an object with much text, in slices that yield to the event loop. */
async function sendAnswer(response: FastifyReply, status: number, answer: unknown): Promise<void> {
  const chunks = isLongList(answer)
    ? await chunksOfList(answer)
    : isLarge(answer)
      ? await chunksOfLarge(answer)
      : undefined
  if (chunks) sendChunks(response.request.raw, takeOver(response), status, chunks)
  else send(response, status, answer)
}

/** Takes a response over from the framework, with the headers set so far. */
function takeOver(response: FastifyReply): ServerResponse {
  const { raw } = response.hijack()
  for (const [name, text] of Object.entries(response.getHeaders())) if (text !== undefined) raw.setHeader(name, text)
  return raw
}
