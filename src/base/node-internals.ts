import { type Server, Socket, type SocketConstructorOpts } from 'node:net'
import { isObject } from './json.js'

/**
 * The only file that touches members of Node which Node does not document. They make accepting, reading and writing
 * cheaper: see `interceptConnections`, `openSocket`, `readDirectly` and `DirectWriter`.
 *
 * One switch covers all of them. They are used where the running major version of Node was tested and every expected
 * member is there; otherwise connections use the public API of `node:net`, which is slower and behaves the same.
 */
const TESTED_MAJORS: ReadonlySet<number> = new Set([20, 22, 24])

/** A request object for one write. Node calls it back only when the system did not take all bytes at once. */
interface WriteRequest {
  /** `status` is 0, or a negative error number of the system. */
  oncomplete: (status: number) => void
  /** Keeps the bytes alive until the system has taken them. */
  buffer: Buffer
}

/** Node's binding for streams. */
export interface StreamBinding {
  readonly WriteWrap: new () => WriteRequest
  /** Results of the last call, whichever stream made it. */
  readonly streamBaseState: Int32Array
  /** Index in `streamBaseState`: whether the last write left bytes for later. */
  readonly kLastWriteWasAsync: number
  /** Index in `streamBaseState`: bytes of the last read. An error of the system, or the end, is negative. */
  readonly kReadBytesOrError: number
}

/** The handle of a listening server. */
interface ServerHandle {
  /** Called for every connection that the system hands over. */
  onconnection: (this: ServerHandle, error: unknown, connection: unknown) => void
  setNoDelay(isOn: boolean): void
  setKeepAlive(isOn: boolean, delaySeconds: number): void
}

type ReadCallback = (this: unknown, memory: unknown) => void

/** The handle of an accepted connection, which becomes a socket, or is closed without becoming one. */
export interface ConnectionHandle {
  /** Called by Node when bytes or the end have arrived. The socket sets it. */
  onread?: ReadCallback
  readonly useUserBuffer: unknown
  close(): void
  /** @returns 0, or a negative error number of the system. */
  writeBuffer(request: WriteRequest, bytes: Buffer): number
}

const binding = isTestedVersion(process.versions.node) ? findStreamBinding(process) : undefined
let isOn = binding !== undefined

/** Whether servers that start to listen now use undocumented members of Node. */
export function usesNodeInternals(): boolean {
  return isOn
}

/**
 * Turns the use of undocumented members off, or on again where Node has them; for benchmarks and tests. Open servers and
 * connections keep their mode.
 */
export function switchNodeInternals(to: 'on' | 'off'): void {
  isOn = to === 'on' && binding !== undefined
}

/** Whether these members were tested with this version of Node, such as `22.11.0`. */
export function isTestedVersion(version: string): boolean {
  return TESTED_MAJORS.has(Number.parseInt(version, 10))
}

/** Finds the binding for streams in `process`. Undefined where Node changed, or was started with `--permission`. */
export function findStreamBinding(host: object): StreamBinding | undefined {
  if (!('binding' in host) || typeof host.binding !== 'function') return undefined
  try {
    const found: unknown = host.binding('stream_wrap')
    return isStreamBinding(found) ? found : undefined
  } catch {
    return undefined
  }
}

/**
 * Calls `decide` for every connection that a listening server accepts, before Node makes a socket of it; `accept` lets
 * Node continue as usual. Does nothing where internals are not used: connections then arrive only as `connection` events.
 */
export function interceptConnections(
  server: Server,
  decide: (connection: ConnectionHandle, accept: () => void) => void,
): void {
  const handle = isOn ? handleOf(server) : undefined
  if (!handle) return
  const next = handle.onconnection
  handle.onconnection = (error, connection) => {
    const accept = (): void => next.call(handle, error, connection)
    if (isConnectionHandle(connection)) decide(connection, accept)
    else accept()
  }
}

/**
 * Sets the options of a listening socket that every accepted connection inherits on Linux: no delay, and keep-alive after
 * this time. That saves five system calls for each connection.
 * @returns whether connections have the options
 */
export function presetOptions(server: Server, keepAliveSeconds: number): boolean {
  const handle = isOn && process.platform === 'linux' ? handleOf(server) : undefined
  handle?.setNoDelay(true)
  handle?.setKeepAlive(true, keepAliveSeconds)
  return handle !== undefined
}

/**
 * Makes the socket of an accepted connection, which reads into `buffer` and calls `take` with the number of bytes read.
 * Reading into shared memory costs half as much as a buffer per read; Node offers it (`onread`) for outgoing
 * connections only. `take` is called before the socket sees the bytes: the socket's own path looks at a dozen places in
 * memory, which are rarely in the processor's cache when there are many clients. The socket still reports the end of the
 * connection and its errors.
 */
