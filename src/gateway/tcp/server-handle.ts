import type { Server } from 'node:net'

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

/** Whether a value has members. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
