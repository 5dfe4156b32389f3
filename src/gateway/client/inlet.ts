import type { Server } from 'node:net'
import {
  type ConnectionHandle,
  interceptConnections,
  isTurnSpent,
  openSocket,
  presetOptions,
  scheduleSlice,
} from '../../base/index.js'
import { COMMON_BLOCK } from '../resp/lent-memory.js'
import type { ClientSocket } from './client-socket.js'

/**
 * Receives the bytes of a client: the first `length` of `memory`, which may be lent (`lent-memory.ts`). For most reads, to
 * make a view of the bytes would cost as much as all other work.
 */
export type Receiver = (memory: Buffer, length: number) => void

const KEEP_ALIVE_DELAY_SECONDS = 300
/** After a read of this size, more bytes may be waiting, and the system would deliver all of them in one turn. */
const MUCH_BYTES = 65_536

/** The receiving side of a client's connection. */
export class Inlet {
  readonly socket: ClientSocket
  /** The connection below the socket; undefined where internals of Node are not used. */
  readonly handle: ConnectionHandle | undefined
  receive: Receiver = () => {}
  /** Called when the client has logged in. */
  onLogin: () => void = () => {}
  readonly #isSettled: boolean

  private constructor(open: (receive: Receiver) => ClientSocket, isSettled: boolean, handle?: ConnectionHandle) {
    this.socket = open((memory, length) => this.#take(memory, length))
    this.handle = handle
    this.#isSettled = isSettled
  }

  /** The inlet of a connection that reads into memory of its own. */
  static of(socket: ClientSocket): Inlet {
    return new Inlet((receive) => socket.on('data', (chunk: Buffer) => receive(chunk, chunk.length)), false)
  }

  /** The inlet of a connection that reads into the common block. `isSettled`: the socket has its options already. */
  static ofHandle(handle: ConnectionHandle, isSettled: boolean): Inlet {
    const open = (receive: Receiver): ClientSocket =>
      openSocket(handle, COMMON_BLOCK, (length) => receive(COMMON_BLOCK, length))
    return new Inlet(open, isSettled, handle)
  }

  /** Pauses reading until a later turn when other clients have to wait. A connection that is already paused stays paused. */
  #take(memory: Buffer, length: number): void {
    this.receive(memory, length)
    const { socket } = this
    if (length < MUCH_BYTES || socket.isPaused() || socket.destroyed || !isTurnSpent()) return
    socket.pause()
    scheduleSlice(() => socket.resume())
  }

  /** Call it when the client has logged in: sets the options of its socket. Strangers are not worth these system calls. */
  settle(): void {
    this.onLogin()
    if (this.#isSettled) return
    this.socket.setNoDelay(true)
    this.socket.setKeepAlive(true, 1000 * KEEP_ALIVE_DELAY_SECONDS)
  }
}

/**
 * Gives every connection that `server` accepts to `take`. The server has to listen already. Connections read into the
 * common block where internals of Node are used (`node-internals.ts`), otherwise into memory of their own.
 */
export function takeInlets(server: Server, take: (inlet: Inlet) => void): void {
  server.on('connection', (socket) => take(Inlet.of(socket)))
  const isSettled = presetOptions(server, KEEP_ALIVE_DELAY_SECONDS)
  interceptConnections(server, (connection) => take(Inlet.ofHandle(connection, isSettled)))
}
