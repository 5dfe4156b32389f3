import { HomeportError } from '../contract/errors/errors.js'
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

const PREFIX = 'upstash-forward-'

/**
 * The headers that a destination gets: the content type, everything under `Upstash-Forward-`, and with `forwardAll`
 * every other header of the request that does not speak to this server or belong to the connection.
 * @throws HomeportError `invalid_request` for a name or value that cannot stand in a request.
 */
export function forwardedHeaders(headers: Readonly<Record<string, string>>, forwardAll: boolean): HeaderMap {
  const forwarded: Record<string, readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    const target = targetName(name, forwardAll)
    if (target === undefined || isConnectionHeader(target)) continue
    // What the publisher says for the destination stands above what the request happened to have.
    if (target === name && target !== 'content-type' && headers[PREFIX + name] !== undefined) continue
    if (!isValidHeader(target, value)) {
      throw new HomeportError('invalid_request', {
        problem: `The header ${JSON.stringify(name)} has a name or value that cannot stand in an HTTP request. Correct it.`,
      })
    }
    // The plain content type decides; its forwarded copy must not add a second one (reference queue 3.1).
    if (target === 'content-type' && name !== target && headers[target] !== undefined) continue
    forwarded[titleCase(target)] = [value]
  }
  return forwarded
}

/** The name under which the destination gets a header, in lower case; `undefined` when it does not get it. */
function targetName(name: string, forwardAll: boolean): string | undefined {
  if (name.startsWith(PREFIX)) return name.length > PREFIX.length ? name.slice(PREFIX.length) : undefined
  if (name === 'content-type') return name
  if (!forwardAll || name.startsWith('upstash-')) return undefined
  return name
}
