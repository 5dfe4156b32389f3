import { HomeportError } from '../contract/errors/errors.js'
import { OWN_SETTING_HEADERS } from '../contract/queue/setting-headers.js'
import { memoized } from './memoized.js'
import type { HeaderMap } from './types.js'

/** Header name as the reading endpoints show it: `content-type` becomes `Content-Type`. */
export const titleCase = memoized(
  (name) =>
    name.toLowerCase().replace(/(^|-)([a-z])/g, (_whole, dash: string, letter: string) => dash + letter.toUpperCase()),
  { most: 2_000, longest: 200 },
)

/** The first value of a header, whatever the case of its name. */
export function headerOf(headers: HeaderMap, name: string): string | undefined {
  return headers[titleCase(name)]?.[0]
}

/** Converts headers from Node's form (`IncomingHttpHeaders`) to that of the reading endpoints. */
export function toHeaderMap(headers: Readonly<Record<string, string | readonly string[] | undefined>>): HeaderMap {
  const map: Record<string, readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) map[titleCase(name)] = typeof value === 'string' ? [value] : value
  }
  return map
}

/** Whether two lists of headers are the same, in the same order. */
export function areSameHeaders(
  one: Readonly<Record<string, string>>,
  other: Readonly<Record<string, string>>,
): boolean {
  if (one === other) return true
  const names = Object.keys(one)
  const others = Object.keys(other)
  return names.length === others.length && names.every((name, at) => name === others[at] && one[name] === other[name])
}

/** Headers that belong to one connection, or that the sender of a request sets itself. */
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

/** Whether a header must not be forwarded from one connection to another. */
export function isConnectionHeader(lowerName: string): boolean {
  return CONNECTION_HEADERS.has(lowerName)
}

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Whether a header is valid in an HTTP request. Batches carry headers as JSON, which no HTTP parser has checked. */
export function isValidHeader(name: string, value: string): boolean {
  return NAME.test(name) && VALUE.test(value)
}

/** Whether a header only identifies the client software (reference queue 1.7). */
export function isTelemetry(lowerName: string): boolean {
  return lowerName.startsWith('upstash-telemetry-')
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]{1,200})?$/
const MAX_TRACESTATE_LENGTH = 512

/** Whether a header is the trace context of its sender (W3C Trace Context). Malformed ones are ignored, as W3C asks. */
function isTraceContext(lowerName: string, value: string): boolean {
  if (lowerName === 'traceparent') return TRACEPARENT.test(value)
  return lowerName === 'tracestate' && value.length <= MAX_TRACESTATE_LENGTH && VALUE.test(value)
}

/** The headers without the trace context, which differs in every request. */
export function withoutTraceContext({ Traceparent: _parent, Tracestate: _state, ...others }: HeaderMap): HeaderMap {
  return others
}

const PREFIX = 'upstash-forward-'
const OWN_PREFIX = 'homeport-'

/** Whether a header, lower case, is a setting that only Homeport has. */
export const isOwnSetting = (lowerName: string): boolean => lowerName.startsWith(OWN_PREFIX)

/**
 * Whether a header, lower case, is a setting of Homeport in the form of a header to forward:
 * `upstash-forward-homeport-*`.
 */
export const isForwardedOwn = (lowerName: string): boolean => lowerName.startsWith(PREFIX + OWN_PREFIX)

/**
 * The value of a setting that only Homeport has. SDKs add `Upstash-Forward-` to every header that they do not know, so
 * that form is accepted too.
 */
export const ownSetting = (headers: Readonly<Record<string, string>>, lowerName: string): string | undefined =>
  headers[lowerName] ?? headers[FORWARDED_OWN.get(lowerName) ?? PREFIX + lowerName]

/** Each setting of Homeport in its form as a header to forward. A lookup is cheaper than joining two strings. */
const FORWARDED_OWN = new Map(
  OWN_SETTING_HEADERS.map((name) => name.toLowerCase()).map((lowerName) => [lowerName, PREFIX + lowerName]),
)

