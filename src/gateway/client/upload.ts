import { unreachable } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import type { CommandContext } from '../commands/command-context.js'
import { findCommand, type KnownCommand, type ServedCommand } from '../commands/command-table.js'
import type { Permits } from '../commands/permits.js'
import type { ReplySink } from '../engine/reply-sink.js'
import { errorOfUnsent } from '../engine/unsent.js'
import type { Verdict } from '../limits/database-guard.js'
import { isUploadable } from '../limits/inspect.js'
import type { CommandParser } from '../resp/command-parser.js'
import type { Transaction } from './lane-state.js'
import type { PauseHold } from './pause-hold.js'

/**
 * What happens to the pieces of a large command.
 *
 * ```
 *   none ──within the limits──▶ sending ──engine lost, or it answers too early──▶ answered
 *     ├─────exceeds one───▶ refused │                                                │
 *     ◀── the command has ended ────┴────────────────────────────────────────────────┘
 * ```
 *
 * - none: there is no large command.
 * - sending: the pieces are sent to the engine, on a connection that carries nothing else.
 * - refused: the pieces are dropped, and the client gets the error at the end of the command.
 * - answered: the pieces are dropped; the client has its reply.
 */
type UploadState =
  | { readonly kind: 'none' }
  | { readonly kind: 'sending'; readonly command: ServedCommand }
  | { readonly kind: 'refused'; readonly error: HomeportError }
  | { readonly kind: 'answered' }

/**
 * Passes a command with a large argument on while it arrives, so that it takes no more memory than other commands: SET,
 * APPEND, LPUSH and other commands whose one key precedes their values, the arguments of a script after its keys, the last
 * value of MSET, a message of PUBLISH. The command gets a dedicated lane: on a shared lane, a client that sends slowly would
 * block all others, and one that disconnects would leave half a command. If the client relies on the state of its lane, only
 * a last argument is passed on: a later argument could be too long, and the lane would have to be discarded.
 */
export class Upload implements ReplySink {
  readonly #context: CommandContext
  readonly #parser: CommandParser
  readonly #permits: Permits
  readonly #hold: PauseHold
  #state: UploadState = { kind: 'none' }
  /** Number of large commands that the engine has not answered, including the present one. Not counted on a pinned lane. */
  #pendingReplies = 0
  /** The verdict on the present command, if the engine had to be asked for it. */
  #ruling: { readonly verdict: Verdict } | undefined
  /** Call it when the last script was answered. */
  #scriptEnded = (): void => {}
  /** Reply that the client gets in place of the engine's. */
  #substitute: Buffer | undefined

  constructor(context: CommandContext, parser: CommandParser, permits: Permits, hold: PauseHold) {
    this.#context = context
    this.#parser = parser
    this.#permits = permits
    this.#hold = hold
  }

  /** Whether the engine waits for the rest of a command. */
  get isSending(): boolean {
    return this.#state.kind === 'sending'
  }

