import type { KnownCommand, ServedCommand } from '../commands/command-table.js'
import type { CommandWords } from '../limits/command-pause.js'
import { frameArguments } from '../resp/frame-arguments.js'
import type { Session } from './session.js'

/** So many first arguments tell what a paused database makes of a command. */
const WORDS_READ = 2

/** Holds the commands of one client while its database is paused. */
export class Hold {
  readonly #session: Session
  /** Whether something in the transaction that was opened last may write. */
  #transactionWrites = false
  #cancel: (() => void) | undefined

  constructor(session: Session) {
    this.#session = session
  }

  /**
   * Whether the present command may go on now. If not, it is taken again when the pause has ended. `wholeArguments`: so
   * many have come of a command that is passed on as it comes.
   */
  passes(command: KnownCommand | undefined, wholeArguments = WORDS_READ): boolean {
    const { pause } = this.#session.services.guard
    if (pause.mode === undefined || !command?.allowed || !this.#session.user) return true
    const held = this.#isExecOfWrites(command) || pause.holds(command, () => this.#words(wholeArguments))
    if (held === false) return true
    if (!this.#session.sendRun()) return false
    this.#session.parser.repeat()
    if (held === true) this.#wait()
    else this.#session.waitFor(held)
    return false
  }

  /** MULTI is sent next. */
  openTransaction(): void {
    this.#transactionWrites = false
  }

  /** Commands are sent that may write; in an open transaction they are queued. */
  noteWrites(): void {
    this.#transactionWrites = true
  }

  /** The present command is sent; in an open transaction it is queued. */
  note(command: ServedCommand): void {
    const { pause } = this.#session.services.guard
    if (command.mayWrite && pause.writesLater(command, this.#words(WORDS_READ))) this.#transactionWrites = true
  }

  /** The connection has ended. */
  close(): void {
    if (!this.#cancel) return
    this.#cancel()
    this.#release()
  }

  #isExecOfWrites({ name }: ServedCommand): boolean {
    const { state } = this.#session.lane
    const isOpen = (state.kind === 'own' || state.kind === 'pinned') && state.transaction === 'open'
    return name === 'EXEC' && isOpen && this.#transactionWrites
  }

  #wait(): void {
    const session = this.#session
    session.flow.wait('pause')
    session.blocked++
    this.#cancel = session.services.guard.pause.hold(() => {
      this.#release()
      session.flow.proceed('pause')
    })
  }

  #release(): void {
    this.#cancel = undefined
    this.#session.blocked--
  }

  #words(most: number): CommandWords {
    const { frameBuffer, frameStart, argumentCount: count } = this.#session.parser
    return { args: frameArguments(frameBuffer, frameStart, Math.min(count, most, WORDS_READ)), count }
  }
}
