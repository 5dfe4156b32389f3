import { type TargetPolicy, targetProblem } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { remembering } from '../remember.js'
import type { PublishItem } from '../types.js'

/** Where a message goes. */
export interface Destination {
  /** As it was sent. */
  readonly url: string
  /** Host with the port, if one is written. */
  readonly host: string
  readonly path: string
}

const LONGEST_URL = 8_192

/** Checks that a text is a URL that messages can be delivered to. Answers the reason in words when it is not. */
export const parseHttpUrl = remembering(checkHttpUrl, { most: 1_000, longest: 500 })

function checkHttpUrl(text: string): Destination | { readonly problem: string } {
  if (text.length > LONGEST_URL) return { problem: `it is longer than ${LONGEST_URL} characters` }
  if (!/^https?:\/\//i.test(text)) return { problem: 'send a URL that begins with http:// or https://' }
  const url = tryUrl(text)
  if (!url || url.host === '') return { problem: 'it is not a valid URL' }
  if (url.username !== '' || url.password !== '') {
    return {
      problem: 'a URL must not hold a user name or password: send the header Upstash-Forward-Authorization instead',
    }
  }
  return { url: text, host: url.host, path: url.pathname }
}

/** A URL as an error may repeat it: whoever reads the error need not know the password in it. */
export function shownUrl(text: string): string {
  return text.replace(/^(https?:\/\/)[^/?#]*@/i, '$1…@')
}

function tryUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}

/** A URL, or one that is percent-encoded as a whole, or a model service. */
const NO_NAME = /^(?:[a-z][a-z0-9+.-]*:|https?%3a|api\/)/i

/** The name in a destination that is no URL: that of a URL group. */
export function groupNameOf(text: string): string | undefined {
  return text === '' || NO_NAME.test(text) ? undefined : text
}

/**
 * Reads the destination of a publish request (reference queue 2.1): a URL as it stands, or as a whole percent-encoded.
 * @throws HomeportError `invalid_request` for what is no usable URL, `url_group_not_found` for a name.
 */
export function parseDestination(text: string): Destination {
  const encoded = /^https?%3a/i.test(text)
  const url = encoded ? decoded(text) : text
  if (url === '') {
    throw new HomeportError('invalid_request', {
      problem: 'The destination is empty. Put a URL after the path, such as /v2/publish/https://example.com/hook.',
    })
  }
  if (/^api\//i.test(url)) {
    throw new HomeportError('invalid_request', {
      problem: `The destination "${url.slice(0, 80)}" needs a model service, and none is configured here. Publish to the URL of a provider instead.`,
    })
  }
  if (!/^[a-z][a-z0-9+.-]*:/i.test(url)) throw new HomeportError('url_group_not_found', { name: url.slice(0, 80) })
  const parsed = parseHttpUrl(url)
  if ('problem' in parsed) {
    throw new HomeportError('invalid_request', {
      problem: `The destination is "${shownUrl(url).slice(0, 200)}"; ${parsed.problem}.`,
    })
  }
  return parsed
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** `upstash-callback`, `upstash-failure-callback`, and those of callbacks. */
const CALLBACK = /^upstash(?:-failure)?-callback(?:(?:-failure)?-callback)*$/

/**
 * Refuses a URL whose host can be judged as it stands, without a look-up. Names are judged when a message is delivered.
 * @throws HomeportError `destination_forbidden`.
 */
export function refuseForbidden(url: string, policy: TargetPolicy): void {
  if (!URL.canParse(url)) return
  const problem = targetProblem(new URL(url), policy)
  if (problem !== undefined) throw new HomeportError('destination_forbidden', { url: url.slice(0, 200), problem })
}

/**
 * Refuses headers that name a forbidden callback, however deep.
 * @throws HomeportError `destination_forbidden`.
 */
export function refuseForbiddenCallbacks(headers: PublishItem['headers'], policy: TargetPolicy): void {
  for (const [name, value] of Object.entries(headers)) if (CALLBACK.test(name)) refuseForbidden(value.trim(), policy)
}

/**
 * Refuses an item that would be delivered to a forbidden URL, or has such a callback.
 * @throws HomeportError `destination_forbidden`.
 */
export function refuseForbiddenItem(
  urls: readonly string[],
  headers: PublishItem['headers'],
  policy: TargetPolicy,
): void {
  if (policy === 'everything') return
  refuseForbiddenCallbacks(headers, policy)
  for (const url of urls) refuseForbidden(url, policy)
}
