import { createConnection, type Socket } from 'node:net'
import { unreachable } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { connectLent, type LentBytes } from '../resp/lent-memory.js'
import { ReplyFormatError } from '../resp/reply-framer.js'
import { CoalescingWriter } from './coalescing-writer.js'
import { type Greeting, GreetingReader, greetingCommand, type LinkIdentity } from './greeting.js'
import { HeldReplies } from './held-replies.js'
import type { LinkOptions } from './link-options.js'
import type { LinkState } from './link-state.js'
import { PendingReplies } from './pending-replies.js'
import { NO_REPLY_LIMITS, ReplyGate, type ReplyLimits } from './reply-gate.js'
import type { Awaited, ReplySink } from './reply-sink.js'
import { WaitingSenders } from './waiting-senders.js'

/** Receives all bytes of an engine, not divided into replies. */
export type StreamReader = (chunk: LentBytes) => void

/**
 * Pause between dials. When an engine has just ended, the link notices before the fleet does, and the old socket refuses
 * it: it looks up the engine a few times more before it gives up.
 */
const DIAL_PAUSE_MS = 25
const MOST_DIALS = 40

/** Bytes that are sent before a turn ends, so that the engine works meanwhile. With less it would wake up too often. */
const EARLY_FLUSH_BYTES = 64 * 1024
/** A client that has sent nothing of a large command for this time is not waited for. */
const STALLED_MS = 1_000
/** Unsent bytes above which senders should wait for `onceWritable`. */
const CONGESTED_BYTES = 1024 * 1024

/** A connection to an engine that many senders may share. */
export class EngineLink {
  /** Called when the connection is lost or cannot be made, after all pending replies have failed. */
  onLost: () => void = () => {}
  /** Called whenever the connection has been made. */
  onConnected: () => void = () => {}
  /** Whether closing it would lose a transaction of its client, or keys that it watches. */
  hasState = false
  /** Whether a client knows its client id in the engine. Commands to that id are meant for that client. */
  isIdKnown = false
  /** When the last part of a command was sent whose rest is to come, monotonic milliseconds; undefined between commands. */
  partAtMs: number | undefined
  /** The user and protocol. A change applies from the next connection on; the current one needs a HELLO (`introduce`). */
  identity: LinkIdentity

  readonly #options: LinkOptions
  readonly #writer = new CoalescingWriter()
  readonly #pending: PendingReplies
  #greetingReader = new GreetingReader()
  #gate: ReplyGate
  #held: HeldReplies | undefined
  #state: LinkState = { kind: 'idle' }
  #flushScheduled = false
  /** Replies to commands that are still in the writer. */
  #unsent = 0
  /** Refused dials since the last greeting. */
  #refusals = 0
  #stream: StreamReader | undefined
  #awaitingGreeting: ((outcome: Greeting | HomeportError) => void)[] = []
  readonly #waitingSenders = new WaitingSenders(() => this.isCongested)

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

