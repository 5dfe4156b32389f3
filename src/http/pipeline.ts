import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ClientMemoryBudget } from '../base/index.js'
import type { Endpoint } from '../contract/endpoint.js'
import { HomeportError, isError } from '../contract/errors/errors.js'
import { type BodyLimits, discardBody, readBody } from './body.js'
import type { Authenticator, Caller } from './caller.js'
import { type Arrival, arrivalOf } from './caller.js'
import { parseJson } from './json.js'
import { ReceivedCall } from './received-call.js'
import { type Call, isReply, type Route } from './route.js'
import { DATA_HEADER_MAP } from './safe-headers.js'
import { isLarge, isLongList, piecesOfList, piecesOfObject, sendJson, sendPieces } from './send.js'
import { requireConsoleHeader, type SessionKeeper, sessionSecretOf } from './session-cookie.js'
import { type Checker, compileChecker } from './validation.js'

/** The checkers of one endpoint, compiled once. */
interface Checkers {
  readonly params: Checker | undefined
  readonly query: Checker | undefined
  readonly body: Checker | undefined
}

/** By what a listener recognises its callers. */
export interface Recognition {
  readonly authenticator: Authenticator
  /** Where requests without an `Authorization` header may come with the cookie of the console instead. */
  readonly sessions: SessionKeeper | undefined
}

/** How one route is served. */
export interface PipelineSettings {
  readonly route: Route
  /** The parameter that takes the raw rest of the target, if the path ends in one. */
  readonly restName: string | undefined
  readonly recognition: Recognition
  /** Larger bodies are refused with 413, slower ones with 400. */
  readonly bodyLimits: BodyLimits
  /** Where bodies are counted that have not come whole. */
  readonly memory: ClientMemoryBudget
}

/**
 * Serves requests of one route: credentials before the body is read, then parsing, checking, the handler, the answer.
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

  /** Compiled by the first request: most servers are asked for a few of their operations only. */
  get #checkers(): Checkers {
    this.#compiled ??= compile(this.#endpoint)
    return this.#compiled
  }

  /** Why wrong credentials are refused, or writes with read-only ones. Those of a header are judged at once. */
  refusal(request: FastifyRequest): HomeportError | undefined | Promise<HomeportError | undefined> {
    if (this.#endpoint.auth === 'none') return undefined
    const arrival = arrivalOf(request.raw)
    const caller = this.#byHeader(request, arrival)
    return caller ? this.#admit(arrival, caller) : this.#refusalOfSession(request, arrival)
  }

  async #refusalOfSession(request: FastifyRequest, arrival: Arrival): Promise<HomeportError | undefined> {
    return this.#admit(arrival, await this.#bySession(request, arrival))
  }

  /** Notes who calls, or answers why the caller is refused. */
  #admit(arrival: Arrival, caller: Caller | undefined): HomeportError | undefined {
    const { auth, access } = this.#endpoint
    if (!caller) return new HomeportError('unauthorized', { scheme: auth === 'basic' ? 'Basic' : 'Bearer' })
    if (access === 'write' && caller.access === 'read') return new HomeportError('readonly_api_key', {})
    arrival.caller = caller
    return undefined
  }

  #byHeader(request: FastifyRequest, arrival: Arrival): Caller | undefined {
    const { authenticator } = this.#settings.recognition
    const header = request.headers.authorization
    if (this.#endpoint.auth === 'basic') return authenticator.basic(header, arrival.ip)
    const token = tokenOfHeader(header)
    const caller = token === undefined ? undefined : authenticator.bearer(token, arrival.ip)
    // A webhook comes with a header of its sender, which says nothing here.
    return caller ?? authenticator.bearer(tokenOfQuery(arrival.target), arrival.ip)
  }

  async #bySession(request: FastifyRequest, { ip }: Arrival): Promise<Caller | undefined> {
    const { sessions } = this.#settings.recognition
    if (!sessions || request.headers.authorization !== undefined) return undefined
    const secret = sessionSecretOf(request.headers, sessions.cookieName)
    if (secret === undefined) return undefined
    if (this.#endpoint.method !== 'GET') requireConsoleHeader(request.headers)
    return sessions.caller(secret, ip)
  }

  /** Reads the body, parses, checks, calls the handler and sends its answer, or the error that stood in the way. */
  serve(request: FastifyRequest, response: FastifyReply): void {
    this.#work(request, response).catch((error: unknown) =>
      response.send(error instanceof Error ? error : new Error('what was thrown is no error', { cause: error })),
    )
  }

  async #work(request: FastifyRequest, response: FastifyReply): Promise<void> {
    const parsing = parseBody(this.#endpoint, await this.#receive(request.raw, response))
    const body = parsing instanceof Promise ? await parsing : parsing
    const call = this.#call(request, response, body)
    const answer = await this.#handle(call, request, response)
    if (isReply(answer)) send(response.headers(answer.headers), answer.status, answer.value)
    else if (isLongList(answer)) await sendList(response, this.#endpoint.success.status, answer)
    else if (isLarge(answer)) await sendLarge(response, this.#endpoint.success.status, answer)
    else send(response, this.#endpoint.success.status, answer)
  }

  /** The body before it is parsed: nothing, bytes, or the stream that the handler reads by itself. */
  #receive(request: IncomingMessage, response: FastifyReply): Received | Promise<Uint8Array> {
    const { method, body } = this.#endpoint
    if (method === 'GET') return undefined
    if (body.kind === 'stream') return request
    const { bodyLimits, memory } = this.#settings
    const { caller, ip } = arrivalOf(request)
    const account = { memory, owner: caller?.accountId ?? ip }
    return this.#orRefused(readBody(request, bodyLimits, account), request, response)
  }

  /** A body that is being read; when that fails, the connection may have to be closed. */
  async #orRefused<Body>(reading: Promise<Body>, request: IncomingMessage, response: FastifyReply): Promise<Body> {
    try {
      return await reading
    } catch (error) {
      const discarded = isError(error, 'body_too_large') ? await this.#discard(request, error) : undefined
      // A client that is still sending would not read the answer; one that is too slow or gone is not waited for.
      if (!discarded?.isAtEnd) response.header('connection', 'close')
      throw discarded?.error ?? error
    }
  }

  /** Throws a body away that is too large, and answers what is said of it. */
  async #discard(request: IncomingMessage, error: HomeportError) {
    const { isAtEnd, head } = await discardBody(request)
    const { refuseTooLarge } = this.#settings.route
    const { target, caller } = arrivalOf(request)
    return { isAtEnd, error: refuseTooLarge?.({ headers: request.headers, target, caller, head, error }) ?? error }
  }

  async #handle(call: Call, request: FastifyRequest, response: FastifyReply): Promise<unknown> {
    if (this.#endpoint.body.kind !== 'stream') return this.#settings.route.handler(call)
    try {
      return await this.#settings.route.handler(call)
    } finally {
      // What is left of a body that nobody has read to its end would be taken for the next request.
      if (!request.raw.complete) response.header('connection', 'close')
    }
  }

  #call(request: FastifyRequest, response: FastifyReply, body: unknown): Call {
    const arrival = arrivalOf(request.raw)
    // The router makes both for this request alone.
    const params = request.params as Record<string, unknown>
    const query = request.query as Record<string, unknown>
    const { restName } = this.#settings
    if (restName !== undefined) params[restName] = arrival.rest ?? ''
    // It has proved who calls and is no parameter of any operation.
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

