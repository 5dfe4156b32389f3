import { decodedOrSame, type TargetPolicy, targetProblem } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { memoized } from '../memoized.js'
import type { PublishItem } from '../types.js'

/** A parsed destination URL. */
export interface Destination {
  /** As it was sent. */
  readonly url: string
  /** Host, with the port if the URL has one. */
  readonly host: string
  readonly path: string
}

const MAX_URL_LENGTH = 8_192

/** Control characters. URLs of a batch come as JSON, which may contain them. */
const CONTROL = /[\u0000-\u001f\u007f]/

/** Parses a delivery URL. Returns the problem in words if it is not valid. */
export const parseHttpUrl = memoized(checkHttpUrl, { most: 1_000, longest: 500 })

function checkHttpUrl(text: string): Destination | { readonly problem: string } {
  if (text.length > MAX_URL_LENGTH) return { problem: `it is longer than ${MAX_URL_LENGTH} characters` }
  if (CONTROL.test(text)) return { problem: 'it contains a control character' }
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

/** The URL as an error may show it: without user name and password. */
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

/** Matches texts that cannot be the name of a URL group: URLs, with or without scheme, and model services. */
const NO_NAME = /[^A-Za-z0-9._-]/

const SCHEME = /^[a-z][a-z0-9+.-]*:/i

/** The URL group that a destination names; `undefined` for a URL. */
export function groupNameOf(text: string): string | undefined {
  return text === '' || NO_NAME.test(text) ? undefined : text
}

/**
 * Parses the destination of a publish request: a URL, plain or percent-encoded as a whole (reference queue 2.1).
 * @throws HomeportError `invalid_request` for an unusable URL, `url_group_not_found` for a name.
 */
export function parseDestination(text: string): Destination {
  const encoded = /^https?%3a/i.test(text)
  const url = encoded ? decodedOrSame(text) : text
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
  const name = groupNameOf(url)
  if (name !== undefined) throw new HomeportError('url_group_not_found', { name: name.slice(0, 80) })
  const parsed = parseHttpUrl(url)
  if ('problem' in parsed) {
    const orGroup = SCHEME.test(url) ? '' : ', or the name of a URL group'
    throw new HomeportError('invalid_request', {
      problem: `The destination is "${shownUrl(url).slice(0, 200)}"; ${parsed.problem}${orGroup}.`,
    })
  }
  return parsed
}

/** `upstash-callback`, `upstash-failure-callback`, and callbacks of callbacks. */
const CALLBACK = /^upstash(?:-failure)?-callback(?:(?:-failure)?-callback)*$/

/**
 * Refuses a forbidden URL that can be checked without a DNS lookup. Host names are checked at delivery.
 * @throws HomeportError `destination_forbidden`.
 */
export function refuseForbidden(url: string, policy: TargetPolicy): void {
  if (!URL.canParse(url)) return
  const problem = targetProblem(new URL(url), policy)
  if (problem !== undefined) throw new HomeportError('destination_forbidden', { url: url.slice(0, 200), problem })
}

/**
 * Refuses headers that name a forbidden callback at any depth.
 * @throws HomeportError `destination_forbidden`.
 */
export function refuseForbiddenCallbacks(headers: PublishItem['headers'], policy: TargetPolicy): void {
  for (const [name, value] of Object.entries(headers)) if (CALLBACK.test(name)) refuseForbidden(value.trim(), policy)
}

/**
 * Refuses an item with a forbidden delivery URL or callback.
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
