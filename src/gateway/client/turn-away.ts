import type { Socket } from 'node:net'
import { HomeportError } from '../../contract/errors/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'

/** Tells a client why it is not served, as far as that may be told, and closes its connection. */
export function turnAway(socket: Socket, reason: unknown): void {
  socket.on('error', () => {})
  if (reason instanceof HomeportError) socket.write(encodeError(errorText(reason)))
  socket.destroySoon()
}
