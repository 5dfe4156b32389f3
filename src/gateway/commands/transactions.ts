import { HomeportError } from '../../contract/errors/errors.js'
import type { Session } from '../client/session.js'
import { CollectedReplies } from '../engine/collect-reply.js'
import { WatchedReply } from '../engine/watched-reply.js'
import { encodeError } from '../resp/encode.js'
import { QueuedAnswers } from './queued-answers.js'

/** What commands are answered that cannot be queued. */
export const NOT_IN_TRANSACTION = encodeError('ERR Command not allowed inside a transaction')

/** The transactions of one client: which lane they take, and what the gateway has to answer of them. */
export class Transactions {
  readonly #session: Session
  /** What the gateway answers of the transaction that was opened last. */
  #queue: QueuedAnswers | undefined
  /** Whether there may be a script in the transaction that was opened last. */
  #hasScript = false

  constructor(session: Session) {
    this.#session = session
  }

  /** Whether a transaction is open, in which commands are queued. */
  get isOpen(): boolean {
    const { state } = this.#session.lane
    return (state.kind === 'own' || state.kind === 'pinned') && state.transaction === 'open'
  }

  /** Where commands of the open transaction wait for EXEC that no engine answers; undefined when none is open. */
  get queue(): QueuedAnswers | undefined {
    return this.isOpen ? this.#queue : undefined
  }

  /** Takes the parser's present frame, which is MULTI, EXEC, DISCARD, WATCH or UNWATCH. */
  route(name: string): void {
    const { lane, parser } = this.#session
    const opens = (name === 'MULTI' && parser.argumentCount === 1) || (name === 'WATCH' && parser.argumentCount > 1)
    if (this.#session.isPlainSubscriber || (lane.state.kind === 'shared' && !opens)) {
      lane.forward(parser.frameBuffer, parser.frameStart, parser.frameEnd, 1)
      return
    }
    if (lane.state.kind === 'shared' && !this.#session.quietOrLater()) return
    if (this.isOpen) this.#routeInside(name)
    else this.#routeOutside(name, opens)
  }

  /** A script is sent next; in an open transaction it is queued. */
  noteScript(): void {
    this.#hasScript = true
  }

  /** The lane has just been pinned, and a transaction may be open on it. Nothing is owed. */
  followPinned(): void {
    const { state } = this.#session.lane
    const { queue } = this
    if (queue && state.kind === 'pinned') state.stream.resumeTransaction((reply) => this.#fillPinned(queue, reply))
  }

  #routeInside(name: string): void {
    const { queue } = this
    const { lane, parser } = this.#session
    if (name === 'MULTI' || name === 'WATCH') queue?.leaveOutNext()
    const ends = parser.argumentCount === 1 && (name === 'EXEC' || name === 'DISCARD')
    if (ends) lane.setTransaction('none')
    if (name === 'EXEC') this.#execute(ends ? queue : undefined)
    else this.#forward()
  }

  #routeOutside(name: string, opens: boolean): void {
    const { lane, parser } = this.#session
    if (opens && lane.isShared) lane.enterOwn('watching')
    if (opens) lane.setTransaction(name === 'MULTI' ? 'open' : 'watching')
    else if (name === 'UNWATCH' && parser.argumentCount === 1 && this.#isWatching) lane.setTransaction('none')
    if (opens && name === 'MULTI') this.#open()
    this.#forward()
  }

  /** MULTI is sent next. */
  #open(): void {
    const { lane } = this.#session
    const queue = new QueuedAnswers(lane)
    this.#queue = queue
    this.#hasScript = false
    this.#session.hold.openTransaction()
    if (lane.state.kind === 'pinned') lane.state.stream.openTransaction((reply) => this.#fillPinned(queue, reply))
  }

  get #isWatching(): boolean {
    const { state } = this.#session.lane
    return (state.kind === 'own' || state.kind === 'pinned') && state.transaction === 'watching'
  }

  #forward(): void {
    const { frameBuffer, frameStart, frameEnd } = this.#session.parser
    this.#session.lane.forwardHere(frameBuffer, frameStart, frameEnd, 1)
  }

  #execute(queue: QueuedAnswers | undefined): void {
    const { lane, parser, services } = this.#session
    if (lane.state.kind === 'pinned') {
      this.#forward()
      lane.settle(services.guard.scripts.begin())
      if (queue && !queue.isEmpty) this.#session.waitFor(lane.state.stream.executed())
      return
    }
    const settled = services.guard.scripts.begin()
    const { frameBuffer, frameStart, frameEnd } = parser
    if (!queue || queue.isEmpty) lane.forwardWatched(frameBuffer, frameStart, frameEnd, this.#awaited, settled)
    else this.#session.waitFor(this.#fillReply(queue, settled))
  }

  /** Sends EXEC; its reply gets our answers before the client gets it. */
  async #fillReply(queue: QueuedAnswers, settled: () => void): Promise<void> {
    const { lane } = this.#session
    try {
      const filled = await queue.fill(await this.#replyToExec(settled))
      lane.deliver(filled, 0, filled.length, 1)
      if (queue.endsConnection) this.#session.hangUp()
    } catch (error) {
      if (!(error instanceof HomeportError)) throw error
      lane.fail(1, error, false)
    }
  }

  get #awaited(): 'script' | undefined {
    return this.#hasScript ? 'script' : undefined
  }

  async #fillPinned(queue: QueuedAnswers, reply: Buffer): Promise<Buffer> {
    try {
      const filled = queue.isEmpty ? reply : await queue.fill(reply)
      // Not before the client has the reply.
      if (queue.endsConnection) setImmediate(() => this.#session.hangUp())
      return filled
    } catch (error) {
      this.#session.fault(error)
      return reply
    }
  }

  #replyToExec(settled: () => void): Promise<Buffer> {
    const { lane, parser } = this.#session
    return new Promise((resolve, reject: (error: HomeportError) => void) => {
      const sink = new WatchedReply(new CollectedReplies(1, resolve, reject), this.#awaited, settled)
      lane.forwardFor(sink, parser.frameBuffer, parser.frameStart, parser.frameEnd)
    })
  }
}
