import type { IncomingMessage, ServerResponse } from 'node:http'
import { type MemoryConsumer, MIN_REPORTED_BYTES } from '../base/index.js'
import { arrivalOf } from './caller.js'
import { onResponseOver } from './received-call.js'

/**
 * Counts a long answer in the memory budget of all clients for as long as its client has not read it. Call it after the
 * whole answer is written. A client that is evicted loses its connection, and with it the rest of the answer.
 */
export function countUnread(request: IncomingMessage, response: ServerResponse, bytes: number): void {
  if (bytes < MIN_REPORTED_BYTES || response.writableFinished) return
  const { memory, caller, ip } = arrivalOf(request)
  const { socket } = request
  const unread: MemoryConsumer = {
    owner: caller?.accountId || ip,
    get heldBytes() {
      return socket.destroyed || response.writableFinished ? 0 : response.writableLength
    },
    evict: () => void socket.destroy(),
  }
  onResponseOver(request, response, () => memory.remove(unread))
  memory.grow(unread, bytes)
}
