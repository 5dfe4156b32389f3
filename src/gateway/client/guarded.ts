import type { Receiver } from './inlet.js'

/** The owner of a connection, which closes when a handler throws. The process and other connections go on. */
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
