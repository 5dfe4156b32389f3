import {
  addTeamMember,
  createApiKey,
  createTeam,
  deleteApiKey,
  deleteTeam,
  listApiKeys,
  listTeamMembers,
  listTeams,
  removeTeamMember,
} from '../contract/accounts/accounts.js'
import { listAuditLogs, listAuditLogsAtRoot, SEARCHED_TO, SEARCHED_TO_TIME } from '../contract/accounts/audit.js'
import { MAX_AUDIT_ENTRIES } from '../contract/accounts/audit-limits.js'
import {
  createQueueToken,
  deleteQueueToken,
  listQueueTokens,
  rotateApiKey,
  rotateNamedQueueToken,
} from '../contract/accounts/credentials.js'
import {
  changeAccountLimits,
  createAccount,
  deleteAccount,
  listAccounts,
  resumeAccount,
  suspendAccount,
} from '../contract/accounts/operator.js'
import {
  type ConsoleSession,
  createConsoleSession,
  endConsoleSession,
  getConsoleSession,
} from '../contract/console/session.js'
import {
  type Caller,
  ok,
  type Route,
  reply,
  requireConsoleHeader,
  route,
  sessionCookie,
  sessionSecretOf,
} from '../http/index.js'
import type { Accounts } from './accounts.js'
import type { Sessions } from './sessions.js'

/** The operations of the management API on teams, API keys and the audit log. */
export function accountRoutes(accounts: Accounts): Route[] {
  return [
    ...teamRoutes(accounts),
    ...keyRoutes(accounts),
    ...tokenRoutes(accounts),
    ...operatorRoutes(accounts),
    ...auditRoutes(accounts),
  ]
}

function teamRoutes({ teams }: Accounts): Route[] {
  return [
    route(listTeams, (call) => teams.list(call.caller)),
    route(createTeam, (call) => teams.create(call.caller, call.body)),
    route(deleteTeam, (call) => ok(teams.remove(call.caller, call.params.id))),
    route(listTeamMembers, (call) => teams.members(call.caller, call.params.team_id)),
    route(addTeamMember, (call) => teams.addMember(call.caller, call.body)),
    route(removeTeamMember, (call) => ok(teams.removeMember(call.caller, call.body))),
  ]
}

function keyRoutes({ keys }: Accounts): Route[] {
  return [
    route(listApiKeys, (call) => keys.list(call.caller, call.query.team_id)),
    route(createApiKey, (call) => keys.create(call.caller, call.body)),
    route(deleteApiKey, (call) => ok(keys.remove(call.caller, call.params.id, call.query.team_id))),
  ]
}

function tokenRoutes({ tokens, keys }: Accounts): Route[] {
  return [
    route(rotateApiKey, ({ caller, params, query, body }) => keys.rotate(caller, params.id, query.team_id, body)),
    route(listQueueTokens, ({ caller, query }) => tokens.list(caller, query.team_id)),
    route(createQueueToken, ({ caller, body }) => tokens.create(caller, body)),
    route(rotateNamedQueueToken, ({ caller, params, query, body }) =>
      tokens.rotate(caller, params.id, query.team_id, body),
    ),
    route(deleteQueueToken, ({ caller, params, query }) => ok(tokens.remove(caller, params.id, query.team_id))),
  ]
}

function operatorRoutes({ operator }: Accounts): Route[] {
  return [
    route(listAccounts, ({ caller }) => operator.list(caller)),
    route(createAccount, ({ caller, body }) => operator.create(caller, body)),
    route(changeAccountLimits, ({ caller, params, body }) => operator.changeLimits(caller, params.id, body)),
    route(suspendAccount, ({ caller, params }) => ok(operator.setSuspended(caller, params.id, true))),
    route(resumeAccount, ({ caller, params }) => ok(operator.setSuspended(caller, params.id, false))),
    route(deleteAccount, ({ caller, params }) => ok(operator.remove(caller, params.id))),
  ]
}

interface AuditQuery {
  readonly limit?: number
  readonly before?: string
  readonly search?: string
}

function auditRoutes(accounts: Accounts): Route[] {
  const read = async ({ caller, query }: { caller: Caller; query: AuditQuery }) => {
    const { limit = MAX_AUDIT_ENTRIES, before, search } = query
    const entries = await accounts.auditLog(caller, limit, before, search)
    // A full page needs no header: the next page continues after its last entry.
    if (search === undefined || entries.length >= limit) return entries
    const end = await accounts.auditSearchEnd(caller, before)
    // The body is a list, so the place is in headers.
    if (end === undefined) return entries
    return reply(200, entries, { [SEARCHED_TO]: end.log_id, [SEARCHED_TO_TIME]: String(Math.floor(end.at / 1000)) })
  }
  return [route(listAuditLogs, read), route(listAuditLogsAtRoot, read)]
}

/** Options of the routes for signing in. */
export interface SessionRoutesOptions {
  readonly sessions: Sessions
  /** Whether an account is the operator's. */
  readonly isOperator: (accountId: string) => boolean
  /** URL of the listener for browsers; with https the cookie is marked `Secure`. */
  readonly publicUrl: string
}

/** The operations for signing in to the console and out. */
export function sessionRoutes({ sessions, publicUrl, isOperator }: SessionRoutesOptions): Route[] {
  const sessionOf = (caller: Caller) => shownSession(caller, isOperator(caller.accountId))
  const isSecure = publicUrl.startsWith('https:')
  return [
    route(createConsoleSession, async ({ body, headers, ip }) => {
      // Login CSRF: a foreign page must not sign the visitor in to the attacker's account.
      requireConsoleHeader(headers)
      const { secret, caller } = await sessions.begin(body, ip)
      return reply(200, sessionOf(caller), { 'set-cookie': sessionCookie(sessions.cookieName, secret, isSecure) })
    }),
    route(getConsoleSession, async ({ headers, ip }) => {
      const secret = sessionSecretOf(headers, sessions.cookieName)
      const caller = secret === undefined ? undefined : await sessions.caller(secret, ip)
      return caller === undefined ? null : sessionOf(caller)
    }),
    route(endConsoleSession, async ({ headers }) => {
      const secret = sessionSecretOf(headers, sessions.cookieName)
      if (secret !== undefined) await sessions.end(secret)
      return reply(200, 'OK' as const, { 'set-cookie': sessionCookie(sessions.cookieName, '', isSecure) })
    }),
  ]
}

function shownSession({ email, accountId, accountType, role, access }: Caller, isOperator: boolean): ConsoleSession {
  const optional = { ...(role === undefined ? {} : { role }), ...(isOperator ? { operator: true as const } : {}) }
  return { email, account_id: accountId, account_type: accountType, access, ...optional }
}
