import type { IncomingMessage } from 'node:http'
import { isForwarded } from './forwarding.js'
import { PlainRequest } from './plain/plain-messages.js'

/**
 * Finds what Node's parser accepts although another server may read the request as a different one (RFC 9112, sections 3.2
 * and 6.1). The connection of such a request must be closed after the answer.
 * @returns the problem in words; `undefined` for a sound request.
 */
export function framingFault(request: IncomingMessage): string | undefined {
  // A plain head has one host, no transfer coding, and is HTTP/1.1.
  if (request instanceof PlainRequest) return undefined
  const { httpVersionMajor, httpVersionMinor, headers } = request
  if (httpVersionMajor !== 1) return `This server speaks HTTP/1.1, not HTTP/${request.httpVersion}.`
  return hostFault(request) ?? codingFault(httpVersionMinor, headers['transfer-encoding'])
}

function hostFault(request: IncomingMessage): string | undefined {
  const hosts = occurrences(request.rawHeaders, 'host')
  if (hosts > 1) return `The request has ${hosts} Host headers. Send one.`
  // Another node passes on what it has accepted, also a request of HTTP/1.0 without the header.
  if (hosts === 1 || request.httpVersionMinor === 0 || isForwarded(request)) return undefined
  return 'The request has no Host header, which HTTP/1.1 requires. Send one.'
}

function codingFault(minor: number, coding: string | undefined): string | undefined {
  if (coding === undefined) return undefined
  if (minor === 0) return 'The request has a Transfer-Encoding header, which HTTP/1.0 does not have. Send HTTP/1.1.'
  if (coding.toLowerCase() === 'chunked') return undefined
  return 'The only transfer coding of this server is chunked. Send Transfer-Encoding: chunked, or a Content-Length.'
}

/** How often a header occurs. @param raw alternating names and values, as Node has them. @param name lower case */
function occurrences(raw: readonly string[], name: string): number {
  let count = 0
  for (let at = 0; at < raw.length; at += 2) {
    const found = raw[at]
    if (found?.length === name.length && found.toLowerCase() === name) count++
  }
  return count
}
