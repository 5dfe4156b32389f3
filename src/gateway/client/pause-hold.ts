import type { CommandContext } from '../commands/command-context.js'
import type { KnownCommand, ServedCommand } from '../commands/command-table.js'
import type { CommandWords } from '../limits/command-pause.js'
import { frameArguments } from '../resp/arguments.js'

/** Arguments, from the name on, that decide whether a pause holds a command. */
const WORDS_READ = 2

/** Holds the commands of one client while its database is paused (CLIENT PAUSE). */
export class PauseHold {
  readonly #context: CommandContext
  /** Whether a command of the transaction that was opened last may write. */
  #transactionWrites = false
  #cancel: (() => void) | undefined

  constructor(context: CommandContext) {
    this.#context = context
  }

  /**
   * Whether the present command may be handled now. If not, it is taken again when the pause has ended. `wholeArguments`:
   * number of arguments that have arrived, for a command that is passed on in pieces.
   */
  passes(command: KnownCommand | undefined, wholeArguments = WORDS_READ): boolean {
    const { pause } = this.#context.deps.guard
    if (pause.mode === undefined || !command?.allowed || !this.#context.user) return true
    const held = this.#isExecOfWrites(command) || pause.holds(command, () => this.#words(wholeArguments))
    if (held === false) return true
    if (!this.#context.flow.flush()) return false
    if (held === true) this.#wait()
    else this.#context.flow.retryWhen(held)
    return false
  }

  /** Call it before MULTI is sent. */
  openTransaction(): void {
    this.#transactionWrites = false
  }

  /** Notes that commands that may write are sent; in an open transaction the engine queues them. */
  noteWrites(): void {
    this.#transactionWrites = true
  }

  /** Notes that the present command is sent; in an open transaction the engine queues it. */
  note(command: ServedCommand): void {
    const { pause } = this.#context.deps.guard
    if (command.mayWrite && pause.writesLater(command, this.#words(WORDS_READ))) this.#transactionWrites = true
  }

  /** Call it when the connection has closed. */
  close(): void {
    if (!this.#cancel) return
    this.#cancel()
    this.#release()
  }

  #isExecOfWrites({ name }: ServedCommand): boolean {
    return name === 'EXEC' && this.#context.lane.isInTransaction && this.#transactionWrites
  }

  #wait(): void {
    this.#context.flow.retryWhen('pause')
    this.#context.blocked++
    this.#cancel = this.#context.deps.guard.pause.hold(() => {
      this.#release()
      this.#context.flow.proceed('pause')
    })
  }

  #release(): void {
    this.#cancel = undefined
    this.#context.blocked--
  }

  #words(most: number): CommandWords {
    const { frameBuffer, frameStart, argumentCount: count } = this.#context.frame
    return { args: frameArguments(frameBuffer, frameStart, Math.min(count, most, WORDS_READ)), count }
  }
}
