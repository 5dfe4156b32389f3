import { codeOf } from '../../base/index.js'
import { ERRORS, type ErrorCode, HomeportError } from '../../contract/errors/errors.js'
import { isDamage, type StoreDamage } from '../damage.js'
import type { CheckpointLink } from './paced-checkpoints.js'

/** `workerData` of a store thread. */
export interface ThreadSettings {
  /** Path of the database file. */
  readonly path: string
  readonly access: 'read' | 'write'
  /** URLs of sources that declare more operations. */
  readonly modules: readonly string[]
}

/** A call of an operation, for a store thread. */
export interface Call {
  /** Matches the answer, because answers do not come in the order of the calls. */
  readonly id: number
  readonly name: string
  readonly args: unknown
}

/** A serialized error: of the catalogue, or any other. */
export interface Failure {
  readonly code?: ErrorCode
  readonly details?: unknown
  readonly message: string
}

/** The outcome of one operation. */
export type Outcome = { readonly value: unknown } | { readonly failure: Failure }

/** The id of a call and its outcome. */
export interface Answer {
  readonly id: number
  readonly outcome: Outcome
}

/**
 * Messages of a store thread: `ready` or `failed` once, at its start; then `done` with answers, `batches-paused` after a
 * `pause-batches`, and `damaged` whenever it finds damage.
 */
export type FromThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'batches-paused' }
  | { readonly kind: 'damaged'; readonly damage: StoreDamage }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'done'; readonly answers: readonly Answer[] }

/** Maximum number of calls in one message and, approximately, in one transaction: the first waits for the last. */
export const MAX_BATCH_SIZE = 1_000

/**
 * Messages to a store thread. After `pause-batches` it starts no background batch, and answers `batches-paused` once the
 * running one is committed; `checkpoint` makes it copy the rest of the log and continue with batches. `link` gives it a
 * link to a new checkpoint thread. `close` is the last message; the thread finishes earlier ones first.
 */
export type ToThread =
  | { readonly kind: 'run'; readonly calls: readonly Call[] }
  | { readonly kind: 'pause-batches' }
  | { readonly kind: 'checkpoint' }
  | { readonly kind: 'link'; readonly link: CheckpointLink }
  | { readonly kind: 'close' }

/** SQLite's codes for a full disk or an exhausted quota. */
const FULL_DISK = new Set(['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR_SHMSIZE'])
/** Another process, such as a shell of SQLite, has kept the file locked for longer than the store waits. */
const LOCKED = /^SQLITE_BUSY/
/** Errors after which the connection can no longer be trusted. */
const IO_ERROR = /^SQLITE_IOERR/

/** Whether an error means that the disk is broken, so that the thread must end. */
export function isDiskBroken(error: unknown): boolean {
  return IO_ERROR.test(codeOf(error)) && !FULL_DISK.has(codeOf(error))
}

/** Whether a transaction could not begin: see `LOCKED`. */
export const isLocked = (error: unknown): boolean => LOCKED.test(codeOf(error))

/**
 * Converts an error that ends the thread into a plain `Error`: an error of the driver's class would lose its message on
 * the way to the other thread.
 */
export function toPlainError(error: unknown): Error {
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  return Object.assign(new Error(code === '' ? text : `${text} (${code})`), code === '' ? {} : { code })
}

/** Serializes an error for another thread. */
export function toFailure(error: unknown): Failure {
  if (error instanceof HomeportError) return { code: error.code, details: error.details, message: error.message }
  if (FULL_DISK.has(codeOf(error))) return { code: 'store_full', details: {}, message: ERRORS.store_full.text({}) }
  if (isLocked(error)) return toFailure(new HomeportError('store_unavailable', {}))
  const message = error instanceof Error ? error.message : String(error)
  if (!isDamage(error)) return { message }
  return toFailure(new HomeportError('store_damaged', { table: 'unknown', found: message }))
}

/** Recreates an error from another thread. */
export function toError(failure: Failure, operation: string): Error {
  if (failure.code === undefined) return new Error(`store operation ${operation} failed: ${failure.message}`)
  return new HomeportError(failure.code, failure.details as never)
}
