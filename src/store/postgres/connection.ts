import pg from 'pg'
import { codeOf } from '../../base/index.js'
import { type PostgresTarget, parsePostgresUrl } from '../../config/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isDamage } from '../damage.js'

/** Idle time before TCP keep-alive probes, which detect a lost server. */
const KEEP_ALIVE_MS = 10_000
/** A server that does not answer a statement for this long counts as lost: it would have ended the statement itself. */
const STATEMENT_TIMEOUT_MS = 35_000

/** PostgreSQL's type numbers of values that are not parsed as the driver does by default. */
const BOOL = 16
const BYTEA = 17
const INT8 = 20
const NUMERIC = 1700

/**
 * Returns values as SQLite does: integers of every size and sums as numbers (ours fit in 53 bits), booleans as 1 and 0,
 * bytes as plain `Uint8Array`.
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

/**
 * Settings of all connections to a host. Statements are pipelined: one may be sent before earlier ones are answered.
 * @param url of one host; see `parsePostgresUrl`.
 * @param connectTimeoutMs time limit until the host has accepted the password.
 */
export function connectionSettings(
  url: string,
  connectTimeoutMs: number,
  work: 'short' | 'long',
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

const FULL_DISK = new Set(['53100'])
/** The statement took too long, or waited too long for a lock. Its transaction is rolled back; the connection lives. */
const TIMEOUTS = new Set(['57014', '55P03'])
/** A server that does not accept writes: a standby, or a primary that was demoted. */
export const READ_ONLY = '25006'
/** The server ended a connection because its transaction did nothing for too long. */
const IDLE_IN_TRANSACTION = '25P03'
/** The server ended a connection because its transaction took too long. */
const TRANSACTION_TIMEOUT = '25P04'
/** Too many connections, for this role or in total. */
const TOO_MANY_CONNECTIONS = new Set(['53300', '53400'])
/** Messages of the driver for lost or failed connections; these errors have no code. */
const DRIVER_LOST = /connection (?:terminated|error|timeout)|not queryable|timeout e(?:xceeded|xpired)|read timeout/i

/** Whether the server or the connection is lost, so that the outcome of a pending commit is unknown. */
export function isUncertain(error: unknown): boolean {
  const code = codeOf(error)
  // 08: connection exceptions; 57P: shutdown of the server; E…: errors of sockets and DNS.
  if (code.startsWith('08') || code.startsWith('57P') || /^E[A-Z_]+$/.test(code)) return true
  if (code === TRANSACTION_TIMEOUT || TOO_MANY_CONNECTIONS.has(code)) return true
  return code === '' && error instanceof Error && DRIVER_LOST.test(error.message)
}

/** Whether a statement was not sent: the driver refuses it on a connection that it knows to be broken. */
export function wasNeverSent(error: unknown): boolean {
  return error instanceof Error && /not queryable/.test(error.message)
}

/** Whether the connection can no longer be used. */
export function isLoss(error: unknown): boolean {
  const code = codeOf(error)
  return code === READ_ONLY || code === IDLE_IN_TRANSACTION || isStalePlan(error) || isUncertain(error)
}

/**
 * A newer node has added a column to a table while this one runs, and a prepared statement reads its whole rows. A new
 * connection prepares it again. Nothing was changed: PostgreSQL refuses the statement before it runs.
 */
const isStalePlan = (error: unknown): boolean =>
  error instanceof Error && 'routine' in error && error.routine === 'RevalidateCachedQuery'

/** Whether the transaction itself took too long: the next attempt would too. */
export function isTooLong(error: unknown): boolean {
  return codeOf(error) === TRANSACTION_TIMEOUT
}

/** Whether an error that ended one connection says nothing about the others. */
export function isOfOneTransaction(error: unknown): boolean {
  const code = codeOf(error)
  return code === IDLE_IN_TRANSACTION || code === TRANSACTION_TIMEOUT
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
  if (isLoss(error) || TIMEOUTS.has(codeOf(error))) return new HomeportError('store_unavailable', {}, { cause })
  return new Error(`store operation ${operation} failed: ${cause.message}`)
}

/** The message of a driver's error. Neither PostgreSQL nor the driver includes the password. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  return code === '' ? text : `${text} (${code})`
}
