import type { IncomingHttpHeaders } from 'node:http'
import { CONSOLE_HEADER } from '../contract/console/session.js'

/**
 * Headers of every response that is data: browsers must not guess its type, cache it, frame it, or run anything in it. A
 * flat list of names and values.
 */
export const DATA_HEADERS = [
  'x-content-type-options',
  'nosniff',
  'cache-control',
  'no-store',
  'content-security-policy',
  "default-src 'none'; frame-ancestors 'none'",
] as const

/** The same as an object. */
export const DATA_HEADER_MAP: Readonly<Record<string, string>> = {
  [DATA_HEADERS[0]]: DATA_HEADERS[1],
  [DATA_HEADERS[2]]: DATA_HEADERS[3],
  [DATA_HEADERS[4]]: DATA_HEADERS[5],
}

/**
 * The `WWW-Authenticate` of a 401. A browser that gets `Basic` shows its own login window, remembers the password, and then
 * sends it with every request that any page triggers. So a browser gets the name of a scheme that it does not know.
 */
export function challengeFor(scheme: 'Basic' | 'Bearer', headers: IncomingHttpHeaders): string {
  if (scheme === 'Bearer') return 'Bearer realm="homeport"'
  return isBrowser(headers) ? 'xBasic realm="homeport"' : 'Basic realm="homeport", charset="UTF-8"'
}

/** Whether a request looks as if a browser sent it. */
function isBrowser(headers: IncomingHttpHeaders): boolean {
  const { cookie, origin, accept } = headers
  const sign = cookie ?? origin ?? headers['sec-fetch-mode'] ?? headers['sec-fetch-site'] ?? headers[CONSOLE_HEADER]
  return sign !== undefined || (accept?.includes('text/html') ?? false)
}
