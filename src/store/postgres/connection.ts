import { Socket, type TcpSocketConnectOpts } from 'node:net'
import pg from 'pg'
import { TargetGate } from '../../base/index.js'
import { type PostgresTarget, parsePostgresUrl } from '../../config/index.js'
import { HomeportError } from '../../contract/errors/errors.js'

/** Idle time before TCP keep-alive probes, which detect a lost server. */
const KEEP_ALIVE_MS = 10_000
/** A server that does not answer a statement for this long counts as lost: its own `statement_timeout` is shorter. */
const STATEMENT_TIMEOUT_MS = 35_000

/** PostgreSQL's type numbers of values that are not parsed as the driver does by default. */
const BOOL = 16
const BYTEA = 17
const INT8 = 20
const NUMERIC = 1700

/**
 * Returns values as SQLite does: integers of every size and sums as numbers (Homeport's fit in 53 bits), booleans as 1 and
 * 0, bytes as plain `Uint8Array`.
 */
export function parserOf(type: number, format?: 'text' | 'binary'): (text: string) => unknown {
  switch (type) {
    case INT8:
    case NUMERIC:
      return Number
    case BOOL:
      return (text) => (text === 't' ? 1 : 0)
    case BYTEA:
      return (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'))
    default:
      return pg.types.getTypeParser(type, format as 'text')
  }
}

/** Looks names up for sockets. */
export type Lookup = NonNullable<TcpSocketConnectOpts['lookup']>

/**
 * A socket that looks its host up like the names of destinations: a silent name server must not block the threads for all
 * look-ups. The driver has no setting for that, and opens its sockets by this call.
 */
function socketWith(lookup: Lookup): Socket {
  const socket = new Socket()
  const connect = socket.connect.bind(socket)
  const open = (port: number | string, host?: string): Socket =>
    host === undefined ? connect(String(port)) : connect({ port: Number(port), host, lookup })
  return Object.assign(socket, { connect: open })
}

/**
 * Settings of all connections to a host. Statements are pipelined: one may be sent before earlier ones are answered.
 * @param url of one host; see `parsePostgresUrl`.
 * @param connectTimeoutMs time limit until the host has accepted the password.
 */
export function connectionSettings(
  url: string,
  connectTimeoutMs: number,
  work: 'short' | 'long',
  lookup: Lookup = new TargetGate('everything').lookup,
): pg.ClientConfig & { pipeline: true } {
  // The driver's type of this setting covers its own overloads only.
  const types = { getTypeParser: parserOf } as pg.CustomTypesConfig
  return {
    connectionString: url,
    application_name: 'homeport',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: connectTimeoutMs,
    ...(work === 'short' && { query_timeout: STATEMENT_TIMEOUT_MS }),
    pipeline: true,
    stream: () => socketWith(lookup),
    types,
  }
}

/**
 * The hosts of a URL, and its place without user and password.
 * @throws HomeportError `store_not_opened`, without the URL, when the URL is invalid.
 */
export function targetOf(url: string): PostgresTarget {
  const target = parsePostgresUrl(url)
  if ('problem' in target) throw new HomeportError('store_not_opened', { where: 'postgres://', reason: target.problem })
  return target
}
