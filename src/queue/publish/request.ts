import type { IncomingHttpHeaders } from 'node:http'
import { isTelemetry } from '../headers.js'
import type { PublishItem } from '../types.js'

/** A publish request as it came over HTTP. */
export interface PublishRequest {
  /** The raw rest of the request target after the prefix, query included. */
  readonly rest: string
  readonly headers: IncomingHttpHeaders
  readonly body: Uint8Array
}

/**
 * Makes an item of a publish request (reference queue 2.1, 2.2): the destination keeps its own query byte for byte,
 * without the token and without settings; settings may stand in headers or in the query, where the header wins.
 */
export function itemOfRequest(request: PublishRequest): PublishItem {
  const { destination, settings } = splitQuery(request.rest)
  const headers: Record<string, string> = settings
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || isTelemetry(name)) continue
    // It carried the token, which is nobody's business from here on.
    if (name === 'authorization' && /^bearer /i.test(String(value))) continue
    headers[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return { destination, headers, body: request.body.byteLength > 0 ? request.body : undefined }
}

function splitQuery(rest: string): { destination: string; settings: Record<string, string> } {
  const mark = rest.indexOf('?')
  const settings: Record<string, string> = {}
  if (mark < 0) return { destination: rest, settings }
  const kept = rest
    .slice(mark + 1)
    .split('&')
    .filter((part) => {
      const [name, value] = pair(part)
      const lower = name.toLowerCase()
      if (lower.startsWith('upstash-')) settings[lower] = value
      return lower !== 'qstash_token' && !lower.startsWith('upstash-')
    })
  const path = rest.slice(0, mark)
  return { destination: kept.length > 0 ? `${path}?${kept.join('&')}` : path, settings }
}

function pair(part: string): readonly [string, string] {
  const entry = [...new URLSearchParams(part)][0]
  return entry ?? ['', '']
}
