import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'

/** A JSON Schema, as far as this folder reads one. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

interface Media {
  readonly schema: JsonSchema
  readonly example?: unknown
}

/** An operation of an OpenAPI document, as far as this folder reads it. */
export interface OperationObject {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: JsonSchema }[]
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, { description: string; content: Readonly<Record<string, Media>> }>>
}

/** What a service serves at `/openapi.json`. */
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

/** An operation that can be recognised by a request and judges answers. */
export interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Whether the path of a request may be this operation's; `whole` lets the last parameter hold slashes. */
  readonly matches: (path: string, last: 'segment' | 'whole') => boolean
  readonly answers: ReadonlyMap<number, DeclaredAnswer>
}

/** What an operation says of its answers with one status. */
export interface DeclaredAnswer {
  readonly contentType: string
  /** Holds the declared schema, closed. */
  readonly matches: ValidateFunction
}

/** What JSON Schema does not know, with what it means here. */
export const FORMATS = { binary: true } as const

/** The operations of a served document. */
export class Operations {
  readonly all: readonly Operation[]

  constructor(document: OpenApiDocument) {
    const ajv = new Ajv2020({ strict: false, allErrors: true, formats: FORMATS })
    const { Error: error } = document.components.schemas
    this.all = Object.entries(document.paths)
      .flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => toOperation(ajv, method, path, operation, error)),
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

function toOperation(
  ajv: Ajv2020,
  method: string,
  path: string,
  operation: OperationObject,
  error: JsonSchema | undefined,
): Operation {
  const pattern = path.replace(/\{\w+\}/g, '[^/]+')
  const bySegment = new RegExp(`^${pattern}$`)
  const byWhole = new RegExp(`^${path.endsWith('}') ? pattern.replace(/\[\^\/\]\+$/, '.+') : pattern}$`)
  const answers = Object.entries(operation.responses).map(([status, response]) => {
    const [contentType = '', { schema } = { schema: {} }] = Object.entries(response.content)[0] ?? []
    const matches = ajv.compile(closed('$ref' in schema ? (error ?? {}) : schema))
    return [Number(status), { contentType, matches }] as const
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
 * The schema with every object closed that does not say otherwise. A field that is answered and not declared is a
 * deviation too: nobody who reads the description could know of it.
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
