import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Endpoint } from '../contract/endpoint.js'
import { HomeportError } from '../contract/errors.js'
import type { Authenticator, Caller } from './caller.js'
import { nestsDeeperThan } from './nesting.js'
import { type Call, isReply, type Route } from './route.js'
import { requireConsoleHeader, type SessionKeeper, sessionSecretOf } from './session-cookie.js'
import { type Checker, compileChecker } from './validation.js'

/** The checkers of one endpoint, compiled once. */
interface Checkers {
  readonly params: Checker | undefined
  readonly query: Checker | undefined
  readonly body: Checker | undefined
}

/** What is known of a request before its body is read. */
export interface Arrival {
  /** The request target as it was on the wire. */
  readonly target: string
  /** `Content-Type` as it was on the wire. */
  readonly contentType: string | undefined
  /** The raw rest of the target, for paths that end in `{+name}`. */
  readonly rest?: string
}

/** By what a listener recognises its callers. */
export interface Recognition {
  readonly authenticator: Authenticator
  /** Where requests without an `Authorization` header may come with the cookie of the console instead. */
  readonly sessions: SessionKeeper | undefined
}

/** Serves requests of one route: credentials before the body is read, then parsing, checking, the handler, the answer. */
export class Pipeline {
  readonly #route: Route
  readonly #restName: string | undefined
  readonly #recognition: Recognition
  #compiled: Checkers | undefined
  readonly #callers = new WeakMap<FastifyRequest, Caller>()

  constructor(route: Route, restName: string | undefined, recognition: Recognition) {
    this.#route = route
    this.#restName = restName
    this.#recognition = recognition
  }

  /** Compiled by the first request: most servers are asked for a few of their operations only. */
  get #checkers(): Checkers {
    this.#compiled ??= compile(this.#route.endpoint)
    return this.#compiled
  }

  /** Refuses wrong credentials, and writes with read-only ones. */
  async authenticate(request: FastifyRequest, arrival: Arrival): Promise<void> {
    const { auth, access } = this.#route.endpoint
    if (auth === 'none') return
    const caller = this.#byHeader(request, arrival) ?? (await this.#bySession(request))
    if (!caller) throw new HomeportError('unauthorized', { scheme: auth === 'basic' ? 'Basic' : 'Bearer' })
    if (access === 'write' && caller.access === 'read') throw new HomeportError('readonly_api_key', {})
    this.#callers.set(request, caller)
  }

  #byHeader(request: FastifyRequest, arrival: Arrival): Caller | undefined {
    const { authenticator } = this.#recognition
    const header = request.headers.authorization
    if (this.#route.endpoint.auth === 'basic') return authenticator.basic(header, request.ip)
    return authenticator.bearer(bearerToken(header, arrival.target), request.ip)
  }

  async #bySession(request: FastifyRequest): Promise<Caller | undefined> {
    const { sessions } = this.#recognition
    const secret = request.headers.authorization === undefined ? sessionSecretOf(request.headers) : undefined
    if (!sessions || secret === undefined) return undefined
    if (this.#route.endpoint.method !== 'GET') requireConsoleHeader(request.headers)
    return sessions.caller(secret, request.ip)
  }

  /** Parses, checks, calls the handler and sends its answer. */
  async serve(request: FastifyRequest, response: FastifyReply, arrival: Arrival): Promise<FastifyReply> {
    if (arrival.contentType !== undefined) request.headers['content-type'] = arrival.contentType
    const call = this.#call(request, response, arrival)
    const answer = await this.#handle(call, request, response)
    if (!isReply(answer)) return send(response, this.#route.endpoint.success.status, answer)
    return send(response.headers(answer.headers), answer.status, answer.value)
  }

  async #handle(call: Call, request: FastifyRequest, response: FastifyReply): Promise<unknown> {
    try {
      return await this.#route.handler(call)
    } finally {
      // What is left of a stream that nobody has read to its end would be taken for the next request.
      if (this.#route.endpoint.body.kind === 'stream' && !request.raw.complete) response.header('connection', 'close')
    }
  }

  #call(request: FastifyRequest, response: FastifyReply, arrival: Arrival): Call {
    const params = {
      ...(request.params as object),
      ...(this.#restName ? { [this.#restName]: arrival.rest ?? '' } : {}),
    }
    const query: Record<string, unknown> = { ...(request.query as object) }
    // It has proved who calls and is no parameter of any operation.
    delete query.qstash_token
    const body = readBody(this.#route.endpoint, request.body)
    const checkers = this.#checkers
    checkers.params?.(params)
    checkers.query?.(query)
    if (body !== undefined) checkers.body?.(body)
    const caller = this.#callers.get(request)
    return {
      params,
      query,
      body,
      get caller(): Caller {
        if (!caller) throw new Error('this endpoint does not authenticate its callers')
        return caller
      },
      ip: request.ip,
      headers: request.headers,
      target: arrival.target,
      get signal(): AbortSignal {
        return goneSignal(response)
      },
    }
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

/** The token of the header, else of the query parameter `qstash_token` (reference queue 1.1). */
function bearerToken(header: string | undefined, target: string): string | undefined {
  const fromHeader = header === undefined ? undefined : /^Bearer +(\S+) *$/i.exec(header)?.[1]
  if (fromHeader !== undefined) return fromHeader
  const start = target.indexOf('?')
  if (start < 0) return undefined
  return new URLSearchParams(target.slice(start + 1)).get('qstash_token') ?? undefined
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** Clients send writes without fields as an empty body, as `{}` or as `null`; all three mean the same. */
function readBody(endpoint: Endpoint, bytes: unknown): unknown {
  if (endpoint.body.kind === 'stream') return bytes instanceof Readable ? bytes : Readable.from([])
  const received = bytes instanceof Uint8Array ? bytes : new Uint8Array()
  switch (endpoint.body.kind) {
    case 'none':
      return undefined
    case 'raw':
      return received
    case 'json': {
      const value = received.length === 0 ? null : parseJson(received)
      if (value !== null) return value
      return endpoint.body.optional ? undefined : {}
    }
  }
}

/** Far more than any request needs, and far less than what a recursive function can stand. */
const MOST_LEVELS = 64

function parseJson(bytes: Uint8Array): unknown {
  if (nestsDeeperThan(bytes, MOST_LEVELS)) {
    throw new HomeportError('invalid_request', {
      problem: `The request body nests lists and objects more than ${MOST_LEVELS} levels deep. Send a flatter one.`,
    })
  }
  try {
    return JSON.parse(decoder.decode(bytes))
  } catch (error) {
    throw new HomeportError('invalid_json', { reason: error instanceof Error ? error.message : 'it cannot be read' })
  }
}

/** Sends bytes and streams of them as they are and everything else as JSON; `undefined` is an empty body. */
export function send(response: FastifyReply, status: number, value: unknown): FastifyReply {
  response.code(status)
  if (value instanceof Uint8Array || value instanceof Readable) return response.send(value)
  if (value === undefined) return response.send()
  return response.type('application/json; charset=utf-8').send(JSON.stringify(value))
}

function goneSignal(response: FastifyReply): AbortSignal {
  const controller = new AbortController()
  response.raw.once('close', () => {
    if (!response.raw.writableFinished) controller.abort()
  })
  return controller.signal
}
