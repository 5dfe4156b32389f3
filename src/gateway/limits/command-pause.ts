import type { Clock, Timer } from '../../base/index.js'
import { scheduleSlice } from '../../base/index.js'
import type { ServedCommand } from '../commands/command-table.js'
import type { Argument } from '../resp/encode.js'
import { mayWrite, readingFunctions } from './command-effect.js'

/** The commands that a pause holds: those that may write, or all. */
export type PauseMode = 'write' | 'all'

/** The longest pause that a client can ask for. */
export const MAX_PAUSE_MS = 2 * 3600 * 1000

/** The first arguments of a command, name first, of `count` in all. */
export interface CommandWords {
  readonly args: readonly Argument[]
  readonly count: number
}

/** These only change the client's own connection. */
const NEVER_HELD: ReadonlySet<string> = new Set(['AUTH', 'HELLO', 'QUIT', 'RESET'])
const ENDS_PAUSE = /^(un)?pause$/i

/**
 * CLIENT PAUSE of one database. The gateway holds the commands before they reach an engine, so Homeport's own questions to
 * engines are not held. The pause is in memory only: it ends with the process.
 */
export class CommandPause {
  readonly #clock: Clock
  readonly #listFunctions: () => Promise<Buffer>
  /** The commands that are held now; undefined without a pause. */
  mode: PauseMode | undefined
  /** The functions that only read. They cannot change during the pause: it holds FUNCTION LOAD and its kin. */
  #functions: ReadonlySet<string> | undefined
  #endsAtMs = 0
  #timer: Timer | undefined
  readonly #held = new Set<() => void>()

  /** `listFunctions` asks the engine for FUNCTION LIST in RESP2. */
  constructor(clock: Clock, listFunctions: () => Promise<Buffer>) {
    this.#clock = clock
    this.#listFunctions = listFunctions
  }

  /** Number of held commands. */
  get heldCount(): number {
    return this.#held.size
  }

  /** Pauses for `ms` milliseconds from now. It only extends or widens a pause that is active. */
  begin(mode: PauseMode, ms: number): void {
    const endsAtMs = this.#clock.now() + ms
    if (this.mode !== undefined) {
      if (mode === 'all') this.mode = 'all'
      if (endsAtMs <= this.#endsAtMs) return
    } else if (ms > 0) this.mode = mode
    else return
    this.#endsAtMs = endsAtMs
    this.#timer?.cancel()
    this.#timer = this.#clock.after(ms, () => this.end())
  }

  /** Ends the pause. Releases the held commands in order, each in a turn of the event loop of its own. */
  end(): void {
    this.mode = undefined
    this.#functions = undefined
    this.#timer?.cancel()
    this.#timer = undefined
    for (const release of [...this.#held]) scheduleSlice(() => this.#held.delete(release) && release())
  }

  /** Calls `release` when the pause has ended, unless the returned function was called before. */
  hold(release: () => void): () => void {
    const held = (): void => release()
    this.#held.add(held)
    return () => void this.#held.delete(held)
  }

  /**
   * Whether a command is held. Calls `words` only when its row in the command table does not decide. Returns a promise when
   * the engine has to be asked first: call `holds` again once the promise has resolved.
   */
  holds(command: ServedCommand, words: () => CommandWords): boolean | Promise<void> {
    if (this.mode === undefined) return false
    if (this.mode === 'all') return !this.#mayPass(command, words)
    if (!command.mayWrite) return false
    const { args, count } = words()
    const writes = mayWrite(command.name, args, count, this.#functions)
    return writes === 'unknown' ? this.#learnFunctions() : writes
  }

  /** Whether a command that is queued in a transaction may write when the transaction runs. */
  writesLater(command: ServedCommand, { args, count }: CommandWords): boolean {
    return command.mayWrite && mayWrite(command.name, args, count, this.#functions) !== false
  }

  #mayPass({ name, state }: ServedCommand, words: () => CommandWords): boolean {
    if (NEVER_HELD.has(name)) return true
    return state === 'container' && name === 'CLIENT' && ENDS_PAUSE.test(String(words().args[1] ?? ''))
  }

  /** Asks the engine for the functions that only read. If it does not answer, every function counts as a write. */
  async #learnFunctions(): Promise<void> {
    const found = await this.#listFunctions().then(readingFunctions, () => new Set<string>())
    if (this.mode !== undefined) this.#functions ??= found
  }
}
