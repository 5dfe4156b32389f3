import type { Static, TSchema } from 'typebox'
import type { ErrorCode } from './errors.js'

/** Which listener serves an endpoint. */
export type ServiceName = 'management' | 'queue'

/** How a caller proves who it is: HTTP Basic with e-mail and API key, a queue token, or not at all. */
export type AuthScheme = 'basic' | 'bearer' | 'none'

/** The answer to a request that succeeded. */
export interface SuccessShape<Body extends TSchema = TSchema> {
  readonly status: number
  readonly description: string
  /** Schema of the JSON body. */
  readonly body: Body
}

/** How the body of a request is read: not at all, as JSON of a schema, or as bytes that pass through. */
export type BodyShape =
  | { readonly kind: 'none' }
  | { readonly kind: 'json'; readonly schema: TSchema; readonly optional?: true }
  | { readonly kind: 'raw' }

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
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
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
  /** Query parameters. A list may be given by repetition or with commas. Unknown ones are ignored unless the schema forbids them. */
  readonly query?: Query
  readonly body: Body
  readonly success: SuccessShape<Answer>
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
      : undefined
