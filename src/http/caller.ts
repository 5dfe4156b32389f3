import type { IncomingMessage } from 'node:http'
import type { TeamRole } from '../contract/accounts/accounts.js'

/** Who makes a request, as the credentials prove. */
export interface Caller {
  /** The account or team that the credentials act for. */
  readonly accountId: string
  readonly email: string
  readonly accountType: 'free' | 'paid'
  /** For the audit log: `API_KEY - <name>` or `QUEUE_TOKEN`. Never a secret. */
  readonly source: string
  readonly access: 'read' | 'write'
  /** With a key of a team, whose account is the team: what the member with this e-mail is to it. */
  readonly role?: TeamRole
  /** Address of the client. */
  readonly ip: string
}

/** Checks credentials. Both answer `undefined` for anything wrong, and take the same time for every kind of wrong. */
export interface Authenticator {
  /** @param header value of `Authorization`, if any. */
  basic(header: string | undefined, ip: string): Caller | undefined
  /** @param token the queue token, taken out of the header or the query. */
  bearer(token: string | undefined, ip: string): Caller | undefined
}

/** What is known of a request before its body is read. */
export interface Arrival {
  /** The request target as it was on the wire. */
  readonly target: string
  /** The raw rest of the target, for paths that end in `{+name}`. */
  readonly rest: string | undefined
  /** Address of the client; empty when its connection is gone. */
  readonly ip: string
  /** Set once the credentials have been checked. */
  caller: Caller | undefined
}

const ARRIVAL = Symbol('arrival')

/** A member of the request itself: with entries of a weak map, every collection of young garbage would cost more. */
interface Arrived extends IncomingMessage {
  [ARRIVAL]?: Arrival
}

/** Notes how a request came. */
export function noteArrival(request: Arrived, arrival: Arrival): void {
  request[ARRIVAL] = arrival
}

/** How a request came. */
export function arrivalOf(request: Arrived): Arrival {
  const arrival = request[ARRIVAL]
  if (!arrival) throw new Error('a request came past the door')
  return arrival
}
