import { HomeportError } from '../../contract/errors/errors.js'
import { isConnectionHeader, isValidHeader, titleCase } from '../headers.js'
import type { HeaderMap } from '../types.js'

const PREFIX = 'upstash-forward-'

/**
 * The headers that a destination gets: the content type, everything under `Upstash-Forward-`, and with `forwardAll`
 * every other header of the request that does not speak to this server or belong to the connection.
 * @throws HomeportError `invalid_request` for a name or value that cannot stand in a request.
 */
export function forwardedHeaders(headers: Readonly<Record<string, string>>, forwardAll: boolean): HeaderMap {
  const forwarded: Record<string, readonly string[]> = {}
  for (const [name, value] of Object.entries(headers)) {
    const target = targetName(name, forwardAll)
    if (target === undefined || isConnectionHeader(target)) continue
    // What the publisher says for the destination stands above what the request happened to have.
    if (target === name && target !== 'content-type' && headers[PREFIX + name] !== undefined) continue
    if (!isValidHeader(target, value)) {
      throw new HomeportError('invalid_request', {
        problem: `The header ${JSON.stringify(name)} has a name or value that cannot stand in an HTTP request. Correct it.`,
      })
    }
    // The plain content type decides; its forwarded copy must not add a second one (reference queue 3.1).
    if (target === 'content-type' && name !== target && headers[target] !== undefined) continue
    forwarded[titleCase(target)] = [value]
  }
  return forwarded
}

/** The name under which the destination gets a header, in lower case; `undefined` when it does not get it. */
function targetName(name: string, forwardAll: boolean): string | undefined {
  if (name.startsWith(PREFIX)) return name.length > PREFIX.length ? name.slice(PREFIX.length) : undefined
  if (name === 'content-type') return name
  if (!forwardAll || name.startsWith('upstash-')) return undefined
  return name
}
