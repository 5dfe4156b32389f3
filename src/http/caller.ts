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
