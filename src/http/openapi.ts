import type { TSchema } from 'typebox'
import { type AuthScheme, type Endpoint, type ServiceName, TOPICS } from '../contract/endpoint.js'
import { ERRORS, type ErrorCode } from '../contract/errors/errors.js'

/** A service to describe. */
export interface Described {
  readonly service: ServiceName
  readonly version: string
  /** Where users reach the service. */
  readonly publicUrl: string
  readonly endpoints: readonly Endpoint[]
}

/** Titles of the services. */
export const SERVICE_TITLES: Readonly<Record<ServiceName, string>> = {
  management: 'Homeport management API',
  queue: 'Homeport queue and workflow API',
}

/** Errors of every operation. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'invalid_request',
  'host_not_served',
  'headers_too_large',
  'internal',
  'store_unavailable',
  'starting',
]
/** Errors of every operation that writes. */
const WRITE_ERRORS: readonly ErrorCode[] = ['store_full', 'store_outcome_unknown']
/** Errors of every operation with a body. */
const OF_BODIES: readonly ErrorCode[] = ['body_too_large', 'body_too_slow', 'memory_short']
/** Errors of every heavy operation; see `HeavyRequests`. */
const HEAVY_ERRORS: readonly ErrorCode[] = ['too_many_heavy_requests']
const JSON_BODY = 'application/json'
const RETRY_AFTER = {
  'Retry-After': { description: 'Seconds to wait, if the request may succeed later.', schema: { type: 'integer' } },
}
const SCHEMES = {
  basic: { type: 'http', scheme: 'basic', description: 'E-mail and API key of the account.' },
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The queue token. Senders that cannot set a header may send it as the query parameter `qstash_token`.',
  },
}
const ERROR = {
  type: 'object',
  description: 'Every error of the API.',
  required: ['error'],
  properties: { error: { type: 'string', description: 'What is wrong, what was found and what to do.' } },
}
/** Headers of error responses, by status. */
const RESPONSE_HEADERS: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { description: 'The authentication scheme.', schema: { type: 'string' } } },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
}
/** The server accepts bodies of any type. Generated clients need named types, and use the first by default. */
const STREAM = 'application/octet-stream'
const ANY_BODY = {
  [JSON_BODY]: { schema: {} },
  'text/plain': { schema: { type: 'string' } },
  [STREAM]: { schema: { type: 'string', format: 'binary' } },
}

/** The OpenAPI 3.1 description of a service. */
export function openApi(described: Described): object {
  const paths: Record<string, Record<string, object>> = {}
  const named = new Map<string, string>()
  const all = described.endpoints.flatMap((endpoint) => [endpoint, ...(endpoint.aliases ?? [])])
  for (const endpoint of all) {
    const own = endpoint.path.replace('{+', '{')
    const path = firstWithShape(named, own)
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: operation(endpoint, renaming(own, path)) }
  }
  return {
    openapi: '3.1.0',
    info: { title: SERVICE_TITLES[described.service], version: described.version },
    servers: [{ url: described.publicUrl, description: 'This server' }],
    tags: TOPICS.filter((topic) => described.endpoints.some((endpoint) => endpoint.topic === topic)).map((name) => ({
      name,
    })),
    paths,
    components: {
      securitySchemes: Object.fromEntries(
        Object.entries(SCHEMES).filter(([name]) => all.some(({ auth }) => auth === name)),
      ),
      schemas: { Error: ERROR },
    },
  }
}

const PARAMETER = /\{(\w+)\}/g

/** OpenAPI treats paths that differ only in the names of parameters as one path. The first one stands for all. */
function firstWithShape(named: Map<string, string>, path: string): string {
  const shape = path.replace(PARAMETER, '{}')
  const first = named.get(shape) ?? path
  named.set(shape, first)
  return first
}

/** Maps the parameter names of a path to those of another path with the same shape. */
function renaming(own: string, path: string): ReadonlyMap<string, string> {
  const names = (text: string): string[] => [...text.matchAll(PARAMETER)].map((match) => match[1] ?? '')
  const others = names(path)
  return new Map(names(own).map((name, index) => [name, others[index] ?? name]))
}

function operation(endpoint: Endpoint, names: ReadonlyMap<string, string>): object {
  return {
    operationId: endpoint.id,
    tags: [endpoint.topic],
    summary: endpoint.summary,
    description: endpoint.description,
    security: endpoint.auth === 'none' ? [] : [{ [endpoint.auth]: [] }],
    parameters: [
      ...parameters(endpoint.params, 'path', names),
      ...parameters(endpoint.query, 'query'),
      ...parameters(endpoint.headers, 'header'),
    ],
    ...requestBody(endpoint),
    responses: responses(endpoint),
  }
}

