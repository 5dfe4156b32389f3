import { unreachable } from '../../base/index.js'
import type { HomeportError } from '../../contract/errors/errors.js'
import { findCommand, type KnownCommand, type ServedCommand } from '../commands/command-table.js'
import { noteUpload } from '../commands/note-command.js'
import type { ReplySink } from '../engine/reply-sink.js'
import { errorText } from '../error-text.js'
import type { Verdict } from '../limits/database-guard.js'
import { isUploadable } from '../limits/upload.js'
import { encodeError } from '../resp/encode.js'
import type { Transaction } from './lane-state.js'
import type { Session } from './session.js'

/**
 * What becomes of the pieces of a command that is not gathered.
 *
 * ```
 *   none ──passes the limits──▶ sending ──engine lost, or it answers too early──▶ answered
 *     ├────breaks one────▶ refused │                                                 │
 *     ◀── the command has ended ───┴─────────────────────────────────────────────────┘
 * ```
 *
 * - none: there is no such command.
 * - sending: they go to the engine, on a connection that carries nothing else.
 * - refused: they are dropped, and the client is told why at the end.
 * - answered: they are dropped; the client has its reply.
 */
type UploadState =
  | { readonly kind: 'none' }
  | { readonly kind: 'sending'; readonly command: ServedCommand }
  | { readonly kind: 'refused'; readonly error: HomeportError }
  | { readonly kind: 'answered' }

/**
 * Passes a command with a large argument on while it comes, so that no more of it is held than of any other: SET, APPEND,
 * LPUSH and whatever else writes to the one key before its values, the arguments of a script behind its keys, the last
 * value of MSET, a message. It has a lane of its own meanwhile: a shared one would be blocked for everybody by a client
 * that sends slowly, and poisoned by one that goes away. Where a client counts on the state of its lane, only a last
 * argument is passed on: a later one could be too long, and the lane would have to be thrown away.
 */
export class Upload implements ReplySink {
  readonly #session: Session
  #state: UploadState = { kind: 'none' }
  /** What the engine had to be asked before. */
  #ruling: { readonly verdict: Verdict } | undefined
  /** Tells that the script that was sent last has been answered. */
  #scriptEnded = (): void => {}
  /** What the client gets in place of the engine's reply. */
  #substitute: Buffer | undefined

  constructor(session: Session) {
    this.#session = session
  }

  /** Whether the engine is owed the rest of a command. */
  get isSending(): boolean {
    return this.#state.kind === 'sending'
  }

  /** Takes the parser's answer `large`. The command is gathered as usual if nothing comes of it. */
  consider(): void {
    const session = this.#session
    const { parser, permits } = session
    const command = findCommand(parser.frameBuffer, parser.nameStart, parser.nameEnd)
    if (!this.#mayBegin(command) || !permits.takeToken()) return
    if (!session.hold.passes(command, parser.largeIndex)) return
    if (!session.sendRun() || !session.quietOrLater()) return
    const verdict = this.#ruling ? this.#ruling.verdict : permits.inspectUpload(command)
    this.#ruling = undefined
    if (verdict instanceof Promise) this.#waitFor(verdict)
    else if (verdict) this.#state = { kind: 'refused', error: verdict }
    else this.#begin(command)
    if (!parser.repeats) parser.stream()
  }

  /** Takes the parser's answer `part`. */
  pass(): void {
    const { frameBuffer, frameStart, frameEnd } = this.#session.parser
    if (this.#state.kind === 'sending') this.#session.lane.forwardPart(frameBuffer, frameStart, frameEnd)
  }

  /** Takes the parser's answer `last`. */
  end(): void {
    const state = this.#state
    this.pass()
    if (state.kind === 'sending') this.#sent(state.command)
    if (state.kind === 'refused') this.#session.refuse(state.error)
    this.#state = { kind: 'none' }
  }

  #sent(command: ServedCommand): void {
    const { guard } = this.#session.services
    guard.count(command, 1)
    if (command.effect !== 'script') return
    if (this.#session.lane.isPinned) this.#session.lane.settle(guard.scripts.begin())
    else this.#scriptEnded = guard.scripts.begin()
  }

  /** The command cannot be brought to its end; `reply` says why. Answers false when there is none. */
  breakOff(reply: Buffer): boolean {
    const state = this.#state
    this.#state = { kind: 'none' }
    switch (state.kind) {
      case 'none':
        return false
      case 'sending':
        this.#substitute = reply
        this.#session.lane.dropOwn()
        return true
      case 'refused':
        this.#session.refuse(state.error)
        return true
      case 'answered':
        return true
      default:
        return unreachable(state)
    }
  }

  deliver(chunk: Buffer, start: number, end: number, completed: number): void {
    this.#settle()
    this.#session.lane.deliver(chunk, start, end, completed)
  }

  fail(count: number, error: HomeportError, partial: boolean): void {
    const { lane } = this.#session
    const substitute = this.#substitute ?? encodeError(errorText(error))
    this.#substitute = undefined
    this.#settle()
    if (partial) lane.fail(count, error, true)
    else lane.deliver(substitute, 0, substitute.length, 1)
  }

  #mayBegin(command: KnownCommand | undefined): command is ServedCommand {
    const { lane, parser, permits, isPlainSubscriber } = this.#session
    const { state } = lane
    if (!command?.allowed || command.state !== 'stateless' || state.kind === 'none' || isPlainSubscriber) return false
    const isLast = parser.largeIndex === parser.argumentCount - 1
    const isFree = state.kind === 'shared' || (state.kind === 'own' && isReplaceable(state.transaction))
    return (isFree || isLast) && isUploadable(command, permits.argumentsBefore(command), isLast)
  }

  #waitFor(verdict: Promise<Verdict>): void {
    this.#session.parser.repeat()
    this.#session.waitFor(
      verdict.then((ruled) => {
        this.#ruling = { verdict: ruled }
      }),
    )
  }

  #begin(command: ServedCommand): void {
    const { lane, parser, permits } = this.#session
    if (lane.state.kind === 'shared') lane.enterOwn('none')
    this.#state = { kind: 'sending', command }
    if (command.mayWrite) this.#session.hold.noteWrites()
    noteUpload(this.#session, command, permits.argumentsBefore(command))
    if (lane.isPinned) lane.forwardHere(parser.frameBuffer, parser.frameStart, parser.frameEnd, 1)
    else lane.forwardFor(this, parser.frameBuffer, parser.frameStart, parser.frameEnd)
  }

  /** The reply has come, or never will. Of a command that has not ended, the rest has no use. */
  #settle(): void {
    this.#scriptEnded()
    this.#scriptEnded = () => {}
    if (this.#state.kind === 'sending') this.#state = { kind: 'answered' }
  }
}

/** Whether nothing is lost with an own lane in this state. */
function isReplaceable(transaction: Transaction): boolean {
  return transaction === 'none' || transaction === 'kept'
}
