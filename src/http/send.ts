import type { IncomingMessage, ServerResponse } from 'node:http'

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

/** Answers with a JSON text, beside the headers that the response already has. */
export function sendJson(request: IncomingMessage, response: ServerResponse, status: number, json: string): void {
  const bytes = Buffer.byteLength(json)
  const length = String(bytes)
  response.writeHead(status, ['content-type', 'application/json; charset=utf-8', 'content-length', length])
  // Text of ASCII alone, which most is, is written faster where that is known.
  sendWhole(request, response, json, bytes === json.length ? 'latin1' : 'utf8')
}
