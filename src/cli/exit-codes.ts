import { type ErrorCode, HomeportError, isError } from '../contract/errors/errors.js'

/** How the command ends. Scripts may rely on these numbers. */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5

/** Done; a server was asked to stop and stopped cleanly. */
export const DONE: ExitCode = 0
/** It did not work, or a check of `doctor` failed. The reason is on stderr. */
export const FAILED: ExitCode = 1
/** Called wrongly, or not confirmed: nothing was done. */
export const MISUSED: ExitCode = 2
/** What was named is not there. */
const NOT_FOUND: ExitCode = 3
/** There are no credentials, or they do not allow it. */
const NOT_ALLOWED: ExitCode = 4
/** The server does not answer, or says that it cannot now; trying again later may help. */
const NOT_NOW: ExitCode = 5

/** The end of `homeport --help`. */
export const EXIT_CODES_HELP = `
Exit codes:
  0  done; the server was asked to stop and stopped cleanly
  1  it did not work, or a check of doctor failed; the reason is on stderr
  2  called wrongly or not confirmed; nothing was done
  3  what was named is not there
  4  no credentials, or they do not allow it
  5  the server does not answer, or cannot now; try again later`

const OF_ERRORS: Readonly<Partial<Record<ErrorCode, ExitCode>>> = {
  invalid_config: MISUSED,
  cli_misused: MISUSED,
  cli_not_found: NOT_FOUND,
  cli_no_credentials: NOT_ALLOWED,
  server_unreachable: NOT_NOW,
}

const OF_STATUSES: Readonly<Record<number, ExitCode>> = {
  400: MISUSED,
  401: NOT_ALLOWED,
  403: NOT_ALLOWED,
  404: NOT_FOUND,
  429: NOT_NOW,
  503: NOT_NOW,
}

/** The exit code that tells a script what kind of failure an error is. */
export function exitCodeOf(error: unknown): ExitCode {
  if (!(error instanceof HomeportError)) return FAILED
  if (isError(error, 'server_refused')) return OF_STATUSES[error.details.status] ?? FAILED
  const code: ErrorCode = error.code
  return OF_ERRORS[code] ?? FAILED
}