export function openSocket(connection: ConnectionHandle, buffer: Buffer, take: (length: number) => void): Socket {
  const callback = (length: number): boolean => {
    take(length)
    return true
  }
  const options = { handle: connection, allowHalfOpen: true, onread: { buffer, callback } }
  const socket = new Socket(options as SocketConstructorOpts)
  if (binding) readBelowSocket(connection, binding, take)
  return socket
}

/** Gives a socket of `openSocket` bytes that were read below it, for code that reads the socket as a stream. */
export function passToSocket(socket: Socket, bytes: Buffer): void {
  // Restarts the socket's idle timeout, because the socket has not noticed the read.
  if (socket.timeout) socket.setTimeout(socket.timeout)
  socket.push(bytes)
}

/**
 * Calls `take` for bytes that arrive on a connected outgoing socket before the socket sees them, as `openSocket` does. The
 * socket was opened with `onread`; `take` finds the bytes in the memory given there.
 * @returns the handle, for a `DirectWriter`. Undefined where internals are not used: `onread` is called then.
 */
export function readDirectly(socket: Socket, take: (length: number) => void): ConnectionHandle | undefined {
  const handle = isOn && '_handle' in socket ? socket._handle : undefined
  if (!binding || !isConnectionHandle(handle)) return undefined
  readBelowSocket(handle, binding, take)
  return handle
}

function readBelowSocket(connection: ConnectionHandle, known: StreamBinding, take: (length: number) => void): void {
  const { streamBaseState, kReadBytesOrError } = known
  const next = connection.onread
  if (typeof next !== 'function') return
  connection.onread = function (memory) {
    const length = streamBaseState[kReadBytesOrError] ?? 0
    if (length > 0) take(length)
    else next.call(this, memory)
  }
}

/** Callbacks for bytes that the system does not take at once. */
export interface WriteEvents {
  /** The bytes must not change from now on. Absent: nobody changes them. */
  readonly keep?: (bytes: Buffer) => void
  /** The bytes were sent, or sending failed. `status` is 0, or a negative error number of the system. */
  readonly settled: (status: number) => void
}

/** One request object for every write that the system takes at once. */
let request = binding && new binding.WriteWrap()

/**
 * Writes to a connection below its socket. The socket's queue, callbacks and ticks are a tenth of the cost of a reply
 * and do nothing for bytes that the system takes at once. Only for a socket that has nothing queued. Later writes to the
 * socket, and its end, follow these bytes.
 */
export class DirectWriter {
  readonly #handle: ConnectionHandle
  readonly #binding: StreamBinding
  readonly #events: WriteEvents
  #queuedBytes = 0

  private constructor(handle: ConnectionHandle, known: StreamBinding, events: WriteEvents) {
    this.#handle = handle
    this.#binding = known
    this.#events = events
  }

  /** A writer for an intercepted connection; undefined for other connections. */
  static of(handle: ConnectionHandle | undefined, events: WriteEvents): DirectWriter | undefined {
    return binding && handle ? new DirectWriter(handle, binding, events) : undefined
  }

  /** Bytes of the last write that the system has not taken yet, at most. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** Writes bytes, which may be lent. Not while any are queued. @returns 0, or a negative error number of the system. */
  write(bytes: Buffer): number {
    const { WriteWrap, streamBaseState, kLastWriteWasAsync } = this.#binding
    request ??= new WriteWrap()
    const status = this.#handle.writeBuffer(request, bytes)
    if (status === 0 && streamBaseState[kLastWriteWasAsync] !== 0) this.#queue(request, bytes)
    return status
  }

  #queue(taken: WriteRequest, bytes: Buffer): void {
    request = undefined
    this.#events.keep?.(bytes)
    taken.buffer = bytes
    this.#queuedBytes = bytes.length
    taken.oncomplete = (status) => {
      this.#queuedBytes = 0
      this.#events.settled(status)
    }
  }
}

function handleOf(server: Server): ServerHandle | undefined {
  if (!('_handle' in server)) return undefined
  const { _handle: handle } = server
  return isServerHandle(handle) ? handle : undefined
}

const isServerHandle = (value: unknown): value is ServerHandle =>
  hasMethods(value, 'onconnection', 'setNoDelay', 'setKeepAlive')

const isConnectionHandle = (value: unknown): value is ConnectionHandle =>
  hasMethods(value, 'useUserBuffer', 'close', 'writeBuffer')

function hasMethods(value: unknown, ...names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => typeof value[name] === 'function')
}

function isStreamBinding(value: unknown): value is StreamBinding {
  return (
    isObject(value) &&
    typeof value.WriteWrap === 'function' &&
    value.streamBaseState instanceof Int32Array &&
    typeof value.kLastWriteWasAsync === 'number' &&
    typeof value.kReadBytesOrError === 'number'
  )
}
