import { Socket } from 'node:net'
import { getSystemErrorName } from 'node:util'
import { buildConnector } from 'undici'
import { DirectWriter, readDirectly, type TargetGate, unreachable } from '../../base/index.js'

/** Connect timeout. An unreachable host is detected long before the attempt times out. */
export const CONNECT_TIMEOUT_MS = 10_000

/** The memory that all connections without TLS read into. */
const BLOCK = Buffer.allocUnsafeSlow(65_536)

/** Receives the events of a connection. */
export interface WireEvents {
  onOpen(): void
  /** @param bytes are valid during the call only */
  onBytes(bytes: Buffer): void
  /** Called once, also if connecting failed. @param error absent if the other side has ended the connection */
  onClose(error?: Error): void
}

/**
 * - opening: not connected yet. undici's connectors return the socket, although their type does not say so.
 * - open: connected. With a writer, reads and writes go below the socket (`base/node-internals.ts`).
 * - closed: final.
 */
type State =
  | { readonly kind: 'opening'; readonly socket?: Socket }
  | { readonly kind: 'open'; readonly socket: Socket; readonly writer: DirectWriter | undefined }
  | { readonly kind: 'closed' }

const CLOSED: State = { kind: 'closed' }

/** A connection to a destination, with or without TLS. */
export class Wire {
  readonly #events: WireEvents
  #state: State = { kind: 'opening' }
  #error: Error | undefined

  /** Begins to connect with `connect`. */
  constructor(events: WireEvents, connect: (reading: Reading, done: buildConnector.Callback) => unknown) {
    this.#events = events
    const reading = { buffer: BLOCK, callback: (length: number) => this.#read(length) }
    const made = connect(reading, (error, socket) => (socket ? this.#opened(socket) : this.#closed(error ?? undefined)))
    if (this.#state.kind === 'opening' && made instanceof Socket) this.#state = { kind: 'opening', socket: made }
  }

  /** Whether written bytes are still queued, because the system has not accepted them all. */
  get isSending(): boolean {
    const state = this.#state
    return state.kind === 'open' && (state.socket.writableLength > 0 || (state.writer?.queuedBytes ?? 0) > 0)
  }

  /** Whether it can take a request. */
  get isUsable(): boolean {
    return this.#state.kind === 'open' && this.#state.socket.writable && !this.#state.socket.readableEnded
  }

  /** Sends bytes, which must not be changed afterwards. Without effect unless the connection is open. */
  write(pieces: readonly Buffer[]): void {
    const state = this.#state
    if (state.kind !== 'open') return
    const { socket, writer } = state
    const [first] = pieces
    if (first && writer && pieces.length === 1 && !this.isSending) {
      const status = writer.write(first)
      if (status < 0) this.destroy(systemError('write', status))
      return
    }
    socket.cork()
    for (const piece of pieces) socket.write(piece)
    socket.uncork()
  }

  /** Stops reading until `resume`. */
  pause(): void {
    if (this.#state.kind === 'open') this.#state.socket.pause()
  }

  resume(): void {
    if (this.#state.kind === 'open') this.#state.socket.resume()
  }

  /** Ends the connection; `onClose` gets the error. */
  destroy(error?: Error): void {
    this.#error ??= error
    const state = this.#state
    switch (state.kind) {
      case 'opening':
        this.#closed(error)
        // The error also ends undici's connect timer.
        state.socket?.destroy(error ?? new Error('the connection is no longer wanted'))
        return
      case 'open':
        state.socket.destroy()
        return
      case 'closed':
        return
      default:
        unreachable(state)
    }
  }

  /** opening → open. A connection that was given up meanwhile is closed. */
  #opened(socket: Socket): void {
    if (this.#state.kind !== 'opening') {
      socket.destroy()
      return
    }
    socket.on('error', (error) => (this.#error ??= error))
    socket.on('end', () => socket.destroy())
    socket.on('close', () => this.#closed(this.#error))
    this.#state = { kind: 'open', socket, writer: this.#writerOf(socket) }
    this.#events.onOpen()
  }

  #writerOf(socket: Socket): DirectWriter | undefined {
    if ('encrypted' in socket) {
      socket.on('data', (bytes: Buffer) => this.#events.onBytes(bytes))
      return undefined
    }
    const settled = (status: number): void => {
      if (status < 0) this.destroy(systemError('write', status))
    }
    return DirectWriter.of(
      readDirectly(socket, (length) => this.#read(length)),
      { settled },
    )
  }

  #read(length: number): boolean {
    this.#events.onBytes(BLOCK.subarray(0, length))
    return true
  }

  /** opening or open → closed. */
  #closed(error: Error | undefined): void {
    if (this.#state.kind === 'closed') return
    this.#state = CLOSED
    this.#events.onClose(error)
  }
}

/** Memory to read into, in the form of Node's option `onread`. */
type Reading = { readonly buffer: Buffer; readonly callback: (length: number) => boolean }

/** Where a connection leads. */
type Target = Pick<URL, 'protocol' | 'hostname' | 'port' | 'host'>

/** Makes connections to destinations that a gate allows. */
export class Wires {
  readonly #gate: TargetGate
  /** One connector for all connections, because it caches TLS sessions. */
  readonly #connectTls: buildConnector.connector

  constructor(gate: TargetGate) {
    this.#gate = gate
    this.#connectTls = buildConnector(this.#options)
  }

  /** Begins to connect. */
  open({ protocol, hostname, port, host }: Target, events: WireEvents): Wire {
    const target = { protocol, port, host, hostname: hostname.replace(/^\[|\]$/g, '') }
    return new Wire(events, (onread, done) => {
      const connect = protocol === 'https:' ? this.#connectTls : buildConnector({ ...this.#options, onread })
      return connect(target, done)
    })
  }

  get #options() {
    return { timeout: CONNECT_TIMEOUT_MS, lookup: this.#gate.lookup }
  }
}

function systemError(call: string, status: number): Error {
  const code = getSystemErrorName(status)
  return Object.assign(new Error(`${call} ${code}`), { code })
}
