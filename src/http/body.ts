import type { IncomingMessage } from 'node:http'
import { HomeportError } from '../contract/errors.js'

const NOTHING = new Uint8Array()

/**
 * Reads the whole body of a request, into bytes of its own.
 * @throws HomeportError `body_too_large` as soon as that is known; the rest is still to be read or thrown away.
 * `invalid_request` when the connection ends before the body does.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let receivedBytes = 0
    const refuse = (): void => {
      request.off('data', take)
      reject(new HomeportError('body_too_large', { limitBytes }))
    }
    const take = (chunk: Buffer): void => {
      receivedBytes += chunk.byteLength
      if (receivedBytes > limitBytes) refuse()
      else chunks.push(chunk)
    }
    if (Number(request.headers['content-length'] ?? 0) > limitBytes) return refuse()
    request.on('data', take)
    request.once('end', () => resolve(joined(chunks, receivedBytes)))
    request.once('error', () => reject(cutOff()))
  })
}

/** Most bodies come in one piece, which the parser has already copied out of the buffer of the connection. */
function joined(chunks: readonly Buffer[], bytes: number): Uint8Array {
  const [first] = chunks
  if (!first) return NOTHING
  if (chunks.length === 1 && first.byteLength === first.buffer.byteLength) return new Uint8Array(first.buffer)
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

const cutOff = (): HomeportError =>
  new HomeportError('invalid_request', { problem: 'The connection was closed before the body was complete.' })
