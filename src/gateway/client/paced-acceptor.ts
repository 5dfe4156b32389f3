import type { Server } from 'node:net'
import { interceptConnections } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { errorText } from '../error-text.js'
import { encodeError } from '../resp/encode.js'
import type { ClientSocket } from './client-socket.js'

/** Connections that every turn of the event loop accepts at least, if they are there. */
const MIN_PER_TURN = 4
/** Share of the time since the last turn that accepting may use. */
const SHARE = 0.1
/** Limit for the time since the last turn: if more has passed, the process was idle. */
const MAX_TURN_MS = 20
/** Most waiting connections, as many as a database may have clients. Further ones are closed. */
const MAX_WAITING = 10_000

/** A connection that the system has handed over and no server has accepted yet. */
interface WaitingConnection {
  readonly server: Server
  readonly accept: () => void
  close(): void
}

/**
 * Accepts connections at a pace that leaves time for clients that are connected. The system hands over all waiting
 * connections at once, and accepting one costs several times as much as a command: without a limit, a connection storm
 * would delay every client by a whole batch of them, turn after turn. So each turn accepts a few, and more while that
 * takes less than its share of the time. In an idle process turns follow each other at once, and no connection waits.
 */
export class PacedAcceptor {
  #waiting: WaitingConnection[] = []
  /** Index in `#waiting` of the first connection that was not accepted yet. */
  #first = 0
  #acceptedInTurn = 0
  #turnScheduled = false
  /** When the last turn of accepting ended, in milliseconds of `performance.now`. */
  #endedAtMs = 0

  /** Connections that wait to be accepted. */
  get waiting(): number {
    return this.#waiting.length - this.#first
  }

  /** Paces the connections of a listening server, where internals of Node are used; otherwise they arrive as usual. */
  pace(server: Server): void {
    interceptConnections(server, (connection, accept) =>
      this.#admit({ server, accept, close: () => connection.close() }),
    )
  }

  /** Closes the waiting connections of a server. */
  forget(server: Server): void {
    const waiting = this.#waiting.slice(this.#first)
    for (const connection of waiting) if (connection.server === server) connection.close()
    this.#waiting = waiting.filter((connection) => connection.server !== server)
    this.#first = 0
  }

  #admit(next: WaitingConnection): void {
    this.#scheduleTurn()
    if (this.waiting === 0 && this.#acceptedInTurn < MIN_PER_TURN) {
      this.#acceptedInTurn++
      next.accept()
    } else if (this.waiting < MAX_WAITING) this.#waiting.push(next)
    else next.close()
  }

  #scheduleTurn(): void {
    if (this.#turnScheduled) return
    this.#turnScheduled = true
    setImmediate(this.#onTurn)
  }

  readonly #onTurn = (): void => {
    const beganAtMs = performance.now()
    const untilMs = beganAtMs + SHARE * Math.min(beganAtMs - this.#endedAtMs, MAX_TURN_MS)
    this.#turnScheduled = false
    this.#acceptedInTurn = 0
    while (this.waiting > 0 && (this.#acceptedInTurn < MIN_PER_TURN || performance.now() < untilMs)) this.#acceptNext()
    if (this.#acceptedInTurn > 0) this.#scheduleTurn()
    this.#endedAtMs = performance.now()
  }

  #acceptNext(): void {
    const next = this.#waiting[this.#first++]
    this.#acceptedInTurn++
    if (this.waiting === 0) {
      this.#waiting = []
      this.#first = 0
    }
    next?.accept()
  }
}

/** Sends a client the reason why it is not served, if it is an error of the catalogue, and closes its connection. */
export function refuseConnection(socket: ClientSocket, reason: unknown): void {
  socket.on('error', () => {})
  if (reason instanceof HomeportError) socket.write(encodeError(errorText(reason)))
  socket.destroySoon()
}
