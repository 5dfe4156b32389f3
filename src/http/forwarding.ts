import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, Readable } from 'node:stream'
import { HomeportError } from '../contract/errors/errors.js'
import type { TraceHeaders } from '../telemetry/index.js'

/** Another node that answers a request. */
export interface RemoteNode {
  /** Name of the node. */
  readonly node: string
  /**
   * Opens a connection to the same listener of that node, which gets the address of the client.
   * @param port port of the client, if that node is to count the connection until the client has shown credentials.
   * @throws when the node cannot be reached; then nothing was sent.
   */
  connect(ip: string, port?: number): Promise<Duplex>
}

const FORWARDED = Symbol('forwarded')

/** A connection over which another node passes requests on. */
interface ForwardedSocket extends Duplex {
  [FORWARDED]?: true
  remoteAddress?: string
  destroySoon?: () => void
}

/**
 * Marks a connection of another node, and makes it look like a socket. A client cannot forge the mark, because it is not
 * part of a request.
 */
export function markForwarded(connection: ForwardedSocket, ip: string): void {
  connection[FORWARDED] = true
  Object.defineProperty(connection, 'remoteAddress', { value: ip })
  connection.destroySoon = () => destroySoon(connection)
}

/** Closes a connection of another node once everything is sent. */
export function destroySoon(connection: Duplex): void {
  if (connection.writable) connection.end()
  if (connection.writableFinished) connection.destroy()
  else connection.once('finish', () => connection.destroy())
}

/** Whether another node has passed this request on. */
export const isForwarded = ({ socket }: IncomingMessage): boolean =>
  (socket as Socket & { readonly [FORWARDED]?: true })[FORWARDED] === true

/** Number of nodes that have passed a request on. Trusted only on connections of other nodes, never from a client. */
const PASSED_HEADER = 'homeport-passed'
/**
 * Two passes suffice for a database that gets another home meanwhile. Without a limit, two nodes that each consider the
 * other the home would pass a request on forever.
 */
const MAX_PASSES = 2

/** Number of nodes that have passed this request on. A node of an older version does not send the header. */
function passesOf(request: IncomingMessage): number {
  if (!isForwarded(request)) return 0
  return (request.headers[PASSED_HEADER] ?? '1') === '1' ? 1 : MAX_PASSES
}

/** Whether another node may get this request. */
export const mayForward = (request: IncomingMessage): boolean => passesOf(request) < MAX_PASSES

/** Headers that belong to one connection (RFC 9110, section 7.6.1), and one that the next node sets by itself. */
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
  /** Replaces the trace context of the client. Absent: the client's stays. */
  readonly trace?: TraceHeaders | undefined
  /** The body that was read, or its stream. */
  readonly body: Uint8Array | Readable | undefined
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

/**
 * Sends a request to another node with its original credentials, which that node checks again, and resolves with the
 * head of the answer; the caller passes its body on.
 * @throws HomeportError `node_unreachable` when nothing was sent, `node_answer_lost` when no answer arrived.
 */
export async function forward(to: RemoteNode, forwarded: Forwarded): Promise<IncomingMessage> {
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
