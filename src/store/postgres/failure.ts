import { codeOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isDamage } from '../damage.js'

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
