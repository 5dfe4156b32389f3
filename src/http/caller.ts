/** Who makes a request, as the credentials prove. */
export interface Caller {
  readonly accountId: string
  readonly email: string
  readonly accountType: 'free' | 'paid'
  /** For the audit log: `API_KEY - <name>` or `QUEUE_TOKEN`. Never a secret. */
  readonly source: string
  readonly access: 'read' | 'write'
  /** Address of the peer. */
  readonly ip: string
}

/** Checks credentials. Both answer `undefined` for anything wrong, and take the same time for every kind of wrong. */
export interface Authenticator {
  /** @param header value of `Authorization`, if any. */
  basic(header: string | undefined, ip: string): Caller | undefined
  /** @param token the queue token, taken out of the header or the query. */
  bearer(token: string | undefined, ip: string): Caller | undefined
}
