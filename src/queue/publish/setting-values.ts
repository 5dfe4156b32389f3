/** Reads values that several settings share, and refuses invalid ones. */
import { parseDuration } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { memoized } from '../memoized.js'
import { shownUrl } from './destination.js'

/** Headers of a publish request; lower-case names. */
export type Headers = Readonly<Record<string, string>>

/** Longest delay of a first attempt. */
export const MAX_DELAY_MS = 366 * 86_400_000
/** Most characters of a key. */
export const MAX_KEY_LENGTH = 512

/** Throws `invalid_request` for one setting. */
export function refuseSetting(name: string, found: string, expected: string): never {
  const safe = shownUrl(found)
  const shown = safe.length > 80 ? `${safe.slice(0, 80)}…` : safe
  throw new HomeportError('invalid_request', { problem: `${name} is "${shown}"; ${expected}.` })
}

/** The name of a setting as users write it: `upstash-retry-delay` becomes `Upstash-Retry-Delay`. */
export function written(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase())
}

/** The value of a setting; `undefined` if there is none, or an empty one. */
export function present(headers: Headers, name: string): string | undefined {
  const value = headers[name]?.trim()
  return value === undefined || value === '' ? undefined : value
}

/** SDKs accept seconds as numbers, with fractions, and send some of them unchanged. */
const BARE_SECONDS = /^\d{1,12}(?:\.\d+)?$/

/** Milliseconds of a duration. A bare number counts as seconds. */
const durationMs = memoized((text) => parseDuration(BARE_SECONDS.test(text) ? `${text}s` : text), {
  most: 1_000,
  longest: 40,
})

/** Reads a duration, or a bare number of seconds. */
export function duration(headers: Headers, name: string): number | undefined {
  const found = present(headers, name)
  if (found === undefined) return undefined
  return (
    durationMs(found) ??
    refuseSetting(written(name), found, 'send a duration such as 30s, 5m or 1d10h30m, or a number of seconds')
  )
}

/** Reads a key, without the white space around it. */
export function key(headers: Headers, name: string): string | undefined {
  const found = present(headers, name)
  if (found === undefined) return undefined
  if (found.length > MAX_KEY_LENGTH)
    return refuseSetting(written(name), found, `it is longer than ${MAX_KEY_LENGTH} characters`)
  // PostgreSQL cannot store U+0000, and in a key of a callback the error would only appear when the callback is made.
  return found.includes('\0') ? refuseSetting(written(name), found, 'it contains the character U+0000') : found
}
