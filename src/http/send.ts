import type { IncomingMessage, ServerResponse } from 'node:http'
import { charactersIn, isObject, TimeSlice, yieldToEventLoop } from '../base/index.js'
import { arrivalOf, idOf } from './caller.js'
import { jsonPieces } from './json-pieces.js'
import { PlainResponse, type WholeAnswer } from './plain/plain-messages.js'
import { REQUEST_ID_HEADER } from './request-id.js'
import { DATA_HEADERS } from './safe-headers.js'
import { countUnread } from './unread.js'

/**
 * Sends head and body of a response in one write to the socket; `end(body)` would first concatenate them. Headers that the
 * response already has are sent too.
 */
export function sendWhole(request: IncomingMessage, response: ServerResponse, answer: WholeAnswer): void {
  if (response instanceof PlainResponse && response.sendWhole(answer)) return
  const { status, headers, text, encoding } = answer
  response.writeHead(status, [...headers])
  if (request.method !== 'HEAD') {
    response.write(text, encoding)
    response.socket?.uncork()
  }
  response.end()
}

/** The type of JSON answers. */
export const JSON_TYPE = 'application/json; charset=utf-8'

/** Sends a JSON text. Headers that the response already has are sent too. */
export function sendJson(request: IncomingMessage, response: ServerResponse, status: number, json: string): void {
  const bytes = Buffer.byteLength(json)
  arrivalOf(request).answerBytes = bytes
  const length = String(bytes)
  const head = ['content-type', JSON_TYPE, 'content-length', length, REQUEST_ID_HEADER, idOf(request)]
  const encoding = bytes === json.length ? 'latin1' : 'utf8'
  sendWhole(request, response, { status, headers: [...head, ...DATA_HEADERS], text: json, encoding })
  countUnread(request, response, bytes)
}

/** Items and characters of a list that are serialized in one go, some milliseconds of work at most. */
const SLICE_ITEMS = 500
const SLICE_CHARACTERS = 262_144

/** Whether a response is a list that is too long to be serialized in one go. */
export function isLongList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && (value.length > SLICE_ITEMS || charactersIn(value) > LARGE_CHARACTERS)
}

/** The JSON of a list in chunks, with yields between them. */
export async function chunksOfList(list: readonly unknown[]): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  for (let start = 0; start < list.length; ) {
    if (start > 0) await yieldToEventLoop()
    const end = endOfSlice(list, start)
    const items = JSON.stringify(list.slice(start, end)).slice(1, -1)
    chunks.push(Buffer.from(`${start === 0 ? '[' : ','}${items}`))
    start = end
  }
  chunks.push(Buffer.from(']'))
  return chunks
}

function endOfSlice(list: readonly unknown[], start: number): number {
  let end = start
  for (let characters = 0; end < list.length && end - start < SLICE_ITEMS && characters < SLICE_CHARACTERS; end++)
    characters += charactersIn(list[end])
  return end
}

/** Responses with more characters than this are serialized in slices. */
const LARGE_CHARACTERS = 1_048_576

/** Whether a response is an object with too much text, of its own or in its lists, to be serialized in one go. */
export function isLarge(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) return false
  let characters = 0
  for (const member of Object.values(value)) {
    if (typeof member === 'string') characters += member.length
    if (!Array.isArray(member)) continue
    for (const item of member) characters += isObject(item) ? charactersIn(item) : 0
  }
  return characters > LARGE_CHARACTERS
}

/** The JSON of a value with much text in chunks, with yields between them. */
export async function chunksOfLarge(value: unknown): Promise<Buffer[]> {
  const chunks: Buffer[] = []
  const slice = new TimeSlice()
  for (const piece of jsonPieces(value)) {
    chunks.push(Buffer.from(piece))
    if (slice.isOver) await slice.rest()
  }
  return chunks
}

/** Sends a JSON text in chunks. Headers that the response already has are sent too. */
export function sendChunks(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  chunks: readonly Buffer[],
): void {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
  const head = ['content-type', JSON_TYPE, 'content-length', String(length), REQUEST_ID_HEADER, idOf(request)]
  response.writeHead(status, [...head, ...DATA_HEADERS])
  for (const chunk of chunks) response.write(chunk)
  response.end()
  countUnread(request, response, length)
}
