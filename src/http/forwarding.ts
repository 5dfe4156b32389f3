import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, Readable } from 'node:stream'
import { HomeportError } from '../contract/errors/errors.js'
import type { TraceHeaders } from '../telemetry/index.js'

/** Another node that answers a request. */
export interface Elsewhere {
  /** As the operator named it. */
  readonly node: string
  /**
   * Opens a connection to the same listener of that node, on which it sees the address of the client.
   * @param port of the client, where that node is to count it until it has shown credentials.
   * @throws when the node cannot be reached; then nothing was sent.
   */
  connect(ip: string, port?: number): Promise<Duplex>
}

const FORWARDED = Symbol('forwarded')

/** A connection over which another node passes a request on. */
interface ForwardedSocket extends Duplex {
  [FORWARDED]?: true
  remoteAddress?: string
  destroySoon?: () => void
}

/**
 * Marks a connection of another node, and makes it look like a socket. No client can make such a mark, because it is not
 * part of a request.
 */
export function markForwarded(connection: ForwardedSocket, ip: string): void {
  connection[FORWARDED] = true
  Object.defineProperty(connection, 'remoteAddress', { value: ip })
  connection.destroySoon = () => destroySoon(connection)
}

/** Closes a connection of another node after everything was sent. */
export function destroySoon(connection: Duplex): void {
  if (connection.writable) connection.end()
  if (connection.writableFinished) connection.destroy()
  else connection.once('finish', () => connection.destroy())
}

/** Whether another node has passed this request on. */
export const isForwarded = ({ socket }: IncomingMessage): boolean =>
  (socket as Socket & { readonly [FORWARDED]?: true })[FORWARDED] === true

/** How many nodes have passed a request on. Only what a node has set counts, not what a client sends. */
const PASSED_HEADER = 'homeport-passed'
/** A database may get another home between two looks. Nodes that take each other for the home would go on forever. */
const MOST_PASSES = 2

/** How many nodes have passed this request on; a node of an older version does not say so. */
function passesOf(request: IncomingMessage): number {
  if (!isForwarded(request)) return 0
  return (request.headers[PASSED_HEADER] ?? '1') === '1' ? 1 : MOST_PASSES
}

/** Whether another node may get this request. */
export const mayPassOn = (request: IncomingMessage): boolean => passesOf(request) < MOST_PASSES

/** Headers that belong to one connection (RFC 9110, section 7.6.1), and those that the next node sets by itself. */
const OF_CONNECTION = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'expect'],
  'x-forwarded-for',
])

function withoutConnection(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_CONNECTION.has(name)))
}

/** A request to pass on. */
export interface Forwarded {
  readonly original: IncomingMessage
  /** The request target as it was on the wire. */
  readonly target: string
  readonly ip: string
  readonly requestId: { readonly header: string; readonly value: string }
  /** Replaces the trace context of the client. Absent: it stays. */
  readonly trace?: TraceHeaders | undefined
  /** What was read of the body, or the stream of it. */
  readonly body: Uint8Array | Readable | undefined
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

/**
 * Sends a request to another node with its original credentials, which that node checks again, and resolves with the
 * head of the answer; the caller passes its body on.
 * @throws HomeportError `node_unreachable` when nothing was sent, `node_answer_lost` when the answer did not come.
 */
export async function forward(to: Elsewhere, forwarded: Forwarded): Promise<IncomingMessage> {
  const { original, target, ip, requestId, trace, body, signal } = forwarded
  const connection = await to.connect(ip).catch((cause: unknown) => {
    throw new HomeportError('node_unreachable', { node: to.node }, { cause })
  })
  const headers = withoutConnection(original.headers)
  headers[requestId.header] = requestId.value
  headers[PASSED_HEADER] = String(passesOf(original) + 1)
  if (trace) setTrace(headers, trace)
  if (body instanceof Uint8Array) headers['content-length'] = body.length
  // Node frames the body of a GET only if this header says so.
  else if (body && headers['content-length'] === undefined) headers['transfer-encoding'] = 'chunked'
  return new Promise((resolve, reject) => {
    const sent = request({
      createConnection: () => connection,
      method: original.method,
      path: target,
      headers,
      setHost: false,
      signal,
    })
    const fail = (cause: Error): void => {
      connection.destroy()
      reject(new HomeportError('node_answer_lost', { node: to.node }, { cause }))
    }
    sent.once('error', fail)
    sent.once('response', (answer) => {
      answer.once('close', () => connection.destroy())
      resolve(answer)
    })
    if (body instanceof Readable) body.once('error', fail).pipe(sent)
    else sent.end(body)
  })
}

function setTrace(headers: OutgoingHttpHeaders, { traceparent, tracestate }: TraceHeaders): void {
  headers.traceparent = traceparent
  if (tracestate === undefined) delete headers.tracestate
  else headers.tracestate = tracestate
}

/** The headers of an answer that is passed on. */
export const answerHeaders = (answer: IncomingMessage): OutgoingHttpHeaders => withoutConnection(answer.headers)
