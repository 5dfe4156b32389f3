import { type TargetPolicy, targetProblem } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { PublishItem } from '../types.js'

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
