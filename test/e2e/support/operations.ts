import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** The part of JSON Schema that this folder uses. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

interface Media {
  readonly schema: JsonSchema
  readonly example?: unknown
}

/** The part of an OpenAPI operation that this folder uses. */
export interface OperationObject {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly description?: string
    readonly schema: JsonSchema
  }[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, { description: string; content: Readonly<Record<string, Media>> }>>
}

/** The document at `/openapi.json` of a service. */
export interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, { type: string; scheme: string }>>
    readonly schemas: Readonly<Record<string, JsonSchema>>
  }
}

/** An operation that matches requests and validates answers. */
export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Whether the path of a request may be this operation's; `whole` lets the last parameter hold slashes. */
  readonly matches: (path: string, last: 'segment' | 'whole') => boolean
  readonly answers: ReadonlyMap<number, DeclaredAnswer>
}

/** The declaration of an operation's answers with one status. */
export interface DeclaredAnswer {
  readonly contentType: string
  /** The declared schema, closed to undeclared fields; compiled when it is first asked for, because a test meets few of them. */
  readonly matcher: () => ValidateFunction
}

/** Formats beyond JSON Schema, with their meaning here. */
export const FORMATS = { binary: true } as const

/** The operations of a served document. */
export class Operations {
  readonly all: readonly Operation[]

  constructor(document: OpenApiDocument) {
    const ajv = new Ajv2020({ strict: false, allErrors: true, formats: FORMATS })
    const { Error: error = {} } = document.components.schemas
    const ofError = compiledOnce(ajv, error)
    const matcherOf = (schema: JsonSchema) => ('$ref' in schema ? ofError : compiledOnce(ajv, schema))
    this.all = Object.entries(document.paths)
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => toOperation(method, path, operation, matcherOf)),
      )
      .sort((one, other) => literals(other.path) - literals(one.path))
  }

  /** The operation that serves a request; fixed paths win over parameters. */
  find(method: string, path: string): Operation | undefined {
    const candidates = this.all.filter((operation) => operation.method === method)
    return (
      candidates.find((operation) => operation.matches(path, 'segment')) ??
      candidates.find((operation) => operation.matches(path, 'whole'))
    )
  }
}

const literals = (path: string): number => path.split('/').filter((segment) => !segment.startsWith('{')).length

function compiledOnce(ajv: Ajv2020, schema: JsonSchema): () => ValidateFunction {
  let compiled: ValidateFunction | undefined
  return () => (compiled ??= ajv.compile(closed(schema)))
}

function toOperation(
  method: string,
  path: string,
  operation: OperationObject,
  matcherOf: (schema: JsonSchema) => () => ValidateFunction,
): Operation {
  const pattern = path.replace(/\{\w+\}/g, '[^/]+')
  const bySegment = new RegExp(`^${pattern}$`)
  const byWhole = new RegExp(`^${path.endsWith('}') ? pattern.replace(/\[\^\/\]\+$/, '.+') : pattern}$`)
  const answers = Object.entries(operation.responses).map(([status, response]) => {
    const [contentType = '', { schema } = { schema: {} }] = Object.entries(response.content)[0] ?? []
    return [Number(status), { contentType, matcher: matcherOf(schema) }] as const
  })
  return {
    id: operation.operationId,
    method: method.toUpperCase(),
    path,
    matches: (candidate, last) => (last === 'segment' ? bySegment : byWhole).test(candidate),
    answers: new Map(answers),
  }
}

/**
 * The schema with every object closed that does not say otherwise. An undeclared field in an answer is a deviation too,
 * because readers of the description cannot know it.
 */
export function closed(schema: unknown): JsonSchema {
  return close(schema) as JsonSchema
}

function close(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(close)
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, close(member)]))
  const isOpen = 'properties' in inner && !('additionalProperties' in inner)
  return isOpen ? { ...inner, additionalProperties: false } : inner
}
