import { type HomeportError, refusal } from '../../contract/errors/errors.js'
import type { Session } from '../client/session.js'
import { hasOneKey } from '../limits/command-keys.js'
import type { Verdict } from '../limits/database-guard.js'
import { type AskEngine, askOver } from '../limits/engine-questions.js'
import { MAX_KEY_BYTES, UNSEEN_BYTES } from '../limits/inspect.js'
import type { ReadBatch } from '../limits/pending-watch.js'
import { frameArguments, longestArgumentBytes } from '../resp/frame-arguments.js'
import { copied } from '../resp/lent-memory.js'
import type { KnownCommand, ServedCommand } from './command-table.js'

const LINE_END_BYTES = 2
const NAME_AND_KEY = 2
/** Of commands with more arguments, those are refused of which all have to be read. */
const MOST_ARGUMENTS_READ = 65_536
/** From here on it pays to see first whether any argument is long. */
const MANY_ARGUMENTS = 1_000

/**
 * Holds the present command of a session against the limits of its database. A command may be taken several times
 * before it is sent (it waits for its turn, for the engine, for its lane); it pays and is counted once.
 */
export class Permits {
  readonly #session: Session
  /** The present command has its token of the rate. */
  #hasToken = false
  /** The present command has passed every limit; it is counted once it has been sent. */
  #permitted: ServedCommand | undefined
  /** What the engine had to be asked about the present command. */
  #ruling: { readonly verdict: Verdict } | undefined

  /** Of the transaction that is open. */
  #batch: ReadBatch | undefined

  constructor(session: Session) {
    this.#session = session
  }

  /** Whether the present command may go on now. If not, it is taken again when its turn has come. */
  takeToken(): boolean {
    if (this.#hasToken || this.#session.services.guard.rate.take()) {
      this.#hasToken = true
      return true
    }
    this.#waitForTurn()
    return false
  }

  /** Whether no limit has to look at the present command more closely; it belongs to a logged in client. */
  passes(command: ServedCommand): boolean {
    const { guard } = this.#session.services
    const { frameBuffer, frameStart, frameEnd, nameEnd } = this.#session.parser
    const bytes = frameEnd - frameStart
    if (bytes > MAX_KEY_BYTES || !guard.isOpen) return false
    if (command.effect === 'none') return true
    return command.effect === 'grows' && guard.entries.passes(frameBuffer, nameEnd, bytes)
  }

  /**
   * Whether the present command keeps all limits. If not, the client is told why, or the command is taken again once
   * the engine has been asked.
   */
  admit(command: ServedCommand): boolean {
    const verdict = this.#ruling ? this.#ruling.verdict : this.#inspect(command)
    this.#ruling = undefined
    if (verdict instanceof Promise) this.#waitFor(verdict)
    else if (verdict) this.#session.refuse(verdict)
    else this.#permitted = command
    return verdict === undefined
  }

  /** The present command has been dealt with, or is going to be taken again. */
  conclude(): void {
    const { parser, services } = this.#session
    if (this.#permitted && !parser.repeats) services.guard.count(this.#permitted, 1)
    this.#permitted = undefined
    if (!parser.repeats) this.#hasToken = false
  }

  #waitForTurn(): void {
    const { flow, parser, services } = this.#session
    parser.repeat()
    flow.wait('rate')
    services.guard.rate.wait(1, () => {
      this.#hasToken = true
      flow.proceed('rate')
    })
  }

  #waitFor(verdict: Promise<Verdict>): void {
    this.#session.parser.repeat()
    this.#session.waitFor(
      verdict.then((ruled) => {
        this.#ruling = { verdict: ruled }
      }),
    )
  }

  /** The arguments of the present command in front of its large one, as far as a limit looks at them. */
  argumentsBefore(command: ServedCommand): readonly Buffer[] {
    const { frameBuffer, frameStart, frameEnd, largeIndex } = this.#session.parser
    const frame = Buffer.from(frameBuffer.subarray(frameStart, frameEnd))
    return frameArguments(frame, 0, Math.min(largeIndex, neededArguments(command)))
  }

  /** Holds a command that is passed on as it comes against every limit but the rate. */
  inspectUpload(command: ServedCommand): Verdict | Promise<Verdict> {
    const { parser, services } = this.#session
    const bytes = parser.actualBytes
    const valueBytes = bytes - (parser.frameEnd - parser.frameStart) - LINE_END_BYTES
    return services.guard.inspectUpload(command, this.argumentsBefore(command), { bytes, valueBytes }, this.#ask)
  }

  #inspect(command: ServedCommand): Verdict | Promise<Verdict> {
    const { parser, services } = this.#session
    const { frameBuffer, frameStart, frameEnd, argumentCount } = parser
    // The engine may have to be asked first, and the arguments are needed behind its answer.
    const frame = copied(frameBuffer.subarray(frameStart, frameEnd))
    const needed = isListOfShort(command, frame, argumentCount) ? NAME_AND_KEY : neededArguments(command)
    if (Math.min(argumentCount, needed) > MOST_ARGUMENTS_READ) return tooManyArguments()
    const args = frameArguments(frame, 0, Math.min(argumentCount, needed))
    return services.guard.inspect(command, args, frame.length, this.#ask, this.#transactionBatch())
  }

  /** What the commands of the open transaction are going to do; MULTI comes by before another one is opened. */
  #transactionBatch(): ReadBatch | undefined {
    const { state } = this.#session.lane
    const isOpen = (state.kind === 'own' || state.kind === 'pinned') && state.transaction === 'open'
    this.#batch = isOpen ? (this.#batch ?? new Map()) : undefined
    return this.#batch
  }

  /** Other users may not be allowed to ask. What they sent before may then be answered later, which does not matter. */
  get #ask(): AskEngine {
    const { services, protocol } = this.#session
    const { databaseId } = services.guard.database
    return askOver(services.lanes.shared({ databaseId, user: 'default', protocol }))
  }
}

/** Of a command that adds to one entry only the key matters, and it may have hundreds of thousands of arguments. */
function neededArguments({ effect, name }: ServedCommand): number {
  return effect === 'grows' && hasOneKey(name) ? NAME_AND_KEY : Number.POSITIVE_INFINITY
}

/** Whether no argument of a command breaks a limit by its length, or matters otherwise. */
function isListOfShort({ effect, state }: ServedCommand, frame: Buffer, count: number): boolean {
  if (effect !== 'none' || state !== 'stateless' || count < MANY_ARGUMENTS) return false
  return longestArgumentBytes(frame, 0, count) <= UNSEEN_BYTES
}

/** A command whose arguments would take too much memory if each were looked at. */
export function tooManyArguments(): HomeportError {
  const problem = `too many arguments: more than ${MOST_ARGUMENTS_READ} are only taken by commands that list keys, fields or values`
  return refusal('command_malformed', { problem })
}

/** Whether a command has more arguments than are read of any. */
export function hasTooManyArguments(command: KnownCommand, count: number): boolean {
  if (count <= MOST_ARGUMENTS_READ || !command.allowed) return false
  return command.state !== 'stateless' || (command.effect !== 'none' && command.effect !== 'grows')
}
