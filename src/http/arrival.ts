import type { IncomingMessage } from 'node:http'
import type { Caller } from './caller.js'

/** What is known of a request before its body is read. */
export interface Arrival {
  /** The request target as it was on the wire. */
  readonly target: string
  /** The raw rest of the target, for paths that end in `{+name}`. */
  readonly rest: string | undefined
  /** Address of the client; empty when its connection is gone. */
  readonly ip: string
  /** Set once the credentials have been checked. */
  caller: Caller | undefined
}

const ARRIVAL = Symbol('arrival')

/** A member of the request itself: with entries of a weak map, every collection of young garbage would cost more. */
interface Arrived extends IncomingMessage {
  [ARRIVAL]?: Arrival
}

/** Notes how a request came. */
export function noteArrival(request: Arrived, arrival: Arrival): void {
  request[ARRIVAL] = arrival
}

/** How a request came. */
export function arrivalOf(request: Arrived): Arrival {
  const arrival = request[ARRIVAL]
  if (!arrival) throw new Error('a request came past the door')
  return arrival
}
