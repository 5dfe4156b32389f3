import type { Server } from 'node:net'
import { isObject } from '../../base/index.js'

/** What Node has inside of a server that listens; it does not document that. */
export interface ServerHandle {
  /** Called for every connection that the system hands over. */
  onconnection: (this: ServerHandle, error: unknown, connection: unknown) => void
}

/** What is inside of a server; undefined where Node has changed. */
export function handleOf(server: Server): ServerHandle | undefined {
  if (!('_handle' in server)) return undefined
  const { _handle: handle } = server
  return isObject(handle) && typeof handle.onconnection === 'function' ? (handle as unknown as ServerHandle) : undefined
}
