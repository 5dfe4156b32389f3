import type { IncomingMessage } from 'node:http'
import type { ClientMemoryBudget } from '../base/index.js'
import type { TeamRole } from '../contract/accounts/accounts.js'
import { HomeportError } from '../contract/errors/errors.js'

/** What a restricted queue token may do. */
export type TokenScope =
  | { readonly kind: 'publish' | 'read' }
  | { readonly kind: 'queue' | 'flow_control'; readonly name: string }

/** The owner of a request's credentials. */
export interface Caller {
  /** The account or team that the credentials act for. */
  readonly accountId: string
  readonly email: string
  readonly accountType: 'free' | 'paid'
  /** For the audit log: `API_KEY - <name>`, `QUEUE_TOKEN` or `QUEUE_TOKEN - <name>`. Never a secret. */
  readonly source: string
  readonly access: 'read' | 'write'
  /** Most messages a day of the account; absent: no limit. */
  readonly dailyMessages?: number
  /** What a queue token is limited to; absent: everything that `access` allows. */
  readonly scope?: TokenScope
  /** Only for a team's key: the role of the member with this e-mail. The account is the team. */
  readonly role?: TeamRole
  /** Address of the client. */
  readonly ip: string
  /** The id of the request, for lines of the log. Only for callers of the management API. */
  readonly requestId?: string
}

/** Whether callers may act for an account. `gone`: the account is deleted or being deleted. */
export type Standing = 'active' | 'suspended' | 'gone'

/** Checks credentials. `basic` and `bearer` return `undefined` for wrong ones, and take equal time for every mistake. */
export interface Authenticator {
  /** @param header value of `Authorization`, if any. */
  basic(header: string | undefined, ip: string): Caller | undefined
  /** @param token the queue token, from the header or the query. */
  bearer(token: string | undefined, ip: string): Caller | undefined
  /** Whether callers may act for an account at this moment. Omitted: they may. */
  standingOf?(accountId: string): Standing
}

/** Facts about a request that are known before its body is read. */
export interface Arrival {
  /** The request target as it was on the wire. */
  readonly target: string
  /** The raw rest of the target, for paths that end in `{+name}`. */
  readonly rest: string | undefined
  /** Address of the client; empty when its connection is closed. */
  readonly ip: string
  /** See `request-id.ts`. */
  readonly requestId: string
  /** Budget for the memory that is held for the client. */
  readonly memory: ClientMemoryBudget
  /** Set once the credentials have been checked. */
  caller: Caller | undefined
  /** Size of the answer's body, bytes. Set only when the answer is sent in one piece. */
  answerBytes: number | undefined
}

const ARRIVAL = Symbol('arrival')

/** Stored on the request itself: entries of a `WeakMap` would slow down every young garbage collection. */
interface RequestWithArrival extends IncomingMessage {
  [ARRIVAL]?: Arrival
}

/** Stores the arrival of a request. */
export function setArrival(request: RequestWithArrival, arrival: Arrival): void {
  request[ARRIVAL] = arrival
}

/** The id of a request. */
export const idOf = (request: IncomingMessage): string => arrivalOf(request).requestId

/** The arrival of a request. @throws Error if none was stored. */
export function arrivalOf(request: RequestWithArrival): Arrival {
  const arrival = request[ARRIVAL]
  if (!arrival) throw new Error('a request was not seen by the listener')
  return arrival
}

/**
 * The error for a queue token whose scope does not suffice.
 * @param wanted what the caller asked for: the id of the operation, or words.
 */
export function scopeRefusal(scope: TokenScope, wanted: string): HomeportError {
  const name = 'name' in scope ? scope.name : undefined
  return new HomeportError('token_scope', { scope: scope.kind, name, wanted })
}