function parameters(
  schema: TSchema | undefined,
  place: 'path' | 'query' | 'header',
  names: ReadonlyMap<string, string> = new Map(),
): object[] {
  return propertiesOf(schema).map(({ name, property, required }) => {
    const { description, ...shape }: TSchema & { description?: string } = property
    return {
      name: names.get(name) ?? name,
      in: place,
      required: place === 'path' || required,
      description,
      schema: shape,
    }
  })
}

function requestBody(endpoint: Endpoint): object {
  switch (endpoint.body.kind) {
    case 'none':
      return {}
    case 'raw':
      return { requestBody: { description: 'Any bytes, of any content type.', required: false, content: ANY_BODY } }
    case 'stream':
      return {
        requestBody: { required: true, content: { [STREAM]: { schema: { type: 'string', format: 'binary' } } } },
      }
    case 'json':
      return {
        requestBody: { required: !endpoint.body.optional, content: { [JSON_BODY]: withExample(endpoint.body.schema) } },
      }
  }
}

const withExample = (schema: TSchema): object => ({ schema, example: exampleOf(schema) })

function responses(endpoint: Endpoint): Record<string, object> {
  const answers: Record<string, object> = {}
  for (const { status, description, body, contentType } of [endpoint.success, ...(endpoint.otherAnswers ?? [])]) {
    const content = contentType === undefined ? { [JSON_BODY]: withExample(body) } : { [contentType]: { schema: body } }
    answers[status] = { description, content }
  }
  for (const [status, texts] of errorsByStatus(endpoint)) {
    answers[status] = {
      description: texts.join('; '),
      ...(RESPONSE_HEADERS[status] && { headers: RESPONSE_HEADERS[status] }),
      content: { [JSON_BODY]: { schema: { $ref: '#/components/schemas/Error' } } },
    }
  }
  return answers
}

/** The errors of an endpoint, by HTTP status. */
function errorsByStatus(endpoint: Endpoint): Map<number, ErrorCode[]> {
  const codes = new Set<ErrorCode>([
    ...authErrors(endpoint.auth, endpoint.access),
    ...COMMON_ERRORS,
    ...(endpoint.access === 'write' ? WRITE_ERRORS : []),
    ...(endpoint.cost === 'heavy' ? HEAVY_ERRORS : []),
    ...bodyErrors(endpoint),
    ...endpoint.errors,
  ])
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codes) {
    const { status } = ERRORS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return new Map([...byStatus].sort(([a], [b]) => a - b))
}

/** The server does not read the body of a GET. */
function bodyErrors({ method, body }: Endpoint): readonly ErrorCode[] {
  if (method === 'GET') return []
  return body.kind === 'json' ? ['invalid_json', 'body_too_complex', ...OF_BODIES] : OF_BODIES
}

function authErrors(auth: AuthScheme, access: 'read' | 'write'): ErrorCode[] {
  if (auth === 'none') return []
  const always: ErrorCode[] = ['unauthorized', 'account_suspended']
  if (access === 'write') always.push('readonly_api_key')
  return auth === 'bearer' ? [...always, 'token_scope'] : always
}

/** The members of a JSON Schema that the documentation uses. */
interface DocumentedSchema {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly TSchema[]
  readonly items?: TSchema
  readonly examples?: readonly unknown[]
  readonly minimum?: number
}

/** An example value of a schema: its required fields, or the first field if none is required. Texts are `...`. */
export function exampleOf(schema: TSchema): unknown {
  const documented: DocumentedSchema = schema
  const { examples, const: only, enum: values, anyOf, type, items, minimum } = documented
  const known = examples?.[0] ?? only ?? values?.[0]
  if (known !== undefined) return known
  if (anyOf?.[0]) return exampleOf(anyOf[0])
  switch (type) {
    case 'array':
      return items ? [exampleOf(items)] : []
    case 'object': {
      const all = propertiesOf(schema)
      const needed = all.filter(({ required }) => required)
      const shown = needed.length > 0 ? needed : all.slice(0, 1)
      return Object.fromEntries(shown.map(({ name, property }) => [name, exampleOf(property)]))
    }
    case 'boolean':
      return false
    case 'null':
      return null
    case 'integer':
    case 'number':
      return Math.max(minimum ?? 1, 1)
    case 'string':
      return '...'
    default:
      return {}
  }
}

/** The properties of an object schema, in the order of their declaration. */
function propertiesOf(schema: TSchema | undefined): { name: string; property: TSchema; required: boolean }[] {
  const object = schema as { properties?: Record<string, TSchema>; required?: readonly string[] } | undefined
  const required = new Set(object?.required ?? [])
  return Object.entries(object?.properties ?? {}).map(([name, property]) => ({
    name,
    property,
    required: required.has(name),
  }))
}