  /** What the engine sends next; `anything` when it may send messages. Undefined when nothing is pending. */
  get awaited(): Awaited | 'reply' | 'anything' | undefined {
    if (this.#state.kind === 'ready' && this.#stream) return 'anything'
    if (this.#state.kind !== 'ready' || this.#pending.isEmpty) return undefined
    return this.#pending.headSink?.awaits ?? 'reply'
  }

  /** Whether no reply is pending and nothing waits to be written. */
  get isQuiet(): boolean {
    return this.#pending.isEmpty && this.#writer.pendingBytes === 0
  }

  /** Whether the engine does not keep up with what is sent. */
  get isCongested(): boolean {
    const unsent = this.#state.kind === 'ready' ? this.#state.socket.writableLength : 0
    return unsent + this.#writer.pendingBytes > CONGESTED_BYTES
  }

  /** Sends the commands at [start, end); `sink` gets their `count` replies. */
  send(sink: ReplySink, bytes: LentBytes, start: number, end: number, count: number): void {
    this.#pending.expect(sink, count)
    this.#unsent += count
    this.#writer.append(bytes, start, end)
    this.#wake()
  }

  /** Sends commands given as text; `sink` gets their `count` replies. */
  sendText(sink: ReplySink, text: string, count: number): void {
    this.#pending.expect(sink, count)
    this.#unsent += count
    this.#writer.appendText(text)
    this.#wake()
  }

  /** Sends a command; `sink` gets `reply` in place of its reply. */
  sendReplaced(sink: ReplySink, command: string, reply: Buffer): void {
    this.#pending.substitute(sink, reply)
    this.#unsent++
    this.#writer.appendText(command)
    this.#wake()
  }

  /** Sends commands whose replies go to the stream reader. */
  sendStreamed(bytes: LentBytes, start: number, end: number): void {
    this.#writer.append(bytes, start, end)
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
    this.#waitingSenders.add(callback)
  }

  /** Stops reading from the engine, so that a slow reader does not fill memory. */
  pauseReading(): void {
    if (this.#state.kind === 'ready') this.#held?.pauseReading()
  }

  /** Reads from the engine again. */
  resumeReading(): void {
    if (this.#state.kind === 'ready') this.#held?.resumeReading()
  }

  /** Whether the connection can be closed and made again without anybody noticing. */
  get isUnused(): boolean {
    if (this.#state.kind !== 'ready') return this.#state.kind === 'idle' || this.#state.kind === 'closed'
    const isAnswered = this.#state.isHeld ? this.#pending.count === this.#unsent : this.isQuiet
    return isAnswered && !this.hasState && this.#stream === undefined
  }

  /** Whether a client is sending a command whose beginning the engine has. Not when it has sent nothing for a second. */
  get isReceiving(): boolean {
    return this.partAtMs !== undefined && performance.now() - this.partAtMs < STALLED_MS
  }

  /** Whether the engine has answered all that it was sent, but for what waits for an event, and what is sent in part. */
  get isSettled(): boolean {
    const { kind } = this.#state
    if (kind !== 'ready') return kind !== 'greeting'
    if (this.#stream || this.awaited === 'event' || this.partAtMs !== undefined) return !this.isReceiving
    return this.#pending.count === this.#unsent
  }

  /**
   * Sends what has been taken, and nothing more on this connection until `proceed`: later commands wait for it, or for the
   * next connection. A command whose beginning was sent goes on.
   */
  hold(): void {
    if (this.#state.kind !== 'ready' || this.partAtMs !== undefined) return
    this.#flush()
    this.#state = { ...this.#state, isHeld: true }
  }

  /** Sends what waits since `hold`. */
  proceed(): void {
    if (this.#state.kind !== 'ready' || !this.#state.isHeld) return
    this.#state = { ...this.#state, isHeld: undefined }
    this.#scheduleFlush()
  }

  /** Closes an unused connection; the next command, or one that waits, makes a new one. */
  hangUp(): void {
    if (!this.isUnused || this.#state.kind !== 'ready') return
    this.#leave({ kind: 'idle' }, new HomeportError('engine_lost', {}), this.#unsent)
    if (this.#unsent > 0) this.#wake()
  }

  /** Closes the connection for good; pending replies fail, with `unsent` those to commands that were not sent. */
  destroy(error: HomeportError = new HomeportError('engine_lost', {}), unsent = error): void {
    this.#leave({ kind: 'closed' }, error, this.#unsent)
    this.#failAll(unsent, false)
  }

  #wake(): void {
    switch (this.#state.kind) {
      case 'ready':
        return void this.#scheduleFlush()
      case 'idle':
        return void this.#dial()
      case 'closed':
        // Not at once: senders do not expect an answer before the call that sends returns.
        return void queueMicrotask(() => this.#failAll(new HomeportError('engine_lost', {}), false))
      case 'dialling':
      case 'greeting':
        return
      default:
        unreachable(this.#state)
    }
  }

  #scheduleFlush(): void {
    if (this.#writer.pendingBytes >= EARLY_FLUSH_BYTES) {
      this.#flush()
      return
    }
    if (this.#flushScheduled) return
    this.#flushScheduled = true
    setImmediate(this.#onTurnEnd)
  }

  readonly #onTurnEnd = (): void => {
    this.#flushScheduled = false
    this.#flush()
  }

  #flush(): void {
    if (this.#state.kind !== 'ready' || this.#state.isHeld) return
    this.#unsent = 0
    this.#writer.flush(this.#state.socket)
  }

  /** Never rejects. */
  async #dial(): Promise<void> {
    const abort = new AbortController()
    this.#state = { kind: 'dialling', abort }
    try {
      const path = await this.#options.locate(abort.signal)
      if (!abort.signal.aborted) this.#connect(path)
    } catch (error) {
      if (!abort.signal.aborted) this.#giveUp(error)
    }
  }

  #connect(path: string): void {
    const socket = this.#open(path)
    this.#state = { kind: 'greeting', socket }
    this.#greetingReader = new GreetingReader()
    this.#held = new HeldReplies(socket, {
      pass: (chunk) => this.#release(socket, chunk),
      fail: (error) => this.#onEnd(socket, error),
    })
    socket.write(greetingCommand(this.identity))
    socket.on('drain', () => this.#waitingSenders.release())
    socket.on('error', (error) => this.#onEnd(socket, error))
    // Until `close` the link would still write to an engine that is gone.
    socket.on('end', () => this.#onEnd(socket, undefined))
    socket.on('close', () => this.#onEnd(socket, undefined))
  }

  #open(path: string): Socket {
    if (this.#options.replies === 'lent') return connectLent(path, (socket, chunk) => this.#onData(socket, chunk))
    const socket = createConnection({ path })
    return socket.on('data', (chunk: Buffer) => this.#onData(socket, chunk))
  }

  #onData(socket: Socket, chunk: LentBytes): void {
    try {
      if (this.#state.kind === 'ready' && this.#state.socket === socket)
        this.#held?.take(chunk, this.#options.confirm?.())
      else if (this.#state.kind === 'greeting' && this.#state.socket === socket) this.#readGreeting(socket, chunk)
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

  /** The engine answers HELLO with one reply and sends nothing before the next command. */
  #readGreeting(socket: Socket, chunk: LentBytes): void {
    const greeting = this.#greetingReader.push(chunk)
    if (greeting === 'incomplete') return
    if (!greeting) {
      this.#onEnd(socket, new ReplyFormatError('it did not accept our greeting'))
      return
    }
    this.#state = { kind: 'ready', socket, greeting }
    this.#refusals = 0
    for (const notify of this.#awaitingGreeting.splice(0)) notify(greeting)
    this.#scheduleFlush()
    this.onConnected()
  }

  #route(chunk: LentBytes): void {
    this.#options.checkHome?.()
    if (this.#stream) this.#stream(chunk)
    else this.#gate.push(chunk)
  }

  #onEnd(socket: Socket, cause: Error | undefined): void {
    const { kind } = this.#state
    if ((kind !== 'greeting' && kind !== 'ready') || this.#state.socket !== socket) return
    if (kind === 'greeting') {
      this.#dialAgainOrGiveUp(cause)
      return
    }
    if (cause) this.#options.logger.warn('gateway_engine_lost', { error: cause })
    const kept = this.#stream ? 0 : this.#unsent
    const lossError = cause instanceof HomeportError ? cause : this.replyLimits.lossError?.()
    const error = lossError ?? new HomeportError('engine_lost', {}, { cause })
    this.#leave({ kind: 'idle' }, error, kept)
    this.onLost()
    if (kept > 0 && this.#unsent === kept) this.#wake()
  }

  /** Only the greeting was sent, so another dial repeats no command. */
  #dialAgainOrGiveUp(cause: Error | undefined): void {
    if (cause instanceof ReplyFormatError || ++this.#refusals >= (this.#options.mostDials ?? MOST_DIALS)) {
      this.#refusals = 0
      this.#giveUp(cause ?? new Error('the engine closed the connection'))
      return
    }
    const abort = new AbortController()
    this.#state = { kind: 'dialling', abort }
    this.#options.clock.after(DIAL_PAUSE_MS, () => {
      if (!abort.signal.aborted) void this.#dial()
    })
  }

  #giveUp(cause: unknown): void {
    const known = cause instanceof HomeportError
    this.#options.logger.warn('gateway_engine_unreachable', { error: cause })
    this.#leave({ kind: 'idle' }, known ? cause : new HomeportError('engine_unavailable', {}, { cause }))
    this.onLost()
  }

  /**
   * The only way out of a connection, in any state. Fails all pending replies but the last `kept`, whose commands were not
   * sent, and changes to `next`.
   */
  #leave(next: LinkState, error: HomeportError, kept = 0): void {
    const last = this.#state
    this.#state = next
    this.partAtMs = undefined
    this.#held?.clear()
    this.replyLimits.held?.release()
    if (last.kind === 'dialling') last.abort.abort()
    if (last.kind === 'greeting' || last.kind === 'ready') last.socket.destroy()
    const isPartial = last.kind === 'ready' && this.#gate.midReply
    this.#gate = new ReplyGate(this.#pending, this.replyLimits)
    this.#failAll(error, isPartial, kept)
  }

  #failAll(error: HomeportError, partial: boolean, kept = 0): void {
    if (kept === 0) {
      this.#writer.clear()
      this.#unsent = 0
    }
    this.#pending.fail(error, partial, kept)
    for (const notify of this.#awaitingGreeting.splice(0)) notify(error)
    this.#waitingSenders.releaseAll()
  }
}
