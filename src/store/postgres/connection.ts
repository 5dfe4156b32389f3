import pg from 'pg'
import { codeOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isDamage } from '../damage.js'

/** Idle time before TCP keep-alive probes, which detect a lost server. */
const KEEP_ALIVE_MS = 10_000
/** Time limit for connecting, and for waiting for a connection of the pool. */
const CONNECT_TIMEOUT_MS = 30_000
/** A server that does not answer a statement for this long counts as lost. Our statements are far shorter. */
const STATEMENT_TIMEOUT_MS = 60_000

/** PostgreSQL's type numbers of values that are not parsed as the driver does by default. */
const BOOL = 16
const BYTEA = 17
const INT8 = 20
const NUMERIC = 1700

/**
 * Returns values as SQLite does: integers of every size and sums as numbers (ours fit in 53 bits), booleans as 1 and 0,
 * bytes as plain `Uint8Array`.
 */
function parserOf(type: number, format?: 'text' | 'binary'): (text: string) => unknown {
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

/**
 * Settings of all connections to a URL. Statements are pipelined: one may be sent before earlier ones are answered.
 * @param url `postgres://user:password@host:port/database`.
 * @throws HomeportError `store_not_opened`, without the URL, when the URL is invalid.
 */
export function connectionSettings(url: string): pg.ClientConfig & { pipeline: true } {
  if (!URL.canParse(url)) {
    const reason = 'the URL is not valid, it has the form postgres://user:password@host:port/database'
    throw new HomeportError('store_not_opened', { where: 'postgres://', reason })
  }
  // The driver's type of this setting covers its own overloads only.
  const types = { getTypeParser: parserOf } as pg.CustomTypesConfig
  return {
    connectionString: url,
    application_name: 'homeport',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: STATEMENT_TIMEOUT_MS,
    pipeline: true,
    types,
  }
}

/** The URL without user and password. */
export function placeOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

const FULL_DISK = new Set(['53100'])
/** Too many connections, for this role or in total. */
const TOO_MANY_CONNECTIONS = new Set(['53300', '53400'])
/** Messages of the driver for lost or failed connections; these errors have no code. */
const DRIVER_LOST = /connection (?:terminated|error|timeout)|not queryable|timeout exceeded|read timeout/i

/** Whether the server or the connection is lost, so that the outcome of a pending commit is unknown. */
export function isLoss(error: unknown): boolean {
  const code = codeOf(error)
  // 08: connection exceptions; 57P: shutdown of the server; E…: errors of sockets and DNS.
  if (code.startsWith('08') || code.startsWith('57P') || /^E[A-Z_]+$/.test(code) || TOO_MANY_CONNECTIONS.has(code))
    return true
  return code === '' && error instanceof Error && DRIVER_LOST.test(error.message)
}

/**
 * The error that callers get for a driver's error. The driver's object is dropped, because it refers to the connection and
 * its details contain values of rows.
 */
export function toStoreError(error: unknown, operation: string): Error {
  if (error instanceof HomeportError) return error
  const cause = new Error(reasonOf(error))
  if (FULL_DISK.has(codeOf(error))) return new HomeportError('store_full', {}, { cause })
  if (isDamage(error)) return new HomeportError('store_damaged', { table: 'unknown', found: cause.message })
  if (isLoss(error)) return new HomeportError('store_unavailable', {}, { cause })
  return new Error(`store operation ${operation} failed: ${cause.message}`)
}

/** The message of a driver's error. Neither PostgreSQL nor the driver includes the password. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  return code === '' ? text : `${text} (${code})`
}
