import { codeOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isDamage } from '../damage.js'

/** Decides what an error of the driver or of PostgreSQL means for a connection, a transaction, and the caller. */

const FULL_DISK = new Set(['53100'])
/** The statement took too long, or waited too long for a lock. Its transaction is rolled back; the connection is usable. */
const TIMEOUTS = new Set(['57014', '55P03'])
/** Transient errors: a conflict at every attempt, a lack of memory, a file that the server cannot read. */
const PASSING = /^(?:40|53|58)/
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

/** Whether the driver did not send a statement because it knew that the connection was broken. */
export function wasNeverSent(error: unknown): boolean {
  return error instanceof Error && /not queryable/.test(error.message)
}

/** Whether the connection can no longer be used. */
export function isLoss(error: unknown): boolean {
  const code = codeOf(error)
  return code === READ_ONLY || code === IDLE_IN_TRANSACTION || isStalePlan(error) || isUncertain(error)
}

/**
 * Whether a prepared statement reads whole rows of a table to which a newer node has added a column. A new connection
 * prepares the statement again. Nothing was changed: PostgreSQL refuses the statement before it runs.
 */
const isStalePlan = (error: unknown): boolean =>
  error instanceof Error && 'routine' in error && error.routine === 'RevalidateCachedQuery'

/** Whether the transaction itself took too long: another attempt would take too long as well. */
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
  if (isLoss(error) || TIMEOUTS.has(codeOf(error)) || PASSING.test(codeOf(error)))
    return new HomeportError('store_unavailable', {}, { cause })
  return new Error(`store operation ${operation} failed: ${cause.message}`)
}

/** The message of a driver's error. Neither PostgreSQL nor the driver includes the password. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  return code === '' ? text : `${text} (${code})`
}
