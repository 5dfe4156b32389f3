import type { Clock, Timer } from '../../base/index.js'
import { inTurn } from '../../base/index.js'
import type { ServedCommand } from '../commands/command-table.js'
import type { Argument } from '../resp/encode.js'
import { mayWrite, readingFunctions } from './command-effect.js'

/** What a pause holds: commands that may write, or all. */
export type PauseMode = 'write' | 'all'

/** The longest pause that can be asked for, so that commands are not held forever. */
export const LONGEST_PAUSE_MS = 2 * 3600 * 1000

/** What the bytes of a command say that matters: its first arguments, name first, of `count` in all. */
export interface CommandWords {
  readonly args: readonly Argument[]
  readonly count: number
}

/** They end a pause, or change nothing but the client's own connection. */
const NEVER_HELD: ReadonlySet<string> = new Set(['AUTH', 'HELLO', 'QUIT', 'RESET'])
const ENDS_PAUSE = /^(un)?pause$/i

/**
 * CLIENT PAUSE of one database. The commands are held here, before they reach an engine, so what Homeport asks engines
 * for itself goes on. The pause is in memory only: it ends with the process.
 */
export class CommandPause {
  readonly #clock: Clock
  readonly #listFunctions: () => Promise<Buffer>
  /** What is held now; undefined while nothing is paused. */
  mode: PauseMode | undefined
  /** The functions that only read, as they are during this pause: changes of them are held. */
  #functions: ReadonlySet<string> | undefined
  #endsAtMs = 0
  #timer: Timer | undefined
  readonly #held = new Set<() => void>()

  /** `listFunctions` asks the engine for FUNCTION LIST in RESP2. */
  constructor(clock: Clock, listFunctions: () => Promise<Buffer>) {
    this.#clock = clock
    this.#listFunctions = listFunctions
  }

  /** How many commands are held. */
  get heldCount(): number {
    return this.#held.size
  }

  /** Pauses for so many milliseconds from now. A pause that is there already is only ever extended or widened. */
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

  /** Ends the pause. The held commands are taken in the order in which they came, each in a turn of its own. */
  end(): void {
    this.mode = undefined
    this.#functions = undefined
    this.#timer?.cancel()
    this.#timer = undefined
    for (const release of [...this.#held]) inTurn(() => this.#held.delete(release) && release())
  }

  /** Calls `release` once the pause has ended, unless the returned function is called before. */
  hold(release: () => void): () => void {
    const held = (): void => release()
    this.#held.add(held)
    return () => void this.#held.delete(held)
  }

  /**
   * Whether a command is held; `words` are asked for only where its row does not tell. A promise where the engine has
   * to be asked first: then the question is put again behind it.
   */
  holds(command: ServedCommand, words: () => CommandWords): boolean | Promise<void> {
    if (this.mode === undefined) return false
    if (this.mode === 'all') return !this.#mayPass(command, words)
    if (!command.mayWrite) return false
    const { args, count } = words()
    const writes = mayWrite(command.name, args, count, this.#functions)
    return writes === 'unknown' ? this.#learnFunctions() : writes
  }

  /** Whether a command that is queued in a transaction may write when that is carried out. */
  writesLater(command: ServedCommand, { args, count }: CommandWords): boolean {
    return command.mayWrite && mayWrite(command.name, args, count, this.#functions) !== false
  }

  #mayPass({ name, state }: ServedCommand, words: () => CommandWords): boolean {
    if (NEVER_HELD.has(name)) return true
    return state === 'container' && name === 'CLIENT' && ENDS_PAUSE.test(String(words().args[1] ?? ''))
  }

  /** Where the engine cannot tell, every function may write. */
  async #learnFunctions(): Promise<void> {
    const found = await this.#listFunctions().then(readingFunctions, () => new Set<string>())
    if (this.mode !== undefined) this.#functions ??= found
  }
}
