import { codeOf } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'

/** What is wrong with a certificate, in the codes of Node and its TLS library. */
const OF_CERTIFICATES = /CERT|^UNABLE_TO_(?:VERIFY|GET)|SELF_SIGNED/

/**
 * Says why a request to `url` could not be made: nobody answers there, or somebody whose certificate is not trusted.
 * What `fetch` throws says no more than that it has failed; the error behind that has the code of the system or of TLS.
 */
export function connectionError(url: string, error: unknown): HomeportError {
  const cause = error instanceof Error ? error.cause : undefined
  const code = codeOf(cause)
  const words = cause instanceof Error ? cause.message : String(error)
  if (OF_CERTIFICATES.test(code)) return new HomeportError('server_untrusted', { url, reason: words }, { cause: error })
  return new HomeportError('server_unreachable', { url, reason: code || words }, { cause: error })
}
