import type { Server } from 'node:net'
import { isObject } from '../../base/index.js'
import { handleOf } from './server-handle.js'

/** So many connections are taken in a turn of the event loop, whatever else there is to do. */
const LEAST_A_TURN = 4
/** Of the time that passed since the last turn, taking connections may have this part again. */
const SHARE = 0.1
/** A longer time than this is no turn: nothing happened. */
const LONGEST_TURN_MS = 20
/** Connections beyond so many that wait are closed: as many as a database may have clients. */
const MOST_WAITING = 10_000

/** A connection of the operating system, as Node has it inside of a socket. */
interface ConnectionHandle {
  close(): void
}

interface Waiting {
  readonly server: Server
  readonly take: () => void
  readonly connection: ConnectionHandle
}

/**
 * Takes connections in at a pace that leaves time for those who are in. The system hands over all that have come in one
 * go, and each costs several times as much as a command: a storm of strangers would keep everybody waiting for a whole
 * batch of them, turn after turn. So only a few are taken in a turn, and more as long as they get no more than their
 * share of the time; where nobody else is busy one turn follows the other, and nobody waits.
 */
export class Doorway {
  #waiting: Waiting[] = []
  /** Those before it have been taken. */
  #first = 0
  #takenInTurn = 0
  #turnScheduled = false
  /** When the last turn of taking connections ended, milliseconds of `performance.now`. */
  #endedAtMs = 0

  /** Connections that have come and have not been taken. */
  get waiting(): number {
    return this.#waiting.length - this.#first
  }

  /**
   * Paces the connections of a server that listens. It stands between Node and its server, by members that Node does
   * not document; where one is missing, connections come as usual.
   */
  pace(server: Server): void {
    const handle = handleOf(server)
    if (!handle) return
    const asUsual = handle.onconnection
    handle.onconnection = (error, connection) => {
      const take = (): void => asUsual.call(handle, error, connection)
      if (isConnection(connection)) this.#admit({ server, take, connection })
      else take()
    }
  }

  /** Closes the connections of a server that wait. */
  dismiss(server: Server): void {
    for (const { server: wanted, connection } of this.#rest()) if (wanted === server) connection.close()
    this.#waiting = this.#rest().filter(({ server: wanted }) => wanted !== server)
    this.#first = 0
  }

  #rest(): readonly Waiting[] {
    return this.#waiting.slice(this.#first)
  }

  #admit(next: Waiting): void {
    this.#scheduleTurn()
    if (this.waiting === 0 && this.#takenInTurn < LEAST_A_TURN) {
      this.#takenInTurn++
      next.take()
    } else if (this.waiting < MOST_WAITING) this.#waiting.push(next)
    else next.connection.close()
  }

  #scheduleTurn(): void {
    if (this.#turnScheduled) return
    this.#turnScheduled = true
    setImmediate(this.#onTurn)
  }

  readonly #onTurn = (): void => {
    const beganAtMs = performance.now()
    const untilMs = beganAtMs + SHARE * Math.min(beganAtMs - this.#endedAtMs, LONGEST_TURN_MS)
    this.#turnScheduled = false
    this.#takenInTurn = 0
    while (this.waiting > 0 && (this.#takenInTurn < LEAST_A_TURN || performance.now() < untilMs)) this.#takeNext()
    if (this.#takenInTurn > 0) this.#scheduleTurn()
    this.#endedAtMs = performance.now()
  }

  #takeNext(): void {
    const next = this.#waiting[this.#first++]
    this.#takenInTurn++
    if (this.waiting === 0) {
      this.#waiting = []
      this.#first = 0
    }
    next?.take()
  }
}

function isConnection(value: unknown): value is ConnectionHandle {
  return isObject(value) && typeof value.close === 'function'
}
