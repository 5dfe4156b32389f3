import type { IncomingHttpHeaders } from 'node:http'
import type { Static, TSchema } from 'typebox'
import type { BodyOf, BodyShape, Endpoint } from '../contract/endpoint.js'
import type { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from './caller.js'
import type { RemoteNode } from './forwarding.js'

type StaticOr<Schema, Otherwise> = Schema extends TSchema
  ? TSchema extends Schema
    ? Otherwise
    : Static<Schema>
  : Otherwise

/** The argument of a handler: the validated input of the endpoint, and facts about the request. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> {
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The owner of the credentials. Throws on endpoints without authentication. */
  readonly caller: Caller
  /** Address of the client. */
  readonly ip: string
  /** The id of the request, as in its answer. */
  readonly requestId: string
  readonly headers: IncomingHttpHeaders
  /** The request target as it was on the wire, before any decoding. */
  readonly target: string
  /** Aborted when the client disconnects before the response is complete. */
  readonly signal: AbortSignal
  /** Whether the credentials are still valid; a long-lived response must check this from time to time. */
  isStillAllowed(): Promise<boolean>
}

const replies = new WeakSet<object>()

/** A response other than the declared success: another status, more headers, or a body that is not JSON. */
export interface Reply<Value = unknown> {
  readonly status: number
  /** Sent as JSON, or unchanged if it is bytes. */
  readonly value: Value
  readonly headers: Readonly<Record<string, string>>
}

/** Makes a reply with its own status. */
export function reply<Value>(
  status: number,
  value: Value,
  headers: Readonly<Record<string, string>> = {},
): Reply<Value> {
  const made: Reply<Value> = { status, value, headers }
  replies.add(made)
  return made
}

/** Whether a value was made by `reply`. */
export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && replies.has(value)
}

/** The response of operations that return no record: the text "OK", once the work is done. */
export async function ok(work: Promise<unknown>): Promise<'OK'> {
  await work
  return 'OK'
}

/** A request whose body is too large. */
export interface TooLarge {
  readonly headers: IncomingHttpHeaders
  /** The request target as it was on the wire. */
  readonly target: string
  /** Absent on endpoints without authentication. */
  readonly caller: Caller | undefined
  /** The first bytes of the body, at most 64 KiB. */
  readonly head: Buffer
  readonly error: HomeportError
}

/** The properties of a request that decide which node answers it. They are not validated against the schemas yet. */
export interface Addressed {
  readonly params: unknown
  readonly body: unknown
  readonly headers: IncomingHttpHeaders
  readonly caller: Caller
  /** Whether another node has passed the request on to this one. */
  readonly isForwarded: boolean
}

/** An endpoint with the function that serves it. */
export interface Route {
  readonly endpoint: Endpoint
  readonly handler: (call: Call) => Promise<unknown>
  /**
   * Finds the node that answers a request; `undefined`: this node. Only for endpoints with credentials. Omitted: this node
   * answers all requests.
   */
  readonly elsewhere?: (request: Addressed) => Promise<RemoteNode | undefined>
  /** Recognises credentials that only this route accepts, in addition to those of its endpoint. */
  readonly recognise?: (authorization: string | undefined, ip: string) => Caller | undefined
  /** Chooses the error for a body that is too large. Default: the given error. */
  readonly refuseTooLarge?: (request: TooLarge) => HomeportError
}

/**
 * Combines an endpoint with its handler. The handler returns the body of the declared success, or a `reply`; errors that
 * it throws are rendered from the catalogue.
 */
export function route<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Answer extends TSchema>(
  endpoint: Endpoint<Params, Query, Body, Answer>,
  handler: (
    call: Call<StaticOr<Params, Record<never, never>>, StaticOr<Query, Record<never, never>>, BodyOf<Body>>,
  ) => Promise<Static<Answer> | Reply>,
): Route {
  // Safe: the server validates a call against the schemas that these types come from.
  return { endpoint, handler: handler as (call: Call) => Promise<unknown> }
}

/** The parsed path of an endpoint. */
export interface PathPattern {
  /** The path for the router: `:name` for parameters, the fixed segment `-` for a raw rest. */
  readonly routerPath: string
  /** Matches the path of a request target, without its query. */
  readonly matches: (path: string) => boolean
  /** For paths that end in `{+name}`: finds the raw rest of a request target, query included. */
  readonly rest?: {
    readonly name: string
    readonly find: (target: string) => { routerTarget: string; rest: string } | undefined
  }
}

const PARAMETER = /\{(\+?)(\w+)\}/g

/** Parses the path of an endpoint. */
export function parsePath(path: string): PathPattern {
  const raw = /\{\+(\w+)\}$/.exec(path)
  const routerPath = path.replace(PARAMETER, (_whole, plus: string, name: string) => (plus ? '-' : `:${name}`))
  const source = path.replace(/[.]/g, '\\.').replace(PARAMETER, (_whole, plus: string) => (plus ? '.*' : '[^/]+'))
  const whole = new RegExp(`^${source}$`)
  const matches = (candidate: string): boolean => whole.test(candidate)
  const name = raw?.[1]
  if (name === undefined) return { routerPath, matches }
  const prefix = path.slice(0, raw?.index).replace(PARAMETER, '[^/?]+')
  const split = new RegExp(`^(${prefix})([\\s\\S]*)$`)
  const find = (target: string): { routerTarget: string; rest: string } | undefined => {
    const found = split.exec(target)
    return found ? { routerTarget: `${found[1]}-`, rest: found[2] ?? '' } : undefined
  }
  return { routerPath, matches, rest: { name, find } }
}
