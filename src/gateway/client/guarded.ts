import type { Receiver } from './inlet.js'

/** Whose connection ends when something of it throws; the process and everybody else's connections go on. */
export interface FaultTaker {
  fault(error: unknown): void
}

/** Takes bytes of a client as `receive` does; what that throws is the owner's fault alone. */
export function guardedReceiver(owner: FaultTaker, receive: Receiver): Receiver {
  return (memory, length) => {
    try {
      receive(memory, length)
    } catch (error) {
      owner.fault(error)
    }
  }
}

/** Handles an event of a client's connection; what that throws is the owner's fault alone. */
export function guarded<Args extends readonly unknown[]>(
  owner: FaultTaker,
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
