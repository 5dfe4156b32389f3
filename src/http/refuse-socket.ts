import type { Duplex } from 'node:stream'
import { ERRORS } from '../contract/errors/errors.js'
import { DATA_HEADERS } from './safe-headers.js'

/** Request line and headers together; a message may carry headers for its destination and callbacks. */
export const LONGEST_HEAD_BYTES = 65_536

const [SNIFF, NO_SNIFF, CACHE, NO_STORE] = DATA_HEADERS
const SAFE_LINES = `${SNIFF}: ${NO_SNIFF}\r\n${CACHE}: ${NO_STORE}\r\n`

/**
 * Answers malformed HTTP with an error and closes the connection.
 * @param code Node's code of the parser error.
 */
export function refuseSocket(socket: Duplex, code?: string): void {
  if (!socket.writable) return
  const isTooLong = code === 'HPE_HEADER_OVERFLOW'
  const error = isTooLong
    ? ERRORS.headers_too_large.text({ limitBytes: LONGEST_HEAD_BYTES })
    : ERRORS.invalid_request.text({ problem: 'The request is not valid HTTP/1.1.' })
  const status = isTooLong ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const body = JSON.stringify({ error })
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${SAFE_LINES}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
