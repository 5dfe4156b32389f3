import type { IncomingMessage } from 'node:http'
import { HomeportError } from '../../contract/errors.js'
import { discardBody } from '../../http/index.js'

const EMPTY = Buffer.alloc(0)

/**
 * Reads the body of a request, up to `limitBytes`.
 * @throws HomeportError `request_too_large`; what the client still sends is thrown away first.
 */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if (encoding === undefined && (length === undefined || length === '0')) return Promise.resolve(EMPTY)
  const declared = Number(length ?? 0)
  if (declared > limitBytes) return refuse(request, limitBytes, declared)
  return gather(request, limitBytes)
}

function gather(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const add = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes <= limitBytes) chunks.push(chunk)
      else {
        request.off('data', add).off('end', end)
        refuse(request, limitBytes, bytes).catch(reject)
      }
    }
    const end = (): void => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))
    request.on('data', add).on('end', end)
    request.on('error', reject)
  })
}

/** Whoever still sends would not get to read the answer. */
async function refuse(request: IncomingMessage, limitBytes: number, actualBytes: number): Promise<never> {
  await discardBody(request)
  throw new HomeportError('request_too_large', { limitBytes, actualBytes })
}
