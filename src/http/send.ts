import type { IncomingMessage, ServerResponse } from 'node:http'
import { isObject, TimeSlice, yieldToEventLoop } from '../base/index.js'
import { DATA_HEADERS } from './safe-headers.js'

/**
 * Sends head and body of an answer in one write to the socket: ending with the body would gather two pieces first. The
 * head must have been given, with the length of the body.
 */
export function sendWhole(
  request: IncomingMessage,
  response: ServerResponse,
  text: string,
  encoding: 'latin1' | 'utf8',
): void {
  if (request.method !== 'HEAD') {
    response.write(text, encoding)
    response.socket?.uncork()
  }
  response.end()
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** Answers with a JSON text, beside the headers that the response already has. */
export function sendJson(request: IncomingMessage, response: ServerResponse, status: number, json: string): void {
  const bytes = Buffer.byteLength(json)
  const length = String(bytes)
  response.writeHead(status, ['content-type', JSON_TYPE, 'content-length', length, ...DATA_HEADERS])
  // Text of ASCII alone, which most is, is written faster where that is known.
  sendWhole(request, response, json, bytes === json.length ? 'latin1' : 'utf8')
}

/** So many items of a list are written as JSON in one turn: even of large ones no more than some milliseconds of work. */
const TURN_ITEMS = 500

/** Whether an answer is a list too long to be written in one turn. */
export function isLongList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length > TURN_ITEMS
}

/** The JSON of a list as pieces that follow each other; everybody else gets a turn between them. */
export async function piecesOfList(list: readonly unknown[]): Promise<Buffer[]> {
  const pieces: Buffer[] = []
  for (let start = 0; start < list.length; start += TURN_ITEMS) {
    if (start > 0) await yieldToEventLoop()
    const items = JSON.stringify(list.slice(start, start + TURN_ITEMS)).slice(1, -1)
    pieces.push(Buffer.from(`${start === 0 ? '[' : ','}${items}`))
  }
  pieces.push(Buffer.from(']'))
  return pieces
}

/** Answers with more characters than this are written in slices. */
const LARGE_CHARACTERS = 1_048_576

/** Whether an answer is an object with lists whose items hold so much text that it is written in slices. */
export function isLarge(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) return false
  let characters = 0
  for (const member of Object.values(value)) {
    if (!Array.isArray(member)) continue
    for (const item of member) {
      if (!isObject(item)) continue
      for (const part of Object.values(item)) if (typeof part === 'string') characters += part.length
    }
  }
  return characters > LARGE_CHARACTERS
}

/** The JSON of an object as pieces that follow each other: the items of its lists are written one by one. */
export async function piecesOfObject(object: Readonly<Record<string, unknown>>): Promise<Buffer[]> {
  const pieces: Buffer[] = []
  const slice = new TimeSlice()
  const add = (text: string) => pieces.push(Buffer.from(text))
  let before = '{'
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue
    add(`${before}${JSON.stringify(name)}:`)
    before = ','
    if (!Array.isArray(value)) add(JSON.stringify(value))
    else {
      for (const [index, item] of value.entries()) {
        // Put before a text of megabytes, it would be copied once more.
        add(index === 0 ? '[' : ',')
        add(JSON.stringify(item) ?? 'null')
        if (slice.isOver) await slice.rest()
      }
      add(value.length === 0 ? '[]' : ']')
    }
  }
  add(before === '{' ? '{}' : '}')
  return pieces
}

/** Answers with a JSON text in pieces, beside the headers that the response already has. */
export function sendPieces(response: ServerResponse, status: number, pieces: readonly Buffer[]): void {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  response.writeHead(status, ['content-type', JSON_TYPE, 'content-length', String(length), ...DATA_HEADERS])
  for (const piece of pieces) response.write(piece)
  response.end()
}
