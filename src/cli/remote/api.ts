import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { isObject, tryParseJson } from '../../base/index.js'
import type { BodyOf, BodyShape, Endpoint } from '../../contract/endpoint.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { type Access, accessTo, type Connection } from './connection.js'
import { connectionError } from './connection-error.js'

/** What a request says, in the types of its endpoint. */
export interface Request<Params extends TSchema, Query extends TSchema, Body extends BodyShape> {
  readonly params?: Static<Params>
  readonly query?: Static<Query>
  readonly body?: BodyOf<Body>
  readonly headers?: Readonly<Record<string, string>>
}

/** An answer as it came, checked by nobody yet. */
export interface Answer {
  readonly status: number
  readonly value: unknown
}

type QueryValue = string | number | boolean | readonly (string | number)[] | undefined

/**
 * The public APIs of a server. Paths, types and the shapes of answers come from the declarations of the endpoints; an
 * answer that does not have its declared shape is refused, so that commands can trust what they print.
 */
export class Api {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** In words, where the credentials come from. */
  get origin(): string {
    return this.#connection.origin
  }

  /**
   * Calls an operation and answers its body.
   * @throws HomeportError `server_refused` with the server's own words, `server_unreachable`, `server_untrusted`.
   */
  async call<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Shape extends TSchema>(
    endpoint: Endpoint<Params, Query, Body, Shape>,
    request: Request<Params, Query, Body> = {},
  ): Promise<Static<Shape>> {
    const { value } = await this.send(endpoint, request)
    return parsed(endpoint.success.body, value)
  }

  /** The same where several answers are no errors: the caller looks at the status and holds the value to its schema. */
  async send<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Shape extends TSchema>(
    endpoint: Endpoint<Params, Query, Body, Shape>,
    request: Request<Params, Query, Body> = {},
  ): Promise<Answer> {
    const response = await this.stream(endpoint, request)
    const text = await response.text()
    return { status: response.status, value: text === '' ? {} : tryParseJson(text) }
  }

  /** The same with the response itself, for bodies that are streams. */
  async stream<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Shape extends TSchema>(
    endpoint: Endpoint<Params, Query, Body, Shape>,
    request: Request<Params, Query, Body> = {},
  ): Promise<Response> {
    const access = accessTo(this.#connection, endpoint.service)
    const target = pathOf(endpoint.path, request.params) + queryOf(request.query)
    const response = await reach(access.url, target, initOf(endpoint, request, access))
    if (response.ok) return response
    throw await refusalOf(response)
  }
}

/**
 * Sends a request to a server.
 * @throws HomeportError `server_unreachable`.
 */
export function reach(url: string, target: string, init: RequestInit): Promise<Response> {
  return fetch(url + target, init).catch((cause: unknown) => {
    throw connectionError(url, cause)
  })
}

/**
 * Holds an answer to its schema.
 * @throws HomeportError `cli_failed`.
 */
export function parsed<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (Value.Check(schema, value)) return value
  const problem = 'The server is of another version: its answer is not as expected. Use the command of that version.'
  throw new HomeportError('cli_failed', { problem })
}

/** The path with its parameters: `{name}` encoded, `{+name}` byte for byte. */
function pathOf(path: string, params: unknown): string {
  const values = new Map<string, unknown>(Object.entries(params ?? {}))
  return path.replace(/\{(\+?)(\w+)\}/g, (_, raw: string, name: string) => {
    const value = String(values.get(name))
    return raw === '' ? encodeURIComponent(value) : value
  })
}

function queryOf(query: unknown): string {
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries((query ?? {}) as Record<string, QueryValue>))
    for (const one of [value].flat()) if (one !== undefined) pairs.append(name, String(one))
  return pairs.size === 0 ? '' : `?${pairs}`
}

function initOf(
  endpoint: Endpoint,
  { body, headers }: { body?: unknown; headers?: object },
  access: Access,
): RequestInit {
  const init = { method: endpoint.method, headers: { ...headers, authorization: access.authorization } }
  if (body === undefined) return init
  if (endpoint.body.kind === 'json') {
    const typed = { 'content-type': 'application/json', ...init.headers }
    return { ...init, headers: typed, body: JSON.stringify(body) }
  }
  const isStream = endpoint.body.kind === 'stream'
  return { ...init, body: body as NonNullable<RequestInit['body']>, ...(isStream && { duplex: 'half' as const }) }
}

async function refusalOf(response: Response): Promise<HomeportError> {
  const body = tryParseJson(await response.text().catch(() => ''))
  const error = isObject(body) ? body.error : undefined
  const said = typeof error === 'string' ? error : `The server answered ${response.status} without a reason.`
  return new HomeportError('server_refused', { status: response.status, said })
}
