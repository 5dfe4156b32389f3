import type { Duplex } from 'node:stream'
import type { Receiver } from './inlet.js'

/** The owner of a connection. It closes the connection when a handler throws; the process and other connections continue. */
export interface FaultOwner {
  fault(error: unknown): void
}

/** Wraps `receive` so that an error which it throws goes to `owner.fault`. */
export function guardedReceiver(owner: FaultOwner, receive: Receiver): Receiver {
  return (memory, length) => {
    try {
      receive(memory, length)
    } catch (error) {
      owner.fault(error)
    }
  }
}

/** Wraps an event handler of a connection so that an error which it throws goes to `owner.fault`. */
export function guarded<Args extends readonly unknown[]>(
  owner: FaultOwner,
  handle: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      handle(...args)
    } catch (error) {
      owner.fault(error)
    }
  }
}

/** Listens to events of a stream. An error that a handler throws goes to `owner.fault`. */
export function listen(
  owner: FaultOwner,
  stream: Duplex,
  handlers: Readonly<Record<'data' | 'end' | 'drain', (chunk: Buffer) => void>>,
): void {
  for (const [event, handle] of Object.entries(handlers)) stream.on(event, guarded(owner, handle))
}
