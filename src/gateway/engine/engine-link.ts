import type { Socket } from 'node:net'
import { unreachable } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { LentBytes } from '../resp/lent-memory.js'
import { ReplyFormatError } from '../resp/reply-framer.js'
import { connectEngine, type EngineConnection } from './connect-engine.js'
import type { Greeting, LinkIdentity } from './greeting.js'
import { HeldReplies } from './held-replies.js'
import type { LinkOptions } from './link-options.js'
import type { LinkState } from './link-state.js'
import { PendingReplies } from './pending-replies.js'
import { NO_REPLY_LIMITS, ReplyGate, type ReplyLimits } from './reply-gate.js'
import type { Awaited, ReplySink } from './reply-sink.js'
import { SendQueue } from './send-queue.js'
import { errorOfUnsent } from './unsent.js'

/** Receives all bytes of an engine, not divided into replies. */
export type StreamReader = (chunk: LentBytes) => void

/** The link does not wait for a large command of which the client has sent nothing for this time. */
const STALLED_MS = 1_000

/**
 * A connection to an engine that many senders may share; see `LinkState` for its states.
 *
 * ```
 *   send ──▶ PendingReplies: who gets which reply
 *       └──▶ SendQueue ──▶ engine ──▶ HeldReplies: may they go out? ──▶ ReplyGate: their length ──▶ PendingReplies ──▶ sinks
 *                                                                  └──▶ a stream reader, where replies are not counted
 * ```
 */
export class EngineLink {
  /** Called when the connection is lost or cannot be made, after all pending replies have failed. */
  onLost: () => void = () => {}
  /** Called whenever the connection has been made. */
  onConnected: () => void = () => {}
  /** Whether closing it would lose a transaction of its client, or keys that it watches. */
  hasState = false
  /** Whether a client knows the engine's client id of this connection. Commands that name the id are meant for it. */
  isIdKnown = false
  /** While a command is sent in parts: time of the last part, monotonic milliseconds. Undefined between commands. */
  lastPartAtMs: number | undefined
  /** The user and protocol. A change applies from the next connection on; the current one needs a HELLO (`introduce`). */
  identity: LinkIdentity

  readonly #options: LinkOptions
  readonly #outgoing = new SendQueue()
  readonly #pending: PendingReplies
  #gate: ReplyGate
  #held: HeldReplies | undefined
  #state: LinkState = { kind: 'idle' }
  #stream: StreamReader | undefined
  #awaitingGreeting: ((outcome: Greeting | HomeportError) => void)[] = []

  constructor(options: LinkOptions) {
    this.#options = options
    this.identity = options.identity
    this.#pending = new PendingReplies(options.logger)
    this.#gate = new ReplyGate(this.#pending, this.replyLimits)
  }

  /** The limits of replies; they do not apply to a stream. */
  get replyLimits(): ReplyLimits {
    return this.#options.replyLimits ?? NO_REPLY_LIMITS
  }

  get isClosed(): boolean {
    return this.#state.kind === 'closed'
  }

  /** Whether the connection is made. */
  get isConnected(): boolean {
    return this.#state.kind === 'ready'
  }

