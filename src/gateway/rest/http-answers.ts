import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  DATA_HEADERS,
  givenRequestId,
  type NotReady,
  REQUEST_ID_HEADER,
  readyAnswer,
  requestIdOf,
  sendWhole,
} from '../../http/index.js'
import type { SyncTokens } from '../replicas/sync-token.js'
import type { RestReply } from './reply-reader.js'
import type { ReplyEncoding } from './string-pieces.js'

/** The form of the answer that a client asks for (reference redis 4.2). */
export interface ReplyForm {
  readonly format: 'json' | 'resp2'
  readonly encoding: ReplyEncoding
}

const PLAIN: ReplyForm = { format: 'json', encoding: 'plain' }
const BASE64: ReplyForm = { format: 'json', encoding: 'base64' }
const RESP2: ReplyForm = { format: 'resp2', encoding: 'plain' }

/** Reads the form from the headers of a request. @throws HomeportError */
export function replyFormOf(headers: IncomingHttpHeaders): ReplyForm {
  const { 'upstash-encoding': encoding, 'upstash-response-format': format = 'json' } = headers
  if (format === 'json') return encoding === 'base64' ? BASE64 : PLAIN
  if (format !== 'resp2')
    throw malformed(`unknown response format '${String(format).slice(0, 64)}'. Use json or resp2.`)
  if (encoding === 'base64') throw malformed('the response format resp2 cannot be combined with base64 encoding')
  return RESP2
}

function malformed(problem: string): HomeportError {
  return new HomeportError('command_malformed', { problem })
}

const JSON_TYPE = 'application/json'
const BYTES_TYPE = 'application/octet-stream'
// Without the last header nginx would buffer some kilobytes of events before it sends any.
const EVENT_STREAM = ['Content-Type', 'text/event-stream', 'Cache-Control', 'no-cache', 'X-Accel-Buffering', 'no']
const RETRY_AFTER_SECONDS = '1'
const ALLOWED_HEADERS =
  'authorization, cache-control, content-type, pragma, upstash-encoding, upstash-response-format, upstash-sync-token, ' +
  'upstash-telemetry-platform, upstash-telemetry-retry, upstash-telemetry-runtime, upstash-telemetry-sdk, x-request-id'
const PREFLIGHT_MAX_AGE_SECONDS = '86400'

/** The header that carries sync tokens, in both directions. */
export const SYNC_TOKEN_HEADER = 'upstash-sync-token'

/** Writes the answers of the REST listener. */
export class HttpAnswers {
  readonly #tokens: SyncTokens

  constructor(tokens: SyncTokens) {
    this.#tokens = tokens
  }

  /** Sends 200 with a JSON text and a sync token for a client that has seen `moment` (reference redis 4.2). */
  ok(request: IncomingMessage, response: ServerResponse, json: string, moment = 0): void {
    const bytes = Buffer.byteLength(json)
    const headers = this.#headers(request, JSON_TYPE, bytes, moment)
    const encoding = bytes === json.length ? 'latin1' : 'utf8'
    sendWhole(request, response, { status: 200, headers, text: json, encoding })
  }

  /** Sends 200 with the unchanged bytes of replies. */
  bytes(request: IncomingMessage, response: ServerResponse, body: Buffer, moment = 0): void {
    response.writeHead(200, this.#headers(request, BYTES_TYPE, body.length, moment))
    response.end(body)
  }

  /** Sends the head of an answer whose body follows piece by piece; `bytes` is the length of the body, if known. */
  begin(
    request: IncomingMessage,
    response: ServerResponse,
    format: 'json' | 'resp2',
    bytes: number | undefined,
    moment = 0,
  ): void {
    response.writeHead(200, this.#headers(request, format === 'json' ? JSON_TYPE : BYTES_TYPE, bytes, moment))
  }

  #headers(request: IncomingMessage, type: string, bytes: number | undefined, moment: number): string[] {
    const headers = ['Content-Type', type, SYNC_TOKEN_HEADER, this.#tokens.next(moment)]
    if (bytes !== undefined) headers.push('Content-Length', String(bytes))
    // Only a client's own id is repeated: to make one for each command would cost more than the rest of the head.
    if (request.headers[REQUEST_ID_HEADER] !== undefined) headers.push(...givenIdHeader(request))
    if (request.headers.origin !== undefined) headers.push(...corsHeaders(request))
    return headers
  }

  /** Sends the head of an event stream. */
  beginEvents(request: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, [...EVENT_STREAM, ...corsHeaders(request)])
  }

  /** Sends `{"error": text}`. */
  error(
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    text: string,
    id = requestIdOf(request.headers),
  ): void {
    const json = JSON.stringify({ error: text })
    const headers = [
      'Content-Type',
      JSON_TYPE,
      'Content-Length',
      String(Buffer.byteLength(json)),
      REQUEST_ID_HEADER,
      id,
      ...DATA_HEADERS,
      ...corsHeaders(request),
    ]
    if (status === 503) headers.push('Retry-After', RETRY_AFTER_SECONDS)
    if (status === 401) headers.push('WWW-Authenticate', 'Bearer realm="homeport"')
    if (status === 405) headers.push('Allow', 'GET, HEAD, POST, PUT, OPTIONS')
    response.writeHead(status, headers)
    response.end(json)
  }
}

function givenIdHeader({ headers }: IncomingMessage): readonly string[] {
  const id = givenRequestId(headers)
  return id === undefined ? NO_HEADERS : [REQUEST_ID_HEADER, id]
}

/** JSON text of a reply: `{"result":…}` or `{"error":…}`, never both. */
export function replyJson(reply: RestReply): string {
  return 'json' in reply ? `{"result":${reply.json}}` : `{"error":${JSON.stringify(reply.error)}}`
}

/** Headers that let browsers read the answer: the read-only token is meant for them. */
function corsHeaders(request: IncomingMessage): readonly string[] {
  if (request.headers.origin === undefined) return NO_HEADERS
  return ['Access-Control-Allow-Origin', '*', 'Access-Control-Expose-Headers', SYNC_TOKEN_HEADER]
}

const NO_HEADERS: readonly string[] = []

/** Answers the preflight request of a browser. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(204, [
    ...corsHeaders(request),
    'Access-Control-Allow-Methods',
    'GET, HEAD, POST, PUT, OPTIONS',
    'Access-Control-Allow-Headers',
    ALLOWED_HEADERS,
    'Access-Control-Max-Age',
    PREFLIGHT_MAX_AGE_SECONDS,
  ])
  response.end()
}

/** Answers `/health`: whether this listener serves requests. */
export function answerHealth(response: ServerResponse, version: string, stopping: boolean): void {
  answerProbe(response, stopping ? 503 : 200, { status: stopping ? 'stopping' : 'ok', service: 'rest', version })
}

/** Answers `/livez`: the process answers. */
export function answerLive(response: ServerResponse): void {
  answerProbe(response, 200, { status: 'alive', service: 'rest' })
}

/** Answers `/readyz`: whether the server can serve writes now. */
export function answerReady(response: ServerResponse, reason: NotReady | undefined): void {
  const { status, body } = readyAnswer('rest', reason)
  answerProbe(response, status, body)
}

function answerProbe(response: ServerResponse, status: number, answer: object): void {
  const body = JSON.stringify(answer)
  response.writeHead(status, ['Content-Type', JSON_TYPE, 'Content-Length', String(Buffer.byteLength(body))])
  response.end(body)
}
