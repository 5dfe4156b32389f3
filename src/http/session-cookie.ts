import type { IncomingHttpHeaders } from 'node:http'
import { CONSOLE_HEADER } from '../contract/console.js'
import { HomeportError } from '../contract/errors.js'
import type { Caller } from './caller.js'

const COOKIE_NAME = 'homeport_session'

/** Knows who is signed in to the console. */
export interface SessionKeeper {
  /** Whoever the session with this secret stands for; `undefined` when there is none, or its key has ended. */
  caller(secret: string, ip: string): Promise<Caller | undefined>
}

/** The secret in the session cookie of a request. */
export function sessionSecretOf(headers: IncomingHttpHeaders): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  const own = pairs.find((pair) => pair.startsWith(`${COOKIE_NAME}=`))
  return own?.slice(COOKIE_NAME.length + 1) || undefined
}

/** The value of `Set-Cookie`; an empty secret takes the cookie away. */
export function sessionCookie(secret: string, isSecure: boolean): string {
  // A session moves on with each use, so the server alone knows its end; the browser keeps the cookie while it is open.
  const age = secret === '' ? '; Max-Age=0' : ''
  return `${COOKIE_NAME}=${secret}; Path=/; HttpOnly; SameSite=Strict${age}${isSecure ? '; Secure' : ''}`
}

/**
 * Refuses what another page could have sent: a form or an image cannot set this header, and a script of another origin
 * is not allowed to, because this listener grants nothing to other origins.
 */
export function requireConsoleHeader(headers: IncomingHttpHeaders): void {
  if (headers[CONSOLE_HEADER] !== '1') throw new HomeportError('console_header_missing', {})
}
