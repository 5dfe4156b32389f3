import type { IncomingHttpHeaders } from 'node:http'
import { CONSOLE_HEADER } from '../contract/console/console.js'
import { HomeportError } from '../contract/errors/errors.js'
import type { Caller } from './caller.js'

/** Enough that no two servers on one host share it. */
const ID_CHARACTERS = 12

/** Knows who is signed in to the console. */
export interface SessionKeeper {
  /** Name of the cookie; see `cookieNameOf`. */
  readonly cookieName: string
  /** The caller that the session with this secret stands for; `undefined` when there is none, or its key has ended. */
  caller(secret: string, ip: string): Promise<Caller | undefined>
}

/**
 * The name of the cookie of one installation. Browsers know hosts and no ports: under one name, signing in to a second
 * server of a host would end the session at the first. The id is that of the store, so that all its nodes agree.
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

/** The value of `Set-Cookie`; an empty secret takes the cookie away. */
export function sessionCookie(cookieName: string, secret: string, isSecure: boolean): string {
  // A session moves on with each use, so the server alone knows its end; the browser keeps the cookie while it is open.
  const age = secret === '' ? '; Max-Age=0' : ''
  return `${cookieName}=${secret}; Path=/; HttpOnly; SameSite=Strict${age}${isSecure ? '; Secure' : ''}`
}

/**
 * Refuses what another page could have sent: a form or an image cannot set this header, and a script of another origin
 * is not allowed to, because this listener grants nothing to other origins.
 */
export function requireConsoleHeader(headers: IncomingHttpHeaders): void {
  if (headers[CONSOLE_HEADER] !== '1') throw new HomeportError('console_header_missing', {})
}
