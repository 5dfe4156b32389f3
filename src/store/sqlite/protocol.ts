import { codeOf } from '../../base/index.js'
import { ERRORS, type ErrorCode, HomeportError } from '../../contract/errors/errors.js'
import { isDamage, type StoreDamage } from '../damage.js'
import type { CheckpointLink } from './paced-checkpoints.js'

/** What a store thread is started with. */
export interface ThreadSettings {
  /** Of the database file. */
  readonly path: string
  readonly access: 'read' | 'write'
  /** URLs of sources that declare further operations. */
  readonly modules: readonly string[]
}

/** One operation on its way to a store thread. */
export interface Call {
  /** Its answer carries it too: answers do not come in the order of the calls. */
  readonly id: number
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

/** What a caller is told: the id of the call, and its outcome. */
export interface Answer {
  readonly id: number
  readonly outcome: Outcome
}

/** What a store thread says: `ready` or `failed` once, at its start; then the answers to calls, and `held` to a `hold`; `damaged` whenever it has met damage. */
export type FromThread =
  | { readonly kind: 'ready' }
  | { readonly kind: 'held' }
  | { readonly kind: 'damaged'; readonly damage: StoreDamage }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'done'; readonly answers: readonly Answer[] }

/** Calls are sent, and run in one transaction, up to about this many: the first of them waits for the last. */
export const LARGEST_BATCH = 1_000

/**
 * What a store thread is told. After `hold` no operation of the background begins, and once the last one is committed the
 * thread says so; `checkpoint` has it copy what is left of the log, and lets them go on. `lend` gives it the way to a
 * checkpoint thread, in place of an earlier one. `close` is the last message; what came before is finished first.
 */
export type ToThread =
  | { readonly kind: 'run'; readonly calls: readonly Call[] }
  | { readonly kind: 'hold' }
  | { readonly kind: 'checkpoint' }
  | { readonly kind: 'lend'; readonly link: CheckpointLink }
  | { readonly kind: 'close' }

/** SQLite's codes for a disk that has no room, or none for this user. */
const FULL_DISK = new Set(['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR_SHMSIZE'])
/** After these nothing that the connection says can be trusted. */
const BEYOND_TRUST = /^SQLITE_IOERR/

/** Whether the disk is broken, so that the thread must not go on. */
export function isBeyondTrust(error: unknown): boolean {
  return BEYOND_TRUST.test(codeOf(error)) && !FULL_DISK.has(codeOf(error))
}

/**
 * An error on its way out of a thread that ends with it: an error of the driver would arrive without its text, since it
 * is of a class that the other side does not know.
 */
export function crossable(error: unknown): Error {
  const code = codeOf(error)
  const text = error instanceof Error ? error.message : String(error)
  return Object.assign(new Error(code === '' ? text : `${text} (${code})`), code === '' ? {} : { code })
}

/** Makes an error ready to cross the thread boundary. */
export function toFailure(error: unknown): Failure {
  if (error instanceof HomeportError) return { code: error.code, details: error.details, message: error.message }
  if (FULL_DISK.has(codeOf(error))) return { code: 'store_full', details: {}, message: ERRORS.store_full.text({}) }
  const message = error instanceof Error ? error.message : String(error)
  if (!isDamage(error)) return { message }
  return toFailure(new HomeportError('store_damaged', { table: 'unknown', found: message }))
}

/** Makes the error again on this side of the thread boundary. */
export function toError(failure: Failure, operation: string): Error {
  if (failure.code === undefined) return new Error(`store operation ${operation} failed: ${failure.message}`)
  return new HomeportError(failure.code, failure.details as never)
}
