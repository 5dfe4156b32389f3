import { type ErrorCode, HomeportError, isError } from '../contract/errors/errors.js'

/** Exit codes of all commands. Scripts may rely on these numbers. */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5

/** Success; for `start`, a clean stop. */
export const DONE: ExitCode = 0
/** Failure, or a failed check of `doctor`. The reason is on stderr. */
export const FAILED: ExitCode = 1
/** Invalid arguments, or not confirmed. Nothing was changed. */
export const MISUSED: ExitCode = 2
/** The named object does not exist. */
export const NOT_FOUND: ExitCode = 3
/** Credentials are missing or not sufficient. */
const NOT_ALLOWED: ExitCode = 4
/** The server does not respond, or is unavailable. A later retry may succeed. */
const NOT_NOW: ExitCode = 5

/** The end of `homeport --help`. */
export const EXIT_CODES_HELP = `
Exit codes:
  0  success; for start: a clean stop
  1  failure, or a failed check of doctor; the reason is on stderr
  2  invalid arguments or not confirmed; nothing was changed
  3  the named object does not exist
  4  credentials are missing or not sufficient
  5  the server does not respond or is unavailable; try again later`

const BY_ERROR: Readonly<Partial<Record<ErrorCode, ExitCode>>> = {
  invalid_config: MISUSED,
  cli_misused: MISUSED,
  cli_not_found: NOT_FOUND,
  cli_no_credentials: NOT_ALLOWED,
  server_unreachable: NOT_NOW,
}

const BY_STATUS: Readonly<Record<number, ExitCode>> = {
  400: MISUSED,
  401: NOT_ALLOWED,
  403: NOT_ALLOWED,
  404: NOT_FOUND,
  429: NOT_NOW,
  503: NOT_NOW,
}

/** The exit code of an error. */
export function exitCodeOf(error: unknown): ExitCode {
  if (!(error instanceof HomeportError)) return FAILED
  if (isError(error, 'server_refused')) return BY_STATUS[error.details.status] ?? FAILED
  const code: ErrorCode = error.code
  return BY_ERROR[code] ?? FAILED
}
