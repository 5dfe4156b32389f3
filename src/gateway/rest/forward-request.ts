/** Requests about databases of another node. */
import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream'
import { answerHeaders, forward, onResponseOver, REQUEST_ID_HEADER, type RemoteNode } from '../../http/index.js'
import type { Exchange } from './exchange.js'

/** Options for passing a request on. */
export interface ForwardOptions {
  /** The body, if it was read. */
  readonly body?: Buffer | undefined
  /** Called before the client gets the next part of the answer. */
  readonly onAnswer?: () => void
}

/**
 * Passes a request on to another node, and its answer to the client. That node checks the token again.
 * @throws HomeportError `node_unreachable`, `node_answer_lost`
 */
export async function forwardRequest(
  exchange: Exchange,
  to: RemoteNode,
  { body, onAnswer }: ForwardOptions = {},
): Promise<void> {
  const { request, response, address: ip = '' } = exchange
  const gone = new AbortController()
  onResponseOver(request, response, () => gone.abort())
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
  // The first event of a stream may come much later, but its client waits for the head.
  response.flushHeaders()
  // If the answer breaks off, so does the client's connection: the client does not mistake the answer for a complete one.
  pipeline(answer, response, () => undefined)
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
