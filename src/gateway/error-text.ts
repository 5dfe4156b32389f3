import { ERRORS, type ErrorEntry, type HomeportError } from '../contract/errors/errors.js'

/** The text of an error on RESP and REST. Its first word names its kind (reference redis 2.2). */
export function errorText(error: HomeportError): string {
  const entry: Pick<ErrorEntry<never>, 'resp'> = ERRORS[error.code]
  return `${entry.resp ?? 'ERR'} ${error.message}`
}