  /** What the engine will send next; `anything` when it may send messages. Undefined when nothing is pending. */
  get awaited(): Awaited | 'reply' | 'anything' | undefined {
    if (this.#state.kind === 'ready' && this.#stream) return 'anything'
    if (this.#state.kind !== 'ready' || this.#pending.isEmpty) return undefined
    return this.#pending.headSink?.awaits ?? 'reply'
  }

  /** Whether no reply is pending and nothing waits to be written. */
  get isQuiet(): boolean {
    return this.#pending.isEmpty && this.#outgoing.isEmpty
  }

  /** Whether the engine does not keep up with what is sent. */
  get isCongested(): boolean {
    return this.#outgoing.isCongested
  }

  /** Sends the commands at [start, end); `sink` gets their `count` replies. */
  send(sink: ReplySink, bytes: LentBytes, start: number, end: number, count: number): void {
    this.#pending.expect(sink, count)
    this.#outgoing.add(bytes, start, end, count)
    this.#wake()
  }

  /** Sends commands given as text; `sink` gets their `count` replies. */
  sendText(sink: ReplySink, text: string, count: number): void {
    this.#pending.expect(sink, count)
    this.#outgoing.addText(text, count)
    this.#wake()
  }

  /** Sends a command; `sink` gets `reply` in place of its reply. */
  sendReplaced(sink: ReplySink, command: string, reply: Buffer): void {
    this.#pending.substitute(sink, reply)
    this.#outgoing.addText(command, 1)
    this.#wake()
  }

  /** Sends commands whose replies go to the stream reader. */
  sendStreamed(bytes: LentBytes, start: number, end: number): void {
    this.#outgoing.add(bytes, start, end, 0)
    this.#wake()
  }

  /** Delivers `bytes` to `sink` after all replies that are pending now. */
  deliverInOrder(sink: ReplySink, bytes: Buffer): void {
    this.#pending.note(sink, bytes)
  }

  /** Sends everything of the engine to `reader` from now on; undefined: to the sinks again. Only for a quiet link. */
  streamTo(reader: StreamReader | undefined): void {
    this.#stream = reader
  }

  /** The engine's reply to HELLO. Connects first if necessary; rejects when that fails. */
  greeting(): Promise<Greeting> {
    if (this.#state.kind === 'ready') return Promise.resolve(this.#state.greeting)
    return new Promise((resolve, reject) => {
      this.#awaitingGreeting.push((outcome) => (outcome instanceof HomeportError ? reject(outcome) : resolve(outcome)))
      this.#wake()
    })
  }

  /** Calls back once the link is no longer congested, or broken. */
  onceWritable(callback: () => void): void {
    this.#outgoing.onceWritable(callback)
  }

  /** Stops reading from the engine, so that a slow reader does not fill memory. */
  pauseReading(): void {
    if (this.#state.kind === 'ready') this.#held?.pauseReading()
  }

  /** Reads from the engine again. */
  resumeReading(): void {
    if (this.#state.kind === 'ready') this.#held?.resumeReading()
  }

  /** Whether the connection can be closed and made again without an effect on any client. */
  get isUnused(): boolean {
    if (this.#state.kind !== 'ready') return this.#state.kind === 'idle' || this.#state.kind === 'closed'
    const isAnswered = this.#outgoing.isHeld ? this.#isAnswered : this.isQuiet
    return isAnswered && !this.hasState && this.#stream === undefined
  }

  /** Whether a client is sending a command whose beginning the engine has. False if nothing has come for a second. */
  get isReceiving(): boolean {
    return this.lastPartAtMs !== undefined && performance.now() - this.lastPartAtMs < STALLED_MS
  }

  /** Whether the engine has answered every command, except those that wait for an event or whose rest does not come. */
  get isSettled(): boolean {
    const { kind } = this.#state
    if (kind !== 'ready') return kind !== 'greeting'
    if (this.#stream || this.awaited === 'event' || this.lastPartAtMs !== undefined) return !this.isReceiving
    return this.#isAnswered
  }

  /** Whether every command that was sent is answered. */
  get #isAnswered(): boolean {
    return this.#pending.count === this.#outgoing.unsentReplies
  }

  /**
   * Sends the commands taken so far, and nothing more on this connection until `proceed`. Later commands wait for that, or
   * for the next connection. Does nothing while a command is sent in parts.
   */
  hold(): void {
    if (this.#state.kind === 'ready' && this.lastPartAtMs === undefined) this.#outgoing.hold()
  }

  /** Sends the commands that have waited since `hold`. */
  proceed(): void {
    if (this.#outgoing.isHeld) this.#outgoing.proceed()
  }

  /** Closes an unused connection; the next or a waiting command makes a new one. */
  hangUp(): void {
    if (!this.isUnused || this.#state.kind !== 'ready') return
    this.#leave({ kind: 'idle' }, new HomeportError('engine_lost', {}), this.#outgoing.unsentReplies)
    if (this.#outgoing.unsentReplies > 0) this.#wake()
  }

  /**
   * Closes the connection for good. Pending replies fail with `error`, those to commands that were not sent, and to later
   * commands, with `unsent`.
   */
  destroy(error: HomeportError = new HomeportError('engine_lost', {}), unsent = errorOfUnsent(error)): void {
    if (this.isClosed) return
    this.#leave({ kind: 'closed', unsent }, error, this.#outgoing.unsentReplies)
    this.#failAll(unsent, false)
  }

  #wake(): void {
    const state = this.#state
    switch (state.kind) {
      case 'ready':
      case 'dialling':
      case 'greeting':
        return
      case 'idle':
        return void this.#connect()
      case 'closed':
        // Not at once: senders do not expect an answer before the call that sends returns.
        return void queueMicrotask(() => this.#failAll(state.unsent, false))
      default:
        unreachable(state)
    }
  }

  /** Never rejects. */
  async #connect(): Promise<void> {
    const abort = new AbortController()
    try {
      const connection = await connectEngine(this.#options, {
        signal: abort.signal,
        identity: () => this.identity,
        onPhase: (kind) => {
          this.#state = { kind, abort }
        },
        onData: (socket, chunk) => this.#onData(socket, chunk),
      })
      if (!abort.signal.aborted) this.#onGreeted(connection)
    } catch (error) {
      if (!abort.signal.aborted) this.#giveUp(error)
    }
  }

  #onGreeted({ socket, greeting }: EngineConnection): void {
    this.#held = new HeldReplies(socket, {
      pass: (chunk) => this.#release(socket, chunk),
      fail: (error) => this.#onEnd(socket, error),
    })
    socket.on('error', (error) => this.#onEnd(socket, error))
    // Without this, the link would write to an engine that has ended until `close` is emitted.
    socket.on('end', () => this.#onEnd(socket, undefined))
    socket.on('close', () => this.#onEnd(socket, undefined))
    this.#state = { kind: 'ready', socket, greeting }
    for (const notify of this.#awaitingGreeting.splice(0)) notify(greeting)
    this.#outgoing.connect(socket)
    this.onConnected()
  }

  #onData(socket: Socket, chunk: LentBytes): void {
    try {
      if (this.#state.kind === 'ready' && this.#state.socket === socket)
        this.#held?.take(chunk, this.#options.confirm?.())
    } catch (error) {
      this.#onFault(socket, error)
    }
  }

  #release(socket: Socket, chunk: LentBytes): void {
    try {
      this.#route(chunk)
    } catch (error) {
      this.#onFault(socket, error)
    }
  }

  /** A defect in a sink costs this connection, not the process. */
  #onFault(socket: Socket, error: unknown): void {
    if (!(error instanceof ReplyFormatError || error instanceof HomeportError))
      this.#options.logger.error('gateway_reply_fault', { error })
    this.#onEnd(socket, error instanceof Error ? error : undefined)
  }

  #route(chunk: LentBytes): void {
    this.#options.checkHome?.()
    if (this.#stream) this.#stream(chunk)
    else this.#gate.push(chunk)
  }

  #onEnd(socket: Socket, cause: Error | undefined): void {
    if (this.#state.kind !== 'ready' || this.#state.socket !== socket) return
    if (cause) this.#options.logger.warn('gateway_engine_lost', { error: cause })
    const kept = this.#stream ? 0 : this.#outgoing.unsentReplies
    const lossError = cause instanceof HomeportError ? cause : this.replyLimits.lossError?.()
    const error = lossError ?? new HomeportError('engine_lost', {}, { cause })
    this.#leave({ kind: 'idle' }, error, kept)
    this.onLost()
    if (kept > 0 && this.#outgoing.unsentReplies === kept) this.#wake()
  }

  #giveUp(cause: unknown): void {
    const known = cause instanceof HomeportError
    this.#options.logger.warn('gateway_engine_unreachable', { error: cause })
    this.#leave({ kind: 'idle' }, known ? cause : new HomeportError('engine_unavailable', {}, { cause }))
    this.onLost()
  }

  /**
   * Ends the connection in any state; nothing else does. Fails all pending replies but the last `kept`, whose commands were
   * not sent, and changes to `next`.
   */
  #leave(next: LinkState, error: HomeportError, kept = 0): void {
    const last = this.#state
    this.#state = next
    this.lastPartAtMs = undefined
    this.#held?.clear()
    this.replyLimits.held?.release()
    this.#outgoing.disconnect()
    if (last.kind === 'dialling' || last.kind === 'greeting') last.abort.abort()
    if (last.kind === 'ready') last.socket.destroy()
    const isPartial = last.kind === 'ready' && this.#gate.midReply
    this.#gate = new ReplyGate(this.#pending, this.replyLimits)
    this.#failAll(error, isPartial, kept)
  }

  #failAll(error: HomeportError, partial: boolean, kept = 0): void {
    if (kept === 0) this.#outgoing.clear()
    this.#pending.fail(error, partial, kept)
    const unsent = this.#state.kind === 'closed' ? this.#state.unsent : errorOfUnsent(error)
    for (const notify of this.#awaitingGreeting.splice(0)) notify(unsent)
    this.#outgoing.releaseAll()
  }
}
