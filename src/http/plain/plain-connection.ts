import type { Socket } from 'node:net'
import { type ConnectionHandle, DirectWriter, openSocket, passToSocket, unreachable } from '../../base/index.js'
import { MAX_PLAIN_HEAD_BYTES, type PlainHead, PlainHeads } from './plain-head.js'
import { PlainRequest, PlainResponse, type PlainWriter } from './plain-messages.js'

/**
 * The states of a connection.
 *
 * ```
 *   new, waiting ──beginning of a plain request──▶ receiving
 *      │  ▲                                            │
 *      │  └──answer── answering ◀──the rest of it──────┤
 *      └──plain request──▶ │                           │
 *   bytes of the next request, before the answer       │ anything else, also in new and waiting
 *                          └────────▶ with Node ◀──────┘
 * ```
 *
 * - new: no request so far. Node gets the connection if the first one is slow, and applies its timeout.
 * - waiting: for the next request. Idle time is counted in sweeps, so that setting the clock ends no connection.
 * - receiving: a short request that arrives in a few pieces.
 * - answering: a plain request. Bytes that arrive meanwhile are held, and no more are read.
 * - with Node: Node's HTTP server has taken the connection over for good.
 */
type State =
  | { readonly kind: 'new' }
  | { readonly kind: 'waiting'; readonly sweeps: number }
  | { readonly kind: 'receiving'; readonly begun: Buffer; readonly pieces: number }
  | { readonly kind: 'answering'; readonly response: PlainResponse; readonly held: Buffer[] }
  | { readonly kind: 'with Node' }

const NEW: State = { kind: 'new' }
const WITH_NODE: State = { kind: 'with Node' }

/** The memory that all connections read into. Node gets a request that does not fit. */
const BLOCK = Buffer.allocUnsafeSlow(65_536)
/** Node gets a longer request, unless it arrives as a whole: a stranger may leave up to this much of a request here. */
const MAX_IN_PIECES_BYTES = 16_384
const MAX_PIECES = 8

/** Functions of the listener that a connection calls. */
export interface PlainConnectionDeps {
  /** Answers a request. */
  readonly serve: (request: PlainRequest, response: PlainResponse) => void
  /** Passes the connection to Node's HTTP server, which first reads the bytes that were unshifted into it. */
  readonly toNode: (socket: Socket) => void
}

/** A connection of a client that has sent only plain requests so far. */
export class PlainConnection implements PlainWriter {
  readonly socket: Socket
  readonly #deps: PlainConnectionDeps
  readonly #writer: DirectWriter | undefined
  readonly #heads = new PlainHeads()
  #state: State = NEW

  constructor(handle: ConnectionHandle, deps: PlainConnectionDeps) {
    this.#deps = deps
    this.socket = openSocket(handle, BLOCK, (length) => this.#take(length))
    this.#writer = DirectWriter.of(handle, { settled: (status) => void (status < 0 && this.socket.destroy()) })
    this.socket.on('error', () => {}).on('end', () => this.socket.end())
    this.socket.on('drain', () => this.#state.kind === 'answering' && this.#state.response.drained())
  }

  /** Ends a connection that has been idle for more than `maxSweeps` sweeps. Node gets one whose request arrives slowly. */
  sweep(maxSweeps: number): void {
    const state = this.#state
    if (state.kind === 'new') this.#handOver([])
    else if (state.kind === 'receiving') this.#handOver([state.begun])
    else if (state.kind !== 'waiting') return
    else if (state.sweeps < maxSweeps) this.#state = { kind: 'waiting', sweeps: state.sweeps + 1 }
    else this.socket.destroy()
  }

  /** Ends the connection, once its request is answered. */
  end(): void {
    const state = this.#state
    if (state.kind === 'answering') state.response.shouldKeepAlive = false
    else if (state.kind !== 'with Node') this.socket.destroySoon()
  }

  #take(length: number): void {
    const state = this.#state
    switch (state.kind) {
      case 'new':
      case 'waiting':
        this.#receive(BLOCK, length, 1)
        return
      case 'receiving': {
        const bytes = Buffer.concat([state.begun, BLOCK.subarray(0, length)])
        this.#receive(bytes, bytes.length, state.pieces + 1)
        return
      }
      case 'answering':
        state.held.push(copyOf(BLOCK, 0, length))
        this.socket.pause()
        return
      case 'with Node':
        passToSocket(this.socket, copyOf(BLOCK, 0, length))
        return
      default:
        unreachable(state)
    }
  }

  /** new, waiting or receiving → answering, → receiving, or → with Node. @param memory begins with the `length` bytes */
  #receive(memory: Buffer, length: number, pieces: number): void {
    const head = this.#heads.read(memory.toString('latin1', 0, Math.min(length, MAX_PLAIN_HEAD_BYTES)))
    const wholeBytes = head === 'incomplete' ? MAX_IN_PIECES_BYTES : head ? head.headBytes + head.bodyBytes : 0
    const mayFollow = length < wholeBytes && wholeBytes <= MAX_IN_PIECES_BYTES && pieces < MAX_PIECES
    if (head && head !== 'incomplete' && length === wholeBytes)
      this.#serve(head, copyOf(memory, head.headBytes, length))
    else if (mayFollow) this.#state = { kind: 'receiving', begun: copyOf(memory, 0, length), pieces }
    else this.#handOver([copyOf(memory, 0, length)])
  }

  /** → answering. */
  #serve(head: PlainHead, body: Buffer): void {
    const request = new PlainRequest(this.socket, head, body)
    const response = new PlainResponse(request, this)
    response.assignSocket(this.socket)
    this.#state = { kind: 'answering', response, held: [] }
    this.#deps.serve(request, response)
  }

  sendNow(answer: Buffer): boolean {
    const { socket } = this
    const writer = this.#writer
    if (!writer || writer.queuedBytes > 0 || socket.writableLength > 0 || !socket.writable) return false
    const status = writer.write(answer)
    if (status < 0) socket.destroy()
    return true
  }

  /** answering → waiting, or → with Node. */
  answered(response: PlainResponse): void {
    const state = this.#state
    if (state.kind !== 'answering' || state.response !== response) return
    response.detachSocket(this.socket)
    process.nextTick(() => response.over())
    this.#state = { kind: 'waiting', sweeps: 0 }
    if (!response.shouldKeepAlive) this.socket.destroySoon()
    else if (state.held.length > 0) this.#handOver(state.held)
  }

  /** any → with Node. */
  #handOver(bytes: readonly Buffer[]): void {
    this.#state = WITH_NODE
    if (this.socket.destroyed) return
    for (const piece of bytes.toReversed()) this.socket.unshift(piece)
    this.#deps.toNode(this.socket)
    this.socket.resume()
  }
}

const copyOf = (memory: Buffer, start: number, end: number): Buffer => Buffer.from(memory.subarray(start, end))
