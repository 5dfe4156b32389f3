/** Requests about databases of another node. */
import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream'
import { answerHeaders, type Elsewhere, forward, onceOver, REQUEST_ID_HEADER } from '../../http/index.js'
import type { Exchange } from './exchange.js'

/** How a request is passed on. */
export interface PassingOn {
  /** The body, if it was read. */
  readonly body?: Buffer | undefined
  /** Called before the client gets the next part of the answer. */
  readonly onAnswer?: () => void
}

/**
 * Has another node answer a request. That node checks the token again.
 * @throws HomeportError `node_unreachable`, `node_answer_lost`
 */
export async function passOn(exchange: Exchange, to: Elsewhere, { body, onAnswer }: PassingOn = {}): Promise<void> {
  const { request, response, address: ip = '' } = exchange
  const gone = new AbortController()
  onceOver(request, response, () => gone.abort())
  exchange.sendContinue()
  const answer = await forward(to, {
    original: request,
    target: request.url ?? '/',
    ip,
    signal: gone.signal,
    body: body ?? (hasBody(request) ? request : undefined),
    requestId: { header: REQUEST_ID_HEADER, value: exchange.requestId },
    trace: exchange.traceForNode(),
  })
  onAnswer?.()
  if (onAnswer) answer.on('data', onAnswer)
  response.writeHead(answer.statusCode ?? 502, answerHeaders(answer))
  // The first event of a stream may be far away, and its client waits for the head.
  response.flushHeaders()
  // A torn answer tears the client's connection too, so the client does not mistake it for a whole one.
  pipeline(answer, response, () => undefined)
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
