import { HomeportError, isError } from '../../contract/errors/errors.js'

/**
 * The error for a command that the engine did not get, or not as a whole, because `error` ended the connection before: only
 * for other commands is it unknown whether they were applied.
 */
export function errorOfUnsent(error: HomeportError): HomeportError {
  return isError(error, 'engine_lost') ? new HomeportError('engine_unavailable', {}, { cause: error }) : error
}

/**
 * Whether a command was not sent because this node no longer serves its database, so that it may be sent to the next home.
 */
export const isNotServedHere = (error: unknown): boolean =>
  isError(error, 'home_not_ready') || isError(error, 'database_moved')
