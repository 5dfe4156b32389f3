import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** The header that carries the id of a request, in both directions. */
export const REQUEST_ID_HEADER = 'x-request-id'

/** Texts that can be repeated in a header and a log line unchanged. */
const SAFE = /^[A-Za-z0-9._~+/=:@-]{1,128}$/

/** The id that a client has given its request; `undefined` if there is none, or it is not safe to repeat. */
export function givenRequestId(headers: IncomingHttpHeaders): string | undefined {
  const given = headers[REQUEST_ID_HEADER]
  return typeof given === 'string' && SAFE.test(given) ? given : undefined
}

/** The id of a request: the client's, or a new one. */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  return givenRequestId(headers) ?? randomUUID()
}
