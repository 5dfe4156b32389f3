import { type OpenApiDocument, type Operation, Operations } from './operations.js'

/** The traffic of this process with one server, validated against the server's description. */
export interface Watch {
  /** Ids of the operations that have been called. */
  readonly called: ReadonlySet<string>
  /** Descriptions of answers that differ from their declaration. */
  readonly deviations: readonly string[]
  /** The descriptions by the origin that serves them. */
  readonly documents: ReadonlyMap<string, OpenApiDocument>
  /** Forgets the server. */
  stop(): void
}

const JSON_TYPE = 'application/json'
/** Pages that every listener has besides its operations. */
const PAGES = ['/health', '/openapi.json', '/docs']

/**
 * Watches every `fetch` of this process to these origins, including those of the clients. Requests stay unchanged.
 * Deviations of answers are collected, because a client would mistake an exception here for a lost connection and
 * retry.
 */
export async function watchTraffic(origins: readonly string[]): Promise<Watch> {
  const original = globalThis.fetch
  const documents = new Map(await Promise.all(origins.map((origin) => described(origin))))
  const operations = new Map([...documents].map(([origin, document]) => [origin, new Operations(document)]))
  const called = new Set<string>()
  const deviations: string[] = []
  const watched: typeof fetch = async (input, init) => {
    const request = new URL(input instanceof Request ? input.url : input)
    const method = (init?.method ?? (input instanceof Request ? input.method : 'GET')).toUpperCase()
    const response = await original(input, init)
    const known = operations.get(request.origin)
    if (known === undefined || PAGES.includes(request.pathname)) return response
    const operation = known.find(method, request.pathname)
    if (operation) called.add(operation.id)
    const problem = judge(operation, method, response, await response.clone().text())
    if (problem) deviations.push(`${method} ${request.pathname}${request.search}: ${problem}`)
    return response
  }
  globalThis.fetch = watched
  const stop = () => {
    if (globalThis.fetch === watched) globalThis.fetch = original
  }
  return { called, deviations, documents, stop }
}

async function described(origin: string): Promise<readonly [string, OpenApiDocument]> {
  const response = await fetch(`${origin}/openapi.json`)
  return [origin, (await response.json()) as OpenApiDocument]
}

function judge(operation: Operation | undefined, method: string, response: Response, text: string): string | undefined {
  const shown = `${response.status} ${text.slice(0, 300)}`
  const answer = operation?.answers.get(response.status)
  const expected = answer?.contentType ?? JSON_TYPE
  const contentType = response.headers.get('content-type')
  if (!contentType?.startsWith(expected)) return `${shown} is said to be ${contentType}, not ${expected}`
  // An answer to HEAD is described with a body, but has none.
  if (expected !== JSON_TYPE || method === 'HEAD') return undefined
  const value = parsed(text)
  if (value === undefined) return `${shown} is not JSON`
  // Requests outside of operations get a generic error.
  if (operation === undefined) return isError(value) ? undefined : `${shown} is no declared operation and no error`
  if (answer === undefined) return `${operation.id} does not declare ${shown}`
  const matches = answer.matcher()
  if (matches(value)) return undefined
  const reasons = matches.errors?.map(({ instancePath, message, params }) =>
    `${instancePath} ${message} ${JSON.stringify(params)}`.trim(),
  )
  return `${operation.id} answered ${shown}: ${reasons?.join('; ')}`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isError = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.keys(value).join() === 'error' &&
  'error' in value &&
  typeof value.error === 'string'
