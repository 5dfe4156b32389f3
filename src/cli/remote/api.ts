import type { Static, TSchema } from 'typebox'
import { Value } from 'typebox/value'
import { codeOf, isObject, printable, tryParseJson } from '../../base/index.js'
import type { BodyOf, BodyShape, Endpoint, ServiceName } from '../../contract/endpoint.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import { failedWith, misused, notFound } from '../errors.js'
import { type Access, accessTo, type Connection } from './connection.js'
import { withCommands } from './requests.js'

/** The arguments of a request, with the types of its endpoint. */
export interface Request<Params extends TSchema, Query extends TSchema, Body extends BodyShape> {
  readonly params?: Static<Params>
  readonly query?: Static<Query>
  readonly body?: BodyOf<Body>
  readonly headers?: Readonly<Record<string, string>>
}

/** A response whose body is not validated. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly value: unknown
}

type QueryValue = string | number | boolean | readonly (string | number)[] | undefined

/**
 * The public APIs of a server. Paths, types and response schemas come from the declarations of the endpoints. A
 * response with another shape is refused, so that commands can trust its fields.
 */
export class Api {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Where the credentials come from, in words. */
  get origin(): string {
    return this.#connection.origin
  }

  /** The data directory of the server, if the command found the server on this machine by its data directory. */
  get dataDir(): string | undefined {
    return this.#connection.dataDir
  }

  /**
   * The URL of a service and the authorization header for it, for requests that this class is too slow for.
   * @throws HomeportError as `accessTo`.
   */
  access(service: ServiceName): Access {
    return accessTo(this.#connection, service)
  }

  /**
   * Calls an operation and returns its response body.
   * @throws HomeportError `server_refused` with the error text of the server, `server_unreachable`, `server_untrusted`.
   */
  async call<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Shape extends TSchema>(
    endpoint: Endpoint<Params, Query, Body, Shape>,
    request: Request<Params, Query, Body> = {},
  ): Promise<Static<Shape>> {
    const { value } = await this.send(endpoint, request)
    return parsed(endpoint.success.body, value)
  }

  /** As `call`, for operations whose status or headers matter: the caller checks them and validates the body. */
  async send<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Shape extends TSchema>(
    endpoint: Endpoint<Params, Query, Body, Shape>,
    request: Request<Params, Query, Body> = {},
  ): Promise<Answer> {
    const response = await this.stream(endpoint, request)
    const text = await response.text().catch((cause: unknown) => {
      throw unreachable(new URL(response.url).origin, cause)
    })
    return { status: response.status, headers: response.headers, value: text === '' ? {} : tryParseJson(text) }
  }

  /** As `call`, for streams: returns the response itself. */
  async stream<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Shape extends TSchema>(
    endpoint: Endpoint<Params, Query, Body, Shape>,
    request: Request<Params, Query, Body> = {},
  ): Promise<Response> {
    const access = accessTo(this.#connection, endpoint.service)
    const target = pathOf(endpoint.path, request.params) + queryOf(request.query)
    const response = await reach(access.url, target, initOf(endpoint, request, access))
    if (response.ok) return response
    throw await refusalOf(response, this.origin)
  }
}

/**
 * Sends a request to a server.
 * @throws HomeportError `server_unreachable`.
 */
export function reach(url: string, target: string, init: RequestInit): Promise<Response> {
  return fetch(url + target, init).catch((cause: unknown) => {
    throw unreachable(url, cause)
  })
}

/**
 * Validates a response body.
 * @throws HomeportError `cli_failed`.
 */
export function parsed<Schema extends TSchema>(schema: Schema, value: unknown): Static<Schema> {
  if (Value.Check(schema, value)) return value
  const problem =
    'The response of the server has an unexpected shape: it is probably another version. Use the homeport command of that version.'
  throw failedWith(problem)
}

/** The path with its parameters: `{name}` is encoded, `{+name}` inserted unchanged. */
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
  for (const [name, value] of Object.entries(init.headers)) refuseInvalidHeader(name, value)
  if (body === undefined) return init
  if (endpoint.body.kind === 'json') {
    const typed = { 'content-type': 'application/json', ...init.headers }
    return { ...init, headers: typed, body: JSON.stringify(body) }
  }
  const isStream = endpoint.body.kind === 'stream'
  return { ...init, body: body as NonNullable<RequestInit['body']>, ...(isStream && { duplex: 'half' as const }) }
}

/** @throws HomeportError `cli_misused` for a header that HTTP does not allow. */
function refuseInvalidHeader(name: string, value: string): void {
  try {
    new Headers([[name, value]])
  } catch (cause) {
    const found = `${printable(name)}: ${name === 'authorization' ? '…' : printable(value)}`
    const problem = `"${found}" cannot be sent as a header: names consist of letters, digits and dashes, values of characters of Latin 1 without line ends. Nothing was sent.`
    throw misused(problem, { cause })
  }
}

/** @param origin where the credentials come from, for the message: the user may not know which ones were used. */
async function refusalOf(response: Response, origin: string): Promise<HomeportError> {
  const body = tryParseJson(await response.text().catch(() => ''))
  const error = isObject(body) ? body.error : undefined
  const { status } = response
  if (typeof error !== 'string')
    return new HomeportError('server_refused', { status, said: `The server responded with ${status} and no reason.` })
  if (status === 404 && error.startsWith('There is no operation ')) return wrongService(response, origin)
  const said =
    status === 401 ? `${withCommands(error)} This command used the credentials of ${origin}.` : withCommands(error)
  return new HomeportError('server_refused', { status, said })
}

function wrongService(response: Response, origin: string): HomeportError {
  const { origin: url } = new URL(response.url)
  const problem = `${url} does not know this request: it is another service of Homeport, or another version. The URL comes from ${origin}; \`homeport env\` prints the URLs of a server.`
  return failedWith(problem)
}

/** Codes of certificate errors in Node and OpenSSL. */
const CERTIFICATE_ERROR = /CERT|^UNABLE_TO_(?:VERIFY|GET)|SELF_SIGNED/

/**
 * The error of a failed request to `url`: nothing responds there, or its certificate is not trusted. The error of `fetch`
 * has no details; its `cause` has the code of the system or of TLS.
 */
export function unreachable(url: string, error: unknown): HomeportError {
  const cause = error instanceof Error ? error.cause : undefined
  const code = codeOf(cause)
  const words = cause instanceof Error ? cause.message : String(error)
  if (CERTIFICATE_ERROR.test(code))
    return new HomeportError('server_untrusted', { url, reason: words }, { cause: error })
  const reason = code === 'ERR_SSL_WRONG_VERSION_NUMBER' ? 'it does not speak TLS there; use http://' : code || words
  return new HomeportError('server_unreachable', { url, reason }, { cause: error })
}

/**
 * Awaits a request for one object and replaces a 404 by `problem`: the text of the server names a request instead of a
 * command.
 * @throws HomeportError `cli_not_found` for a 404; otherwise the error of the request.
 */
export async function orMissing<Answer>(request: Promise<Answer>, problem: string): Promise<Answer> {
  try {
    return await request
  } catch (error) {
    if (!isError(error, 'server_refused') || error.details.status !== 404) throw error
    throw notFound(problem, { cause: error })
  }
}
