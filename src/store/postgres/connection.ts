import pg from 'pg'
import { codeOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isDamage } from '../damage.js'

/** An idle connection is probed after this long, so that a vanished server is noticed. */
const KEEP_ALIVE_MS = 10_000
/** How long a new connection may take, and how long an operation waits for one of the pool. */
const CONNECT_TIMEOUT_MS = 30_000
/** A server that does not answer a statement for this long counts as gone. Statements of ours are far shorter. */
const STATEMENT_TIMEOUT_MS = 60_000

/** PostgreSQL's own numbers of the types whose values we read in another way than the driver. */
const BOOL = 16
const BYTEA = 17
const INT8 = 20
const NUMERIC = 1700

/**
 * Values arrive as SQLite gives them: integers of every size and sums as numbers (ours fit in 53 bits), truth as 1
 * and 0, bytes as plain `Uint8Array`.
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
 * How every connection to this URL is made. Statements are pipelined: one may be sent before its predecessors are
 * answered.
 * @param url `postgres://user:password@host:port/database`.
 * @throws HomeportError `store_not_opened`, without the URL, when it cannot be read.
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

/** Where the URL leads, without user and password. */
export function placeOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/** Serialization failure and deadlock: the transaction did nothing and may simply run again. */
const TRY_AGAIN = new Set(['40001', '40P01'])
const FULL_DISK = new Set(['53100'])
/** Too many connections, for this role or at all: the server is there but has no room for us now. */
const CROWDED = new Set(['53300', '53400'])
/** What the driver says when a connection breaks or does not come about; it gives these no code. */
const DRIVER_LOST = /connection (?:terminated|error|timeout)|not queryable|timeout exceeded|read timeout/i

/** Whether the transaction was rolled back only because another one was in its way. */
export function mayRunAgain(error: unknown): boolean {
  return TRY_AGAIN.has(codeOf(error))
}

/** Whether the server or the way to it is gone, so that nobody knows what became of a commit under way. */
export function isLoss(error: unknown): boolean {
  const code = codeOf(error)
  // 08: connection exceptions; 57P: the server is going down; E...: errors of sockets and of name look-ups.
  if (code.startsWith('08') || code.startsWith('57P') || /^E[A-Z_]+$/.test(code) || CROWDED.has(code)) return true
  return code === '' && error instanceof Error && DRIVER_LOST.test(error.message)
}

/**
 * What a caller gets for an error of the driver. The driver's own object stays behind: it carries the whole
 * connection and, in its details, the values of rows.
 */
export function toStoreError(error: unknown, operation: string): Error {
  if (error instanceof HomeportError) return error
  const cause = new Error(reasonOf(error))
  if (FULL_DISK.has(codeOf(error))) return new HomeportError('store_full', {}, { cause })
  if (isDamage(error)) return new HomeportError('store_damaged', { table: 'unknown', found: cause.message })
  if (isLoss(error)) return new HomeportError('store_unavailable', {}, { cause })
  return new Error(`store operation ${operation} failed: ${cause.message}`)
}

/** An error of the driver in words. Neither PostgreSQL nor the driver puts the password into them. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  return code === '' ? text : `${text} (${code})`
}
