import { Socket } from 'node:net'
import { getSystemErrorName } from 'node:util'
import { buildConnector } from 'undici'
import { DirectWriter, readDirectly, type TargetGate, unreachable } from '../../base/index.js'

/** Connect timeout. An unreachable host is detected long before the attempt times out. */
export const CONNECT_TIMEOUT_MS = 10_000

/** The memory that all connections without TLS read into. */
const BLOCK = Buffer.allocUnsafeSlow(65_536)

/** What happens to a connection. */
export interface WireEvents {
  onOpen(): void
  /** @param bytes are valid during the call only */
  onBytes(bytes: Buffer): void
  /** Called once, also when the connection was not made. @param error absent when the other side has ended it */
  onClose(error?: Error): void
}

/**
 * - opening: not connected yet. undici's connectors return the socket, although their type does not say so.
 * - open: connected. With a writer, reads and writes go below the socket (`base/node-internals.ts`).
 * - closed: for good.
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

  /** Begins to connect, by `connect`. */
  constructor(events: WireEvents, connect: (reading: Reading, done: buildConnector.Callback) => unknown) {
    this.#events = events
    const reading = { buffer: BLOCK, callback: (length: number) => this.#read(length) }
    const made = connect(reading, (error, socket) => (socket ? this.#opened(socket) : this.#closed(error ?? undefined)))
    if (this.#state.kind === 'opening' && made instanceof Socket) this.#state = { kind: 'opening', socket: made }
  }

  /** Whether bytes that were written have not all been taken by the system. */
  get isSending(): boolean {
    const state = this.#state
    return state.kind === 'open' && (state.socket.writableLength > 0 || (state.writer?.queuedBytes ?? 0) > 0)
  }

  /** Whether it can take a request. */
  get isUsable(): boolean {
    return this.#state.kind === 'open' && this.#state.socket.writable && !this.#state.socket.readableEnded
  }

  /** Sends bytes, which must stay as they are. Only while it is open. */
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

  /** Reads no more until `resume`. */
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
        // The error ends undici's timer too.
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

  /** opening → open; a connection that was given up meanwhile ends. */
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
  /** One for all, because it remembers TLS sessions. */
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
