import {
  type ConsoleSession,
  createConsoleSession,
  endConsoleSession,
  getConsoleSession,
} from '../contract/console/console.js'
import {
  type Caller,
  type Route,
  reply,
  requireConsoleHeader,
  route,
  sessionCookie,
  sessionSecretOf,
} from '../http/index.js'
import type { Sessions } from './sessions.js'

/** What signing in has to know of the listener. */
export interface SessionRoutesOptions {
  readonly sessions: Sessions
  /** Where the browser reaches the listener: with https the cookie never travels in clear. */
  readonly publicUrl: string
}

/** Signing in to the console, and out again. */
export function sessionRoutes({ sessions, publicUrl }: SessionRoutesOptions): Route[] {
  const isSecure = publicUrl.startsWith('https:')
  return [
    route(createConsoleSession, async ({ body, headers, ip }) => {
      // A page of somebody else must not sign the visitor in as that somebody.
      requireConsoleHeader(headers)
      const { secret, caller } = await sessions.begin(body, ip)
      return reply(200, sessionOf(caller), { 'set-cookie': sessionCookie(sessions.cookieName, secret, isSecure) })
    }),
    route(getConsoleSession, async ({ caller }) => sessionOf(caller)),
    route(endConsoleSession, async ({ headers }) => {
      const secret = sessionSecretOf(headers, sessions.cookieName)
      if (secret !== undefined) await sessions.end(secret)
      return reply(200, 'OK' as const, { 'set-cookie': sessionCookie(sessions.cookieName, '', isSecure) })
    }),
  ]
}

function sessionOf({ email, accountId, accountType, role, access }: Caller): ConsoleSession {
  return { email, account_id: accountId, account_type: accountType, access, ...(role === undefined ? {} : { role }) }
}