/** @throws HomeportError for an unknown `Homeport-*` header: a misspelt setting must not be ignored silently. */
function refuseUnknown(name: string): undefined {
  if (FORWARDED_OWN.has(name)) return undefined
  const known = OWN_SETTING_HEADERS.join(', ')
  throw new HomeportError('invalid_request', {
    problem: `The header ${JSON.stringify(titleCase(name).slice(0, 80))} is unknown. Headers that begin with Homeport- are settings and not forwarded: ${known}.`,
  })
}

/**
 * The headers that a destination receives: the content type, the trace context, every `Upstash-Forward-*` header, and
 * with `forwardAll` all other request headers that do not address this server or belong to the connection.
 * @throws HomeportError `invalid_request` for a name or value that is invalid in HTTP.
 */
export function forwardedHeaders(headers: Readonly<Record<string, string>>, forwardAll: boolean): HeaderMap {
  const forwarded: Record<string, readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    const target = targetName(name, value, forwardAll)
    if (target === undefined || isConnectionHeader(target)) continue
    // A header that the publisher forwards explicitly wins over one that the request happens to carry.
    if (target === name && target !== 'content-type' && headers[PREFIX + name] !== undefined) continue
    if (!isValidHeader(target, value)) refuseInvalid(name)
    // The plain content type decides; its forwarded copy must not add a second one (reference queue 3.1).
    if (target === 'content-type' && name !== target && headers[target] !== undefined) continue
    forwarded[titleCase(target)] = [value]
  }
  return forwarded
}

/** Whether a header, lower case, is a setting or can be forwarded without `forwardAll`. */
export const bearsOnMessage = (lowerName: string): boolean =>
  lowerName.startsWith('upstash-') ||
  lowerName.startsWith(OWN_PREFIX) ||
  lowerName === 'content-type' ||
  lowerName === 'traceparent' ||
  lowerName === 'tracestate'

/** A header that a callback forwards, at any depth. */
const OF_CALLBACK = /^upstash-(?:(?:failure-)?callback-)+forward-(.+)$/

/**
 * Refuses invalid headers that callbacks are to forward. Otherwise the error would only appear when the callback is made.
 * @throws HomeportError `invalid_request`.
 */
export function refuseInvalidOfCallbacks(headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    const [, target] = OF_CALLBACK.exec(name) ?? []
    if (target !== undefined && !isValidHeader(target, value)) refuseInvalid(name)
  }
}

/**
 * The settings of a callback without invalid headers to forward. Older versions accepted such headers, and they must not
 * prevent the commit of the message's outcome.
 */
export function forwardable(settings: Readonly<Record<string, string>>): Record<string, string> {
  const isForwardable = ([name, value]: [string, string]): boolean =>
    !name.startsWith(PREFIX) || isValidHeader(name.slice(PREFIX.length), value)
  return Object.fromEntries(Object.entries(settings).filter(isForwardable))
}

function refuseInvalid(name: string): never {
  throw new HomeportError('invalid_request', {
    problem: `The header ${JSON.stringify(name)} has a name or value that is not valid in an HTTP request. Correct it.`,
  })
}

/** Name of a header at the destination, lower case; `undefined` if it is not forwarded. */
function targetName(name: string, value: string, forwardAll: boolean): string | undefined {
  if (name.startsWith(PREFIX)) return forwardedName(name.slice(PREFIX.length))
  if (isOwnSetting(name)) return refuseUnknown(name)
  if (name === 'content-type') return name
  if (name.startsWith('upstash-')) return undefined
  return forwardAll || isTraceContext(name, value) ? name : undefined
}

const forwardedName = (name: string): string | undefined => {
  if (isOwnSetting(name)) return refuseUnknown(name)
  return name.length > 0 ? name : undefined
}
