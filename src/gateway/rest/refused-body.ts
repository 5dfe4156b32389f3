import type { IncomingMessage, ServerResponse } from 'node:http'

/** So much of a body is read and thrown away behind the answer; whoever sends more is disconnected. */
const MOST_BYTES = 2 ** 30

/**
 * For a request that is answered before it has come whole: most clients read an answer only once they have sent
 * everything, and a connection that is closed while bytes arrive is reset, which takes the answer with it. So what
 * still comes is thrown away, within the time that every request has, and the next request on the connection is served.
 */
export function discardBehindAnswer(request: IncomingMessage, response: ServerResponse): void {
  // Node lets the body go when it has sent the answer, and takes away whoever listened before.
  response.on('finish', () => {
    let left = MOST_BYTES
    request.on('data', (piece: Buffer) => {
      left -= piece.length
      if (left < 0) request.socket.destroy()
    })
  })
}