  /** Handles the parser's outcome `large`. A command that cannot be passed on in pieces is gathered as usual. */
  consider(): void {
    const context = this.#context
    const parser = this.#parser
    const command = findCommand(parser.frameBuffer, parser.nameStart, parser.nameEnd)
    if (!this.#mayBegin(command) || !this.#permits.takeToken()) return
    if (!this.#hold.passes(command, parser.largeIndex)) return
    if (!context.flow.flush()) return
    if (!this.#mayFollow(command) && !context.flow.quietOrRetry()) return
    const verdict = this.#ruling ? this.#ruling.verdict : this.#permits.inspectUpload(command)
    this.#ruling = undefined
    if (verdict instanceof Promise) this.#waitFor(verdict)
    else if (verdict) this.#state = { kind: 'refused', error: verdict }
    else this.#begin(command)
    if (!context.flow.willRetry) parser.stream()
  }

  /** Handles the parser's outcome `part`. */
  pass(): void {
    const { frameBuffer, frameStart, frameEnd } = this.#parser
    if (this.#state.kind !== 'sending') return
    this.#context.lane.sendPart(frameBuffer, frameStart, frameEnd)
    this.#notePart(performance.now())
  }

  /** Handles the parser's outcome `last`. */
  end(): void {
    const state = this.#state
    this.pass()
    if (state.kind === 'sending') this.#sent(state.command)
    if (state.kind === 'refused') this.#context.refuse(state.error)
    this.#state = { kind: 'none' }
  }

  #notePart(partAtMs: number | undefined): void {
    const { dedicated } = this.#context.lane
    if (dedicated) dedicated.link.lastPartAtMs = partAtMs
  }

  #sent(command: ServedCommand): void {
    this.#notePart(undefined)
    const { guard } = this.#context.deps
    guard.count(command, 1)
    if (command.effect !== 'script') return
    if (this.#context.lane.isPinned) this.#context.lane.settle(guard.scripts.begin())
    else this.#scriptEnded = guard.scripts.begin()
  }

  /** Ends a command that cannot be completed. The client gets `reply`. @returns false when no large command is active. */
  abort(reply: Buffer): boolean {
    const state = this.#state
    this.#state = { kind: 'none' }
    switch (state.kind) {
      case 'none':
        return false
      case 'sending':
        this.#substitute = reply
        this.#context.lane.dropDedicated()
        return true
      case 'refused':
        this.#context.refuse(state.error)
        return true
      case 'answered':
        return true
      default:
        return unreachable(state)
    }
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#settle(completed)
    this.#context.lane.deliver(chunk, start, end, completed)
  }

  fail(count: number, error: HomeportError, partial: boolean): void {
    const { lane } = this.#context
    const substitute = partial && count === 1 ? undefined : this.#substitute
    const isIncomplete = this.#state.kind === 'sending' && count === this.#pendingReplies
    this.#substitute = undefined
    this.#settle(count)
    const whole = substitute || isIncomplete ? count - 1 : count
    if (whole > 0) lane.fail(whole, error, partial)
    // The command that was broken off is the last of the failed ones.
    if (substitute) lane.deliver(substitute, 0, substitute.length, 1)
    else if (isIncomplete) lane.fail(1, errorOfUnsent(error), partial && whole === 0)
  }

  /**
   * Whether the command may follow others that the engine has not answered. The client must have a dedicated lane, no limit
   * may need a question to the engine, and the rest of the command must not be able to fail, which would cost the lane.
   */
  #mayFollow(command: ServedCommand): boolean {
    const { state } = this.#context.lane
    const isLast = this.#parser.largeIndex === this.#parser.argumentCount - 1
    return state.kind === 'dedicated' && isReplaceable(state.transaction) && isLast && command.effect === 'none'
  }

  #mayBegin(command: KnownCommand | undefined): command is ServedCommand {
    const { lane, isPlainSubscriber } = this.#context
    const parser = this.#parser
    const { state } = lane
    if (!command?.allowed || command.state !== 'stateless' || state.kind === 'none' || isPlainSubscriber) return false
    const isLast = parser.largeIndex === parser.argumentCount - 1
    const isFree = state.kind === 'shared' || (state.kind === 'dedicated' && isReplaceable(state.transaction))
    return (isFree || isLast) && isUploadable(command, this.#permits.argumentsBefore(command), isLast)
  }

  #waitFor(verdict: Promise<Verdict>): void {
    this.#context.flow.retryWhen(
      verdict.then((ruled) => {
        this.#ruling = { verdict: ruled }
      }),
    )
  }

  #begin(command: ServedCommand): void {
    const { lane } = this.#context
    const { frameBuffer, frameStart, frameEnd } = this.#parser
    if (lane.isShared) lane.enterDedicated('none')
    this.#state = { kind: 'sending', command }
    if (command.mayWrite) this.#hold.noteWrites()
    this.#monitor(command)
    if (lane.isPinned) lane.send(frameBuffer, frameStart, frameEnd, 1)
    else {
      this.#pendingReplies++
      lane.sendFor(this, frameBuffer, frameStart, frameEnd)
    }
    this.#notePart(performance.now())
  }

  /** Shows the command to clients that MONITOR the database, without its large argument. */
  #monitor(command: ServedCommand): void {
    const { deps, profile } = this.#context
    const { monitors } = deps.guard
    if (!monitors.isWatched) return
    const words = this.#permits.argumentsBefore(command)
    monitors.note({ row: command, words, address: profile.address, isWhole: false })
  }

  /** Records that replies have arrived, or never will. If a command is answered before its end, its rest is dropped. */
  #settle(count: number): void {
    this.#scriptEnded()
    this.#scriptEnded = () => {}
    this.#pendingReplies -= count
    if (this.#pendingReplies === 0 && this.#state.kind === 'sending') this.#state = { kind: 'answered' }
  }
}

/** Whether a dedicated lane in this state can be discarded without losing state of the client. */
function isReplaceable(transaction: Transaction): boolean {
  return transaction === 'none' || transaction === 'kept'
}
