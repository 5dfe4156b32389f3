import type { IncomingHttpHeaders } from 'node:http'
import type { Static, TSchema } from 'typebox'
import type { BodyOf, BodyShape, Endpoint } from '../contract/endpoint.js'
import type { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from './caller.js'

type StaticOr<Schema, Otherwise> = Schema extends TSchema
  ? TSchema extends Schema
    ? Otherwise
    : Static<Schema>
  : Otherwise

/** What a handler gets: everything that its endpoint declares, parsed and checked, and where it came from. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> {
  readonly params: Params
  readonly query: Query
  readonly body: Body
  /** The owner of the credentials. Endpoints without authentication must not ask for it: it throws there. */
  readonly caller: Caller
  /** Address of the client. */
  readonly ip: string
  readonly headers: IncomingHttpHeaders
  /** The request target as it was on the wire, before any decoding. */
  readonly target: string
  /** Fires when the peer has gone before the answer. */
  readonly signal: AbortSignal
  /** Whether the credentials are good still: an answer that goes on for long has to ask. */
  isStillAllowed(): Promise<boolean>
}

const replies = new WeakSet<object>()

/** An answer other than the declared success: another status, more headers, or a body that is not JSON. */
export interface Reply<Value = unknown> {
  readonly status: number
  /** Sent as JSON, unless it is bytes, which go as they are. */
  readonly value: Value
  readonly headers: Readonly<Record<string, string>>
}

/** Makes a reply with a status of its own. */
export function reply<Value>(
  status: number,
  value: Value,
  headers: Readonly<Record<string, string>> = {},
): Reply<Value> {
  const made: Reply<Value> = { status, value, headers }
  replies.add(made)
  return made
}

/** Tells a reply from a plain value, whatever fields that value has. */
export function isReply(value: unknown): value is Reply {
  return typeof value === 'object' && value !== null && replies.has(value)
}

/** What operations without a record to answer with answer: the text "OK", once the work is done. */
export async function ok(work: Promise<unknown>): Promise<'OK'> {
  await work
  return 'OK'
}

/** A request whose body is refused for its size. */
export interface TooLarge {
  readonly headers: IncomingHttpHeaders
  /** The request target as it was on the wire. */
  readonly target: string
  /** Absent where nobody has to say who calls. */
  readonly caller: Caller | undefined
  /** How the body begins, if its size was declared: some ten thousand bytes. */
  readonly head: Buffer
  readonly error: HomeportError
}

/** An endpoint with the function that serves it. */
export interface Route {
  readonly endpoint: Endpoint
  readonly handler: (call: Call) => Promise<unknown>
  /** The error that such a request ends with; without this function it is the given one. */
  readonly refuseTooLarge?: (request: TooLarge) => HomeportError
}

/**
 * Joins an endpoint and its handler. The handler returns the body of the declared success, or a `reply`; what it
 * throws is rendered from the catalogue.
 */
export function route<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Answer extends TSchema>(
  endpoint: Endpoint<Params, Query, Body, Answer>,
  handler: (
    call: Call<StaticOr<Params, Record<never, never>>, StaticOr<Query, Record<never, never>>, BodyOf<Body>>,
  ) => Promise<Static<Answer> | Reply>,
): Route {
  // The server hands over a call only after it has matched the schemas that these types come from.
  return { endpoint, handler: handler as (call: Call) => Promise<unknown> }
}

/** A path of an endpoint, taken apart: how the router is to know it and what the raw rest of it is. */
export interface PathPattern {
  /** The path for the router: `:name` for parameters; a raw rest stands as the fixed segment `-`. */
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

/** Takes the path of an endpoint apart. */
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
