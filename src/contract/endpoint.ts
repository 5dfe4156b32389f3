import type { Readable } from 'node:stream'
import type { Static, TSchema } from 'typebox'
import type { ErrorCode } from './errors/errors.js'

/** Which listener serves an endpoint. */
export type ServiceName = 'management' | 'queue'

/** What operations are about, in the order in which the documentation lists them. */
export const TOPICS = [
  'Databases',
  'Backups and imports',
  'Teams',
  'API keys',
  'Audit log',
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

/** What an operation is about. */
export type Topic = (typeof TOPICS)[number]

/** How a caller proves who it is: HTTP Basic with e-mail and API key, a queue token, or not at all. */
export type AuthScheme = 'basic' | 'bearer' | 'none'

/** The answer to a request that succeeded. */
export interface SuccessShape<Body extends TSchema = TSchema> {
  readonly status: number
  readonly description: string
  /** Schema of the JSON body. */
  readonly body: Body
  /** What the body is where it is not JSON. */
  readonly contentType?: string
}

/** The keyword beside a `pattern` that says what it asks for, as the end of the sentence "the field ...". */
export const PATTERN_IN_WORDS = '$comment'

/**
 * How the body of a request is read: not at all, as JSON of a schema, as bytes that pass through, or as a stream of
 * bytes of any length, which the handler has to bound. Bytes may have a limit of their own below that of the listener,
 * and a text in JSON may be longer than 1 MiB only where that is said.
 */
export type BodyShape =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly schema: TSchema; readonly optional?: true; readonly texts?: 'long' }
  | { readonly kind: 'raw'; readonly mostBytes?: number }
  | { readonly kind: 'stream' }

/**
 * One operation of the wire, declared once. Routing, validation, types, OpenAPI and the docs page come from it.
 * `path` is in OpenAPI form (`/v2/redis/database/{id}`). A path that ends in `{+name}` takes the rest of the raw
 * request target, byte for byte, slashes and query included (destinations of the queue stand there unencoded).
 */
export interface Endpoint<
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
  readonly auth: AuthScheme
  /** `write` endpoints are refused to read-only credentials. */
  readonly access: 'read' | 'write'
  /** One line for lists. */
  readonly summary: string
  /** A paragraph for the docs page: effects, special values, what is refused. */
  readonly description: string
  /** Objects of texts; absent when the path has no parameters. */
  readonly params?: Params
  /** Query parameters. A list is given by repetition; one value is a list of one. Unknown ones are ignored unless the schema forbids them. */
  readonly query?: Query
  readonly body: Body
  /**
   * `handler`: the schemas of query and body only document, and the handler judges `target` and the parsed JSON itself,
   * because its rules say more than a schema can. Absent: both are checked before the handler is called.
   */
  readonly checkedBy?: 'handler'
  readonly success: SuccessShape<Answer>
  /** Further answers that are no errors, each with a status of its own, such as 202 for work that goes on. */
  readonly otherAnswers?: readonly SuccessShape[]
  /** The errors of the catalogue that this operation itself may answer, besides those every operation shares. */
  readonly errors: readonly ErrorCode[]
}

/** Declares an endpoint; the identity function, for its inference. */
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
