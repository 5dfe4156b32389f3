import { type Server, Socket, type SocketConstructorOpts } from 'node:net'
import { inTurn, isObject, isTurnSpent } from '../../base/index.js'
import { COMMON_BLOCK } from '../resp/lent-memory.js'
import { readDirectly } from './direct-reader.js'
import { handleOf } from './server-handle.js'
import { streamInternals } from './stream-internals.js'

/**
 * What takes the bytes of a client: the first `length` of `memory`, which may be lent (`lent-memory.ts`). A view of them
 * would cost as much as all that is done with most of them.
 */
export type Receiver = (memory: Buffer, length: number) => void

const KEEP_ALIVE_DELAY_MS = 300_000
/** Whoever sends so much at a time may have more on the way; the system would hand it over read by read, in one turn. */
const MUCH_BYTES = 65_536

/** The connection of a client and what takes the bytes that it sends. */
export class Inlet {
  readonly socket: Socket
  /** What Node has inside of the socket, where that is known. */
  readonly handle: unknown
  receive: Receiver = () => {}

  private constructor(open: (receive: Receiver) => Socket, handle?: ConnectionHandle) {
    this.socket = open((memory, length) => this.#take(memory, length))
    this.handle = handle
  }

  /** Of a connection that reads into memory of its own. */
  static of(socket: Socket): Inlet {
    return new Inlet((receive) => socket.on('data', (chunk: Buffer) => receive(chunk, chunk.length)))
  }

  /** Of a connection that reads into the common block. */
  static ofHandle(handle: ConnectionHandle): Inlet {
    const inlet = new Inlet((receive) => {
      const callback = (length: number): boolean => {
        receive(COMMON_BLOCK, length)
        return true
      }
      const options = { handle, allowHalfOpen: true, onread: { buffer: COMMON_BLOCK, callback } }
      return new Socket(options as SocketConstructorOpts)
    }, handle)
    readDirectly(handle, streamInternals, (length) => inlet.#take(COMMON_BLOCK, length))
    return inlet
  }

  /** Reads no more for a moment where others have to wait; whoever has stopped reading for other reasons goes on. */
  #take(memory: Buffer, length: number): void {
    this.receive(memory, length)
    const { socket } = this
    if (length < MUCH_BYTES || socket.isPaused() || socket.destroyed || !isTurnSpent()) return
    socket.pause()
    inTurn(() => socket.resume())
  }

  /** The client has logged in: it gets what is not worth the system calls for a stranger. */
  settle(): void {
    this.socket.setNoDelay(true)
    this.socket.setKeepAlive(true, KEEP_ALIVE_DELAY_MS)
  }
}

/** A connection of the operating system, as Node has it inside of a socket. */
interface ConnectionHandle {
  readonly useUserBuffer: unknown
}

/**
 * Gives every connection that `server` accepts to `take`. The server has to listen already.
 *
 * A connection whose bytes are read into the common block costs half as much to read. Node offers that to programs that
 * connect (`onread`), but not to those that accept. So the connection is taken one step earlier, where Node would make a
 * socket of it, by members that it does not document. Where one of them is missing, connections are taken as usual.
 */
export function takeInlets(server: Server, take: (inlet: Inlet) => void): void {
  server.on('connection', (socket) => take(Inlet.of(socket)))
  const handle = handleOf(server)
  if (!handle) return
  const asUsual = handle.onconnection
  handle.onconnection = (error, connection) => {
    if (isConnection(connection)) take(Inlet.ofHandle(connection))
    else asUsual.call(handle, error, connection)
  }
}

function isConnection(value: unknown): value is ConnectionHandle {
  return isObject(value) && typeof value.useUserBuffer === 'function'
}
