import { ERRORS, type ErrorCode, HomeportError } from '../../contract/errors.js'

/** What a store thread is started with. */
export interface ThreadSettings {
  readonly path: string
  readonly access: 'read' | 'write'
}

/** One operation on its way to a store thread. */
export interface Call {
  readonly name: string
  readonly args: unknown
}

/** An error on its way back: of the catalogue, or anything else. */
export interface Failure {
  readonly code?: ErrorCode
  readonly details?: unknown
  readonly message: string
}

/** The outcome of one operation. */
export type Outcome = { readonly value: unknown } | { readonly failure: Failure }

/** What a store thread says: it is ready, or the outcomes of the batch it was given, in order. */
export type FromThread = { readonly kind: 'ready' } | { readonly kind: 'done'; readonly outcomes: readonly Outcome[] }

/** What a store thread is told. */
export type ToThread = { readonly kind: 'run'; readonly calls: readonly Call[] } | { readonly kind: 'close' }

/** SQLite's codes for a disk that has no room. */
const FULL_DISK = new Set(['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR_FSYNC'])

/** Makes an error ready to cross the thread boundary. */
export function toFailure(error: unknown): Failure {
  if (error instanceof HomeportError) return { code: error.code, details: error.details, message: error.message }
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (FULL_DISK.has(code)) return { code: 'store_full', details: {}, message: ERRORS.store_full.text({}) }
  return { message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }
}

/** Makes the error again on this side of the thread boundary. */
export function toError(failure: Failure, operation: string): Error {
  if (failure.code === undefined) return new Error(`store operation ${operation} failed: ${failure.message}`)
  return new HomeportError(failure.code, failure.details as never)
}
