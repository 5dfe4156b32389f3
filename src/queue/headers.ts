import { remembering } from './remember.js'
import type { HeaderMap } from './types.js'

/** Writes a header name the way the reading endpoints show it: `content-type` becomes `Content-Type`. */
export const titleCase = remembering(
  (name) =>
    name.toLowerCase().replace(/(^|-)([a-z])/g, (_whole, dash: string, letter: string) => dash + letter.toUpperCase()),
  { most: 2_000, longest: 200 },
)

/** The first value of a header, whatever the case of its name. */
export function headerOf(headers: HeaderMap, name: string): string | undefined {
  return headers[titleCase(name)]?.[0]
}

/** Headers as Node gives them (`IncomingHttpHeaders`), in the form of the reading endpoints. */
export function toHeaderMap(headers: Readonly<Record<string, string | readonly string[] | undefined>>): HeaderMap {
  const map: Record<string, readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) map[titleCase(name)] = typeof value === 'string' ? [value] : value
  }
  return map
}

/** Headers that belong to one connection, or that the sender of a request has to make itself. */
const CONNECTION_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Whether a header must not be passed on from one connection to another. */
export function isConnectionHeader(lowerName: string): boolean {
  return CONNECTION_HEADERS.has(lowerName)
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Whether a name and a value may stand in a request; a batch brings them as JSON, which no HTTP parser has checked. */
export function isValidHeader(name: string, value: string): boolean {
  return NAME.test(name) && VALUE.test(value)
}

/** Whether a header only tells which client made the request (reference queue 1.7). */
export function isTelemetry(lowerName: string): boolean {
  return lowerName.startsWith('upstash-telemetry-')
}
