import type { IncomingHttpHeaders } from 'node:http'
import { CONSOLE_HEADER } from '../contract/console/session.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from './caller.js'

/** Enough characters that two servers on one host do not share a name. */
const ID_CHARACTERS = 12

/** Finds the caller of a console session. */
export interface SessionResolver {
  /** Name of the cookie; see `cookieNameOf`. */
  readonly cookieName: string
  /** The caller of the session with this secret; `undefined` when there is none or its API key was deleted. */
  caller(secret: string, ip: string): Promise<Caller | undefined>
}

/**
 * The cookie name of an installation. Cookies belong to a host, not to a port: with one name, signing in to a second
 * server on a host would end the session with the first. The installation id comes from the store, so all nodes agree.
 */
export function cookieNameOf(installationId: string): string {
  return `homeport_session_${installationId.replaceAll('-', '').slice(0, ID_CHARACTERS)}`
}

/** The secret in the session cookie of a request. */
export function sessionSecretOf(headers: IncomingHttpHeaders, cookieName: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  const own = pairs.find((pair) => pair.startsWith(`${cookieName}=`))
  return own?.slice(cookieName.length + 1) || undefined
}

/** The value of `Set-Cookie`; an empty secret deletes the cookie. */
export function sessionCookie(cookieName: string, secret: string, isSecure: boolean): string {
  // Each use extends the session, so only the server knows its end. The browser keeps the cookie until it is closed.
  const age = secret === '' ? '; Max-Age=0' : ''
  return `${cookieName}=${secret}; Path=/; HttpOnly; SameSite=Strict${age}${isSecure ? '; Secure' : ''}`
}

/**
 * Refuses requests that a page of another origin could have sent (CSRF): forms and images cannot set this header, and
 * scripts of other origins may not, because the listener sends no CORS headers.
 */
export function requireConsoleHeader(headers: IncomingHttpHeaders): void {
  if (headers[CONSOLE_HEADER] !== '1') throw new HomeportError('console_header_missing', {})
}
