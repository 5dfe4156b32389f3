/**
 * One function for every operation of the server. A page passes the declaration of an endpoint (`src/contract/`), which
 * has the method, the path and all types.
 */
import type { Static, TSchema } from 'typebox'
import { CONSOLE_HEADER, createConsoleSession } from '../../../src/contract/console/session.js'
import type { BodyShape, Endpoint } from '../../../src/contract/endpoint.js'
import { noteServerTime } from '../lib/clock.js'

/** The type that a schema describes; `undefined` where an endpoint declares none. */
type Given<Schema extends TSchema> = TSchema extends Schema ? undefined : Static<Schema>

/** The body that the browser sends to an endpoint. */
type Sent<Body extends BodyShape> = Body extends { kind: 'json'; optional: true; schema: infer Schema extends TSchema }
  ? Static<Schema> | undefined
  : Body extends { kind: 'json'; schema: infer Schema extends TSchema }
    ? Static<Schema>
    : Body extends { kind: 'none' }
      ? undefined
      : BodyInit | undefined

type Part<Name extends string, Value> = undefined extends Value
  ? { readonly [Key in Name]?: Value }
  : { readonly [Key in Name]: Value }

/** The arguments of a call: exactly those that the endpoint declares. */
export type ApiArgs<Params extends TSchema, Query extends TSchema, Body extends BodyShape> = Part<
  'params',
  Given<Params>
> &
  Part<'body', Sent<Body>> & {
    readonly query?: Given<Query>
    /** Further headers, such as the settings of a message. */
    readonly headers?: Readonly<Record<string, string>>
  }

/** An error response of the server, with its own text. */
export class ApiError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.name = 'ApiError'
    this.status = status
  }
}

/** Whether the session has ended. */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401

/** Whether the server gave no answer. It may be down, starting or busy, so a later request may succeed. */
export const isWithoutAnswer = (error: unknown): error is ApiError =>
  error instanceof ApiError && [0, 429, 502, 503, 504].includes(error.status)

/** Whether the server failed, so that the outcome of a change is unknown. */
export const hasUnknownOutcome = (error: Error): boolean =>
  !(error instanceof ApiError) || error.status === 0 || error.status >= 500

interface LooseArgs {
  readonly params?: unknown
  readonly query?: unknown
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Calls an endpoint with the session of the signed-in user.
 * @throws ApiError when the server responds with an error, or cannot be reached (status 0).
 */
export async function api<
  Params extends TSchema,
  Query extends TSchema,
  Body extends BodyShape,
  Answer extends TSchema,
>(
  endpoint: Endpoint<Params, Query, Body, Answer>,
  args: ApiArgs<Params, Query, Body>,
  signal?: AbortSignal,
): Promise<Static<Answer>> {
  return (await apiWithHeaders(endpoint, args, signal)).body
}

/** The same, and also returns the headers of the response, for operations that answer in headers, too. */
export async function apiWithHeaders<
  Params extends TSchema,
  Query extends TSchema,
  Body extends BodyShape,
  Answer extends TSchema,
>(
  endpoint: Endpoint<Params, Query, Body, Answer>,
  args: ApiArgs<Params, Query, Body>,
  signal?: AbortSignal,
): Promise<{ readonly body: Static<Answer>; readonly headers: Headers }> {
  const askedMs = Date.now()
  const request = fetch(urlOf(endpoint, args), requestOf(endpoint, args, signal))
  const exchange = request.then(async (response) => ({ response, text: await response.text() }))
  const { response, text } = await exchange.catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'The server cannot be reached. Check that it runs and that this computer is online.')
  })
  noteServerTime(response.headers.get('date'), askedMs)
  if (isPage(response)) throw new ApiError(response.ok ? 502 : response.status, refusalIn(response, text))
  if (response.status === 401 && endpoint.id !== createConsoleSession.id)
    throw new ApiError(401, 'Your session has ended. Sign in, then try again.')
  if (!response.ok) throw new ApiError(response.status, refusalIn(response, text))
  // The tests of the server check its responses against the same schema.
  return { body: answerIn(response, text) as Static<Answer>, headers: response.headers }
}

/** The URL of a call, without the origin. */
export function urlOf(endpoint: Pick<Endpoint, 'path'>, { params, query }: LooseArgs): string {
  const values = (params ?? {}) as Readonly<Record<string, unknown>>
  const path = endpoint.path.replace(/\{(\+?)(\w+)\}/g, (_whole, raw: string, name: string) => {
    const value = String(values[name] ?? '')
    return raw === '' ? encodeURIComponent(value) : value
  })
  const search = searchOf(query)
  return search === '' ? path : `${path}?${search}`
}

/** A query string; lists repeat their name, `undefined` values are left out. */
function searchOf(query: unknown): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const item of Array.isArray(value) ? value : [value]) if (item !== undefined) search.append(name, String(item))
  }
  return search.toString()
}

function requestOf({ method, body: shape }: Endpoint, { body, headers }: LooseArgs, signal?: AbortSignal): RequestInit {
  const isJson = shape.kind === 'json' && body !== undefined
  return {
    method,
    credentials: 'same-origin',
    headers: {
      ...(isJson ? { 'content-type': 'application/json' } : {}),
      ...(method === 'GET' ? {} : { [CONSOLE_HEADER]: '1' }),
      ...headers,
    },
    ...(signal ? { signal } : {}),
    ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : (body as BodyInit) }),
  }
}

/** Whether the response is an HTML page. Then a proxy sent it: the server never answers a call with a page. */
const isPage = (response: Response): boolean => response.headers.get('content-type')?.includes('text/html') === true

function answerIn(response: Response, text: string): unknown {
  if (!response.headers.get('content-type')?.includes('application/json')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The error text of a response with this body. */
export function refusalIn(response: Response, text: string): string {
  if (isPage(response))
    return `Something between this browser and the server answered in its place, with status ${response.status}. Try again in a moment.`
  const answer = answerIn(response, text)
  const named = typeof answer === 'object' && answer !== null && 'error' in answer ? answer.error : answer
  return typeof named === 'string' && named !== ''
    ? forPeople(named)
    : `The server responded with status ${response.status} and gave no reason.`
}

/** A request of the API at the beginning of a sentence, or after its purpose: `Enable TLS first: POST /v2/...`. */
const REQUEST = /(?:^|[:;] |^(?:Read its log|Follow it) with )(?:GET|POST|PUT|PATCH|DELETE) \/v2\/.*$/

/** A text of the server without the API requests that it names: pages have links and buttons for them. */
function forPeople(text: string): string {
  const sentences = text.split(/(?<=[.!?]) (?=[A-Z])/).map((sentence) => sentence.replace(REQUEST, '.'))
  return sentences.filter((sentence) => sentence !== '.').join(' ') || text
}
