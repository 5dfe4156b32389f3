import type { Duplex } from 'node:stream'
import { type Clock, runInTurn, systemClock } from '../base/index.js'
import { ERRORS } from '../contract/errors/errors.js'
import { mayRefuse } from './paced-requests.js'
import { DATA_HEADERS } from './safe-headers.js'

/** Time that a client has to read the answer and to close the connection. Then it is closed for it. */
const LINGER_MS = 5_000
/** Request line and headers together; a message may carry headers for its destination and callbacks. */
export const MAX_HEAD_BYTES = 65_536

const [SNIFF, NO_SNIFF, CACHE, NO_STORE] = DATA_HEADERS
const SAFE_LINES = `${SNIFF}: ${NO_SNIFF}\r\n${CACHE}: ${NO_STORE}\r\n`

/**
 * Answers malformed HTTP, and requests that do not arrive in time, with an error and closes the connection. Only closes it
 * where the client would read the error as part of an answer, or as the answer to an earlier request. Thousands may be late
 * at once: they share turns of the event loop.
 * @param code Node's code of the parser error.
 */
export function refuseSocket(socket: Duplex, code?: string, clock: Clock = systemClock): void {
  runInTurn(() => {
    if (!socket.writable) return
    if (!mayRefuse(socket)) return void socket.destroy()
    socket.end(answerFor(code))
    const timer = clock.after(LINGER_MS, () => runInTurn(() => void socket.destroy()))
    socket.once('close', () => timer.cancel())
  })
}

function answerFor(code: string | undefined): string {
  const { status, error } = refusalOf(code)
  const body = JSON.stringify({ error })
  return `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${SAFE_LINES}Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
}

function refusalOf(code: string | undefined): { readonly status: string; readonly error: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        status: '431 Request Header Fields Too Large',
        error: ERRORS.headers_too_large.text({ limitBytes: MAX_HEAD_BYTES }),
      }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: '408 Request Timeout', error: 'The request did not arrive in time. Send it again.' }
    default:
      return {
        status: '400 Bad Request',
        error: ERRORS.invalid_request.text({ problem: 'The request is not valid HTTP/1.1.' }),
      }
  }
}
