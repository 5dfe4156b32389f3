import type { IncomingMessage, ServerResponse } from 'node:http'

/**
 * Calls back once an answer is over: it has gone out whole, or its connection is lost. The response alone does not tell:
 * one that waits for the answers before it has no connection yet, and is never closed when that is lost.
 */
export function onceOver({ socket }: IncomingMessage, response: ServerResponse, callback: () => void): void {
  const over = (): void => {
    socket.off('close', over)
    response.off('close', over)
    callback()
  }
  // There are as many as the client has requests under way on the connection.
  socket.setMaxListeners(0)
  socket.on('close', over)
  response.on('close', over)
}
