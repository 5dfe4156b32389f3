import type { IncomingHttpHeaders } from 'node:http'
import { CONSOLE_HEADER } from '../contract/console/console.js'

/**
 * Headers of every answer that is data: no browser is to guess its type, keep it, frame it, or run anything in it. As
 * a flat list of names and values.
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
 * The `WWW-Authenticate` of a 401. A browser that is asked for `Basic` shows a login window of its own, keeps what is
 * typed there, and then sends it with whatever any page makes it ask: it gets the name of a scheme that it does not know.
 */
export function challengeFor(scheme: 'Basic' | 'Bearer', headers: IncomingHttpHeaders): string {
  if (scheme === 'Bearer') return 'Bearer realm="homeport"'
  return isBrowser(headers) ? 'xBasic realm="homeport"' : 'Basic realm="homeport", charset="UTF-8"'
}

/** Whether a request may come from a browser, with which no program has to agree that does not say so. */
function isBrowser(headers: IncomingHttpHeaders): boolean {
  const { cookie, origin, accept } = headers
  const says = cookie ?? origin ?? headers['sec-fetch-mode'] ?? headers['sec-fetch-site'] ?? headers[CONSOLE_HEADER]
  return says !== undefined || (accept?.includes('text/html') ?? false)
}
