import pg from 'pg'
import { HomeportError } from '../../contract/errors/errors.js'

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
