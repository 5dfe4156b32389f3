import { isConnectionHeader, isValidHeader } from '../headers.js'
import type { OutgoingRequest } from './outgoing-request.js'

/** Methods whose requests and responses are framed by their headers alone. */
const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
/** Methods that send a content length even for an empty body (RFC 9110, section 8.6). */
const WITH_BODY = new Set(['POST', 'PUT', 'PATCH'])
const TARGET = /^\/[!-~]*$/
/** Longer bodies are not copied into one buffer with their head. */
const MAX_COPIED_BYTES = 16_384

/** Whether a request can be sent without undici: none of its headers affects the framing or the connection. */
export function isPlainRequest({ method, path, headers }: OutgoingRequest): boolean {
  if (!METHODS.has(method) || !TARGET.test(path)) return false
  for (let at = 0; at < headers.length; at += 2) {
    const [name = '', value = ''] = [headers[at], headers[at + 1]]
    if (!isValidHeader(name, value) || isConnectionHeader(name.toLowerCase())) return false
  }
  return true
}

/** The bytes of a plain request: one buffer, or two buffers for head and body. */
export function bytesOf(request: OutgoingRequest, host: string): readonly Buffer[] {
  const { method, path, headers, body } = request
  const bodyBytes = body?.byteLength ?? 0
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
  for (let at = 0; at < headers.length; at += 2) head += `${headers[at]}: ${headers[at + 1]}\r\n`
  if (bodyBytes > 0 || WITH_BODY.has(method)) head += `content-length: ${bodyBytes}\r\n`
  head += '\r\n'
  if (!body || bodyBytes > MAX_COPIED_BYTES) return [Buffer.from(head, 'latin1'), ...(body ? [bufferOn(body)] : [])]
  const whole = Buffer.allocUnsafe(head.length + bodyBytes)
  whole.write(head, 'latin1')
  whole.set(body, head.length)
  return [whole]
}

const bufferOn = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
