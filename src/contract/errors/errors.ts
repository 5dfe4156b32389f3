import { shortened } from '../words/shortened.js'
import { accountsErrors } from './accounts.js'
import { alertsErrors } from './alerts.js'
import { consoleErrors } from './console.js'
import { dataPlaneErrors } from './data-plane.js'
import { databasesErrors } from './databases.js'
import type { ErrorEntry } from './entry.js'
import { httpErrors } from './http.js'
import { nodeErrors } from './nodes.js'
import { objectErrors } from './objects.js'
import { operatorErrors } from './operator.js'
import { queueErrors } from './queue.js'
import { serviceBackupErrors } from './service-backup.js'
import { storeErrors } from './store.js'
import { workflowErrors } from './workflow.js'

export type { ErrorEntry, None } from './entry.js'

/** All errors by code. The order is the order of the docs page. */
export const ERRORS = {
  ...httpErrors,
  ...storeErrors,
  ...operatorErrors,
  ...objectErrors,
  ...serviceBackupErrors,
  ...nodeErrors,
  ...accountsErrors,
  ...consoleErrors,
  ...databasesErrors,
  ...dataPlaneErrors,
  ...queueErrors,
  ...workflowErrors,
  ...alertsErrors,
} as const

/** The name of an error in the catalogue. */
export type ErrorCode = keyof typeof ERRORS

/** The details of an error with this code. */
export type ErrorDetails<Code extends ErrorCode> = Code extends ErrorCode
  ? (typeof ERRORS)[Code] extends ErrorEntry<infer Details>
    ? Details
    : never
  : never

/** An error of the catalogue. Any module throws it; the listener renders it. */
export class HomeportError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: Code
  readonly details: ErrorDetails<Code>

  constructor(code: Code, details: ErrorDetails<Code>, options?: ErrorOptions) {
    const entry: { readonly text: (details: never) => string } = ERRORS[code]
    // A text may repeat a path of 64 KiB, or a value from a body.
    super(shortened(entry.text(details as never)), options)
    this.name = 'HomeportError'
    this.code = code
    this.details = details
  }

  /** The HTTP status of this error. */
  get status(): number {
    return ERRORS[this.code].status
  }

  /** Whether the same request may succeed later. */
  get retry(): 'later' | undefined {
    const entry: { readonly retry?: 'later' } = ERRORS[this.code]
    return entry.retry
  }
}

/**
 * An error of the catalogue without a stack, for the items of a request that are refused one by one. Capturing the stack
 * is most of the cost of an error, and a request may have thousands of refused items.
 */
export function refusal<Code extends ErrorCode>(code: Code, details: ErrorDetails<Code>): HomeportError<Code> {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return new HomeportError(code, details)
  } finally {
    Error.stackTraceLimit = limit
  }
}

/** Whether an error has this code of the catalogue. */
export function isError<Code extends ErrorCode>(error: unknown, code: Code): error is HomeportError<Code> {
  return error instanceof HomeportError && error.code === code
}
