import type { IncomingHttpHeaders } from 'node:http'
import { isObject, tryParseJson } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { MAX_ITEM_HEADER_BYTES } from '../../contract/request-limits.js'
import { isOwnSetting, isTelemetry } from '../headers.js'
import type { PublishItem } from '../types.js'

/** A publish request as it came over HTTP. */
export interface PublishRequest {
  /** The raw request target after the prefix, with its query. */
  readonly rest: string
  readonly headers: IncomingHttpHeaders
  readonly body: Uint8Array
}

/**
 * Turns a publish request into an item (reference queue 2.1, 2.2). The destination keeps its own query byte for byte,
 * without the token and without settings. Settings come from headers or from the query; the header wins.
 */
export function itemOfRequest(request: PublishRequest): PublishItem {
  const { destination, settings, token } = splitQuery(request.rest)
  const headers: Record<string, string> = settings
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || isTelemetry(name)) continue
    if (name === 'authorization' && holdsToken(String(value), token)) continue
    headers[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return { destination, headers, body: request.body.byteLength > 0 ? request.body : undefined }
}

/**
 * The headers of an item of a batch, with lower-case names.
 * @throws HomeportError `setting_limit` if they are longer than those of a request may be.
 */
export function headersOfItem(wire: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {}
  let bytes = 0
  for (const [name, value] of Object.entries(wire)) {
    bytes += name.length + value.length
    const lower = name.toLowerCase()
    if (!isTelemetry(lower)) headers[lower] = value
  }
  if (bytes <= MAX_ITEM_HEADER_BYTES) return headers
  throw new HomeportError('setting_limit', {
    setting: 'The length of the headers of an item',
    found: String(bytes),
    limit: `${MAX_ITEM_HEADER_BYTES} bytes`,
  })
}

/**
 * Whether an `Authorization` header carries a token of this service, which must not be forwarded. When the token came
 * in the query, the header may be the publisher's own for the destination.
 */
function holdsToken(authorization: string, tokenOfQuery: string | undefined): boolean {
  const [, bearer] = /^bearer +(\S+)/i.exec(authorization) ?? []
  if (bearer === undefined) return false
  return tokenOfQuery === undefined || bearer === tokenOfQuery || isToken(bearer)
}

/** Tokens are base64 of a JSON object with these members (reference queue 1.1). */
function isToken(text: string): boolean {
  const value = tryParseJson(Buffer.from(text, 'base64').toString())
  return isObject(value) && 'UserID' in value && 'Password' in value
}

interface SplitTarget {
  readonly destination: string
  readonly settings: Record<string, string>
  /** The token, if it came in the query. */
  readonly token?: string
}

function splitQuery(rest: string): SplitTarget {
  const mark = rest.indexOf('?')
  const settings: Record<string, string> = {}
  let token: string | undefined
  if (mark < 0) return { destination: rest, settings }
  const kept = rest
    .slice(mark + 1)
    .split('&')
    .filter((part) => {
      const [name, value] = pair(part)
      const lower = name.toLowerCase()
      const isSetting = lower.startsWith('upstash-') || isOwnSetting(lower)
      if (isSetting) settings[lower] = value
      if (lower === 'qstash_token') token = value
      return lower !== 'qstash_token' && !isSetting
    })
  const path = rest.slice(0, mark)
  const destination = kept.length > 0 ? `${path}?${kept.join('&')}` : path
  return { destination, settings, ...(token !== undefined && { token }) }
}

function pair(part: string): readonly [string, string] {
  const entry = [...new URLSearchParams(part)][0]
  return entry ?? ['', '']
}
