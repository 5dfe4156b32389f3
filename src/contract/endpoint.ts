import type { Readable } from 'node:stream'
import { type Static, type TSchema, Type } from 'typebox'
import type { ErrorCode } from './errors/errors.js'

/** Which listener serves an endpoint. */
export type ServiceName = 'management' | 'queue'

/** Topics of operations, in the order of the documentation. */
export const TOPICS = [
  'Databases',
  'Backups and imports',
  'Teams',
  'API keys',
  'Queue tokens',
  'Audit log',
  'Accounts',
  'Queue accounts',
  'Alerts',
  'Server',
  'Console',
  'Messages',
  'Queues',
  'URL groups',
  'Schedules',
  'Flow control',
  'Dead letters',
  'Signing keys',
  'Workflow runs',
  'Failed runs',
  'Events and webhooks',
  'Bulk actions',
] as const

/** The topic of an operation. */
export type Topic = (typeof TOPICS)[number]

/** How a caller authenticates: HTTP Basic with e-mail and API key, a queue token, or not at all. */
export type AuthScheme = 'basic' | 'bearer' | 'none'

/** What a queue token may do. */
export const QUEUE_TOKEN_SCOPES = ['all', 'publish', 'read', 'queue', 'flow_control'] as const

/** A scope of a queue token that is not `all`. */
export type NarrowScope = Exclude<(typeof QUEUE_TOKEN_SCOPES)[number], 'all'>

/** How an operation is authenticated. An operation that accepts queue tokens lists the scopes that suffice. */
export type EndpointAuth =
  | {
      readonly auth: 'bearer'
      /**
       * The narrow scopes that suffice besides `all`; empty: none does. For the scopes `queue` and `flow_control`, the
       * handler compares the queue or key of the request with that of the token.
       */
      readonly scopes: readonly NarrowScope[]
    }
  | { readonly auth: 'basic' | 'none'; readonly scopes?: never }

/** The response to a request that succeeded. */
export interface SuccessShape<Body extends TSchema = TSchema> {
  readonly status: number
  readonly description: string
  /** Schema of the JSON body. */
  readonly body: Body
  /** The content type of a body that is not JSON. */
  readonly contentType?: string
}

/** The keyword of a schema that says in words what its `pattern` requires, as the end of the sentence "the field ...". */
export const PATTERN_IN_WORDS = '$comment'

/**
 * How the server reads a request body: not at all, as JSON with a schema, as raw bytes, or as a stream of any length,
 * which the handler limits. `maxBytes` is a limit below that of the listener. A text in JSON is limited to 1 MiB
 * unless `texts` is `long`.
 */
export type BodyShape =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly schema: TSchema; readonly optional?: true; readonly texts?: 'long' }
  | { readonly kind: 'raw'; readonly maxBytes?: number }
  | { readonly kind: 'stream' }

/** The body of a write without fields: clients send nothing, `{}` or `null`. */
export const noFields = { kind: 'json', optional: true, schema: Type.Unknown() } as const
/** The success of an operation that returns no record. */
export const ok = { status: 200, description: 'The text "OK".', body: Type.Literal('OK') } as const

/** An operation of the wire with what its callers need; see `EndpointShape`. */
export type Endpoint<
  Params extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Body extends BodyShape = BodyShape,
  Answer extends TSchema = TSchema,
> = EndpointShape<Params, Query, Body, Answer> & EndpointAuth

/**
 * One operation of the wire, declared once. Routing, validation, types, OpenAPI and the docs page follow from it.
 * `path` has the form of OpenAPI (`/v2/redis/database/{id}`). A path that ends in `{+name}` takes the rest of the raw
 * request target byte for byte, with slashes and query: destinations of the queue are sent unencoded.
 */
export interface EndpointShape<
  Params extends TSchema = TSchema,
  Query extends TSchema = TSchema,
  Body extends BodyShape = BodyShape,
  Answer extends TSchema = TSchema,
> {
  /** Unique, camelCase; the `operationId` of OpenAPI. */
  readonly id: string
  readonly service: ServiceName
  readonly topic: Topic
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS'
  readonly path: string
  /** `write` endpoints are refused to read-only credentials. */
  readonly access: 'read' | 'write'
  /** `heavy`: it may read thousands of rows or megabytes, so only a few run at a time for an account; others wait. */
  readonly cost?: 'heavy'
  /** One line for lists. */
  readonly summary: string
  /** A paragraph for the docs page: effects, special values, refusals. */
  readonly description: string
  /** An object of texts; absent when the path has no parameters. */
  readonly params?: Params
  /** Query parameters. A list is sent by repetition. Unknown parameters are ignored unless the schema forbids them. */
  readonly query?: Query
  /** Headers, only for the documentation: the handler validates them itself. */
  readonly headers?: TSchema
  /** Further paths that the same handler serves, only for the documentation. */
  readonly aliases?: readonly Endpoint[]
  readonly body: Body
  /**
   * `handler`: the schemas of query and body only document. The handler validates `target` and the parsed JSON itself,
   * because its rules go beyond a schema. Absent: both are validated before the handler is called.
   */
  readonly checkedBy?: 'handler'
  readonly success: SuccessShape<Answer>
  /** Further responses that are not errors, each with its own status, such as 202 for background work. */
  readonly otherAnswers?: readonly SuccessShape[]
  /** The errors that this operation may respond with, besides those that all operations share. */
  readonly errors: readonly ErrorCode[]
}

/** Declares an endpoint: the identity function, for type inference. */
export function endpoint<
  Params extends TSchema,
  Query extends TSchema,
  const Body extends BodyShape,
  Answer extends TSchema,
>(declaration: Endpoint<Params, Query, Body, Answer>): Endpoint<Params, Query, Body, Answer> {
  return declaration
}

/** The value that a handler gets as the body of a request. */
export type BodyOf<Body extends BodyShape> = Body extends {
  kind: 'json'
  optional: true
  schema: infer Schema extends TSchema
}
  ? Static<Schema> | undefined
  : Body extends { kind: 'json'; schema: infer Schema extends TSchema }
    ? Static<Schema>
    : Body extends { kind: 'raw' }
      ? Uint8Array
      : Body extends { kind: 'stream' }
        ? Readable
        : undefined
