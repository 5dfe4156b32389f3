import { HomeportError } from '../../contract/errors/errors.js'
import type { PauseHold } from '../client/pause-hold.js'
import { CollectedReplies, WatchedReply } from '../engine/reply-sink.js'
import { encodeError } from '../resp/encode.js'
import type { CommandContext } from './command-context.js'
import { QueuedAnswers } from './queued-answers.js'

/** The error for commands that cannot be queued. */
export const NOT_IN_TRANSACTION = encodeError('ERR Command not allowed inside a transaction')

/** The transactions of one client: their lane, and the commands in them that the gateway answers. */
export class Transactions {
  readonly #context: CommandContext
  readonly #hold: PauseHold
  /** The gateway's answers in the transaction that was opened last. */
  #queue: QueuedAnswers | undefined
  /** Whether the transaction that was opened last may contain a script. */
  #hasScript = false

  constructor(context: CommandContext, hold: PauseHold) {
    this.#context = context
    this.#hold = hold
  }

  /** Whether a transaction is open, in which the engine queues commands. */
  get isOpen(): boolean {
    return this.#context.lane.isInTransaction
  }

  /** The commands of the open transaction that the gateway answers; undefined when none is open. */
  get queue(): QueuedAnswers | undefined {
    return this.isOpen ? this.#queue : undefined
  }

  /** Routes the present command, which is MULTI, EXEC, DISCARD, WATCH or UNWATCH. */
  route(name: string): void {
    const { lane, frame } = this.#context
    const opens = (name === 'MULTI' && frame.argumentCount === 1) || (name === 'WATCH' && frame.argumentCount > 1)
    if (this.#context.isPlainSubscriber || (lane.isShared && !opens)) {
      lane.forward(frame.frameBuffer, frame.frameStart, frame.frameEnd, 1)
      return
    }
    if (lane.isShared && !this.#context.flow.quietOrRetry()) return
    if (this.isOpen) this.#routeInside(name)
    else this.#routeOutside(name, opens)
  }

  /** Call it before a script is sent; in an open transaction it is queued. */
  noteScript(): void {
    this.#hasScript = true
  }

  /** Call it when the lane was just pinned and no reply is pending. A transaction may be open on the lane. */
  followPinned(): void {
    const { state } = this.#context.lane
    const { queue } = this
    if (queue && state.kind === 'pinned') state.stream.resumeTransaction((reply) => this.#fillPinned(queue, reply))
  }

  #routeInside(name: string): void {
    const { queue } = this
    const { lane, frame } = this.#context
    if (name === 'MULTI' || name === 'WATCH') queue?.leaveOutNext()
    const ends = frame.argumentCount === 1 && (name === 'EXEC' || name === 'DISCARD')
    if (ends) {
      lane.setTransaction('none')
      this.#queue = undefined
    }
    if (name === 'EXEC') this.#execute(ends ? queue : undefined)
    else this.#send()
  }

  #routeOutside(name: string, opens: boolean): void {
    const { lane, frame } = this.#context
    if (opens && lane.isShared) lane.enterDedicated('watching')
    if (opens) lane.setTransaction(name === 'MULTI' ? 'open' : 'watching')
    else if (name === 'UNWATCH' && frame.argumentCount === 1 && this.#isWatching) lane.setTransaction('none')
    if (opens && name === 'MULTI') this.#open()
    this.#send()
  }

  /** Call it before MULTI is sent. */
  #open(): void {
    const { lane } = this.#context
    const queue = new QueuedAnswers(lane)
    this.#queue = queue
    this.#hasScript = false
    this.#hold.openTransaction()
    if (lane.state.kind === 'pinned') lane.state.stream.openTransaction((reply) => this.#fillPinned(queue, reply))
  }

  get #isWatching(): boolean {
    return this.#context.lane.dedicated?.transaction === 'watching'
  }

  #send(): void {
    const { frameBuffer, frameStart, frameEnd } = this.#context.frame
    this.#context.lane.send(frameBuffer, frameStart, frameEnd, 1)
  }

  #execute(queue: QueuedAnswers | undefined): void {
    const { lane, frame, deps } = this.#context
    if (lane.state.kind === 'pinned') {
      this.#send()
      lane.settle(deps.guard.scripts.begin())
      if (queue && !queue.isEmpty) this.#context.flow.waitFor(lane.state.stream.executed())
      return
    }
    const settled = deps.guard.scripts.begin()
    const { frameBuffer, frameStart, frameEnd } = frame
    if (!queue || queue.isEmpty) lane.sendWatched(frameBuffer, frameStart, frameEnd, this.#awaited, settled)
    else this.#context.flow.waitFor(this.#fillReply(queue, settled))
  }

  /** Sends EXEC, and merges the gateway's answers into its reply. */
  async #fillReply(queue: QueuedAnswers, settled: () => void): Promise<void> {
    const { lane } = this.#context
    try {
      const filled = await queue.fill(await this.#replyToExec(settled), this.#context.deps.guard.maxRequestBytes)
      lane.deliver(filled, 0, filled.length, 1)
      if (queue.endsConnection) this.#context.hangUp()
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
      const filled = queue.isEmpty ? reply : await queue.fill(reply, this.#context.deps.guard.maxRequestBytes)
      // Closes in a later turn, after the client has got the reply.
      if (queue.endsConnection) setImmediate(() => this.#context.hangUp())
      return filled
    } catch (error) {
      this.#context.fault(error)
      return reply
    }
  }

  #replyToExec(settled: () => void): Promise<Buffer> {
    const { lane, frame } = this.#context
    return new Promise((resolve, reject: (error: HomeportError) => void) => {
      const sink = new WatchedReply(new CollectedReplies(1, resolve, reject), this.#awaited, settled)
      lane.sendFor(sink, frame.frameBuffer, frame.frameStart, frame.frameEnd)
    })
  }
}
