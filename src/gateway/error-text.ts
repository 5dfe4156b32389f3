import { ERRORS, type ErrorEntry, type HomeportError } from '../contract/errors/errors.js'

/** An error as the data plane words it on RESP and REST alike: the first word tells its kind (reference redis 2.2). */
export function errorText(error: HomeportError): string {
  const entry: Pick<ErrorEntry<never>, 'resp'> = ERRORS[error.code]
  return `${entry.resp ?? 'ERR'} ${error.message}`
}