/** The query parameter `qstash_token`, for those who cannot send a header (reference queue 1.1). */
function tokenOfQuery(target: string): string | undefined {
  const start = target.indexOf('?')
  return start < 0 ? undefined : (new URLSearchParams(target.slice(start + 1)).get('qstash_token') ?? undefined)
}

const NO_BYTES = new Uint8Array()

/** What is there of a body before the handler is called. */
type Received = Uint8Array | Readable | undefined

/** Clients send writes without fields as an empty body, as `{}` or as `null`; all three mean the same. */
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
      return value instanceof Promise ? value.then((long) => meant(endpoint, long)) : meant(endpoint, value)
    }
  }
}

function meant({ body }: Endpoint, value: unknown): unknown {
  if (value !== null) return value
  return body.kind === 'json' && body.optional ? undefined : {}
}

/** Sends bytes and streams of them as they are and everything else as JSON; `undefined` is an empty body. */
export function send(response: FastifyReply, status: number, value: unknown): FastifyReply {
  if (value === undefined || value instanceof Uint8Array || value instanceof Readable) {
    return response
      .headers({ ...DATA_HEADER_MAP, ...response.getHeaders() })
      .code(status)
      .send(value)
  }
  // Made before the framework lets go of the answer: it still has to tell of what cannot be written.
  const json = JSON.stringify(value)
  sendJson(response.request.raw, letGo(response), status, json)
  return response
}

/** Sends a long list as JSON, made in turns. */
async function sendList(response: FastifyReply, status: number, list: readonly unknown[]): Promise<void> {
  const pieces = await piecesOfList(list)
  sendPieces(letGo(response), status, pieces)
}

/** Sends an object with much text in it as JSON, made in turns. */
async function sendLarge(
  response: FastifyReply,
  status: number,
  object: Readonly<Record<string, unknown>>,
): Promise<void> {
  const pieces = await piecesOfObject(object)
  sendPieces(letGo(response), status, pieces)
}

/** Takes an answer, with the headers it has been given, out of the hands of the framework. */
function letGo(response: FastifyReply): ServerResponse {
  const { raw } = response.hijack()
  for (const [name, text] of Object.entries(response.getHeaders())) if (text !== undefined) raw.setHeader(name, text)
  return raw
}
