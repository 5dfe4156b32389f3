import { codeOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'

/** Errors of the port itself: another program holds it, or this user may not listen on it. */
const PORT_ERRORS = new Set(['EADDRINUSE', 'EACCES'])

/**
 * The error of a port that cannot be opened: `port_taken` if another port might work, otherwise the error of the system,
 * such as `EMFILE`, or `EADDRNOTAVAIL` for an address that the machine does not have.
 */
export function listenError(port: number, cause: Error): Error {
  return PORT_ERRORS.has(codeOf(cause)) ? new HomeportError('port_taken', { port }, { cause }) : cause
}
