import { type HomeportError, refusal } from '../../contract/errors/errors.js'
import { hasOneKey } from '../limits/command-keys.js'
import type { Verdict } from '../limits/database-guard.js'
import { type AskEngine, askOver } from '../limits/engine-questions.js'
import { MAX_KEY_BYTES, UNSEEN_BYTES } from '../limits/inspect.js'
import type { ReadBatch } from '../limits/pending-watch.js'
import { frameArguments, longestArgumentBytes } from '../resp/arguments.js'
import { keep } from '../resp/lent-memory.js'
import type { CommandContext } from './command-context.js'
import type { KnownCommand, ServedCommand } from './command-table.js'

const LINE_END_BYTES = 2
const NAME_AND_KEY = 2
/** A command with more arguments is refused if all of them have to be read. */
const MAX_ARGUMENTS_READ = 65_536
/** From this number of arguments on, it pays to check first whether any of them is long. */
const MANY_ARGUMENTS = 1_000

/**
 * Checks the present command of a session against the limits of its database. A command may be taken several times before
 * it is sent (it waits for its token, for the engine, for its lane); it takes a token and is counted once.
 */
export class Permits {
  readonly #context: CommandContext
  /** Whether the present command has taken its token of the rate limit. */
  #hasToken = false
  /** The present command, if it passed every limit; it is counted once it was sent. */
  #permitted: ServedCommand | undefined
  /** The verdict on the present command, if the engine had to be asked for it. */
  #ruling: { readonly verdict: Verdict } | undefined
  /** Stream entries that the commands of the open transaction will deliver to consumers. */
  #batch: ReadBatch | undefined

  constructor(context: CommandContext) {
    this.#context = context
  }

  /** Takes a token of the rate limit for the present command. False: the command is taken again when there is one. */
  takeToken(): boolean {
    if (this.#hasToken || this.#context.deps.guard.rate.take()) {
      this.#hasToken = true
      return true
    }
    this.#waitForToken()
    return false
  }

  /** Whether the present command passes every limit without a closer look. Only for a client that is logged in. */
  passes(command: ServedCommand): boolean {
    const { guard } = this.#context.deps
    const { frameBuffer, frameStart, frameEnd, nameEnd } = this.#context.frame
    const bytes = frameEnd - frameStart
    if (bytes > MAX_KEY_BYTES || !guard.isOpen) return false
    if (command.effect === 'none') return true
    return command.effect === 'grows' && guard.entries.passes(frameBuffer, nameEnd, bytes)
  }

  /**
   * Whether the present command is within all limits. If not, it is refused, or it is taken again once the engine has
   * answered a question about it.
   */
  admit(command: ServedCommand): boolean {
    const verdict = this.#ruling ? this.#ruling.verdict : this.#inspect(command)
    this.#ruling = undefined
    if (verdict instanceof Promise) this.#waitFor(verdict)
    else if (verdict) this.#context.refuse(verdict)
    else this.#permitted = command
    return verdict === undefined
  }

  /** Call it when the present command was handled, or will be taken again. */
  conclude(): void {
    const { flow, deps } = this.#context
    if (this.#permitted && !flow.willRetry) deps.guard.count(this.#permitted, 1)
    this.#permitted = undefined
    if (!flow.willRetry) this.#hasToken = false
  }

  #waitForToken(): void {
    const context = this.#context
    context.flow.retryWhen('rate')
    context.deps.guard.rate.wait(1, () => {
      this.#hasToken = true
      context.flow.proceed('rate')
    })
  }

  #waitFor(verdict: Promise<Verdict>): void {
    this.#context.flow.retryWhen(
      verdict.then((ruled) => {
        this.#ruling = { verdict: ruled }
      }),
    )
  }

  /** The arguments of the present command before its large one, as far as a limit needs them. */
  argumentsBefore(command: ServedCommand): readonly Buffer[] {
    const { frameBuffer, frameStart, frameEnd, largeIndex } = this.#context.frame
    const frame = Buffer.from(frameBuffer.subarray(frameStart, frameEnd))
    return frameArguments(frame, 0, Math.min(largeIndex, neededArguments(command)))
  }

  /** Checks a command that is passed on in pieces against every limit but the rate. */
  inspectUpload(command: ServedCommand): Verdict | Promise<Verdict> {
    const { frame, deps } = this.#context
    const bytes = frame.actualBytes
    const valueBytes = bytes - (frame.frameEnd - frame.frameStart) - LINE_END_BYTES
    return deps.guard.inspectUpload(command, this.argumentsBefore(command), { bytes, valueBytes }, this.#ask)
  }

  #inspect(command: ServedCommand): Verdict | Promise<Verdict> {
    const { frameBuffer, frameStart, frameEnd, argumentCount } = this.#context.frame
    // The arguments are still needed after the engine has answered a question.
    const frame = keep(frameBuffer.subarray(frameStart, frameEnd))
    const needed = isListOfShort(command, frame, argumentCount) ? NAME_AND_KEY : neededArguments(command)
    if (Math.min(argumentCount, needed) > MAX_ARGUMENTS_READ) return tooManyArguments()
    const args = frameArguments(frame, 0, Math.min(argumentCount, needed))
    return this.#context.deps.guard.inspect(command, args, frame.length, this.#ask, this.#transactionBatch())
  }

  /** The batch of the open transaction. MULTI calls this too, before its transaction is open: each one gets a new batch. */
  #transactionBatch(): ReadBatch | undefined {
    this.#batch = this.#context.lane.isInTransaction ? (this.#batch ?? new Map()) : undefined
    return this.#batch
  }

  /**
   * Asks as `default`, because other users may lack the permission. Earlier commands of such a user may then run after the
   * question, which does not matter.
   */
  get #ask(): AskEngine {
    const { deps, protocol } = this.#context
    const { databaseId } = deps.guard.database
    return askOver(deps.lanes.shared({ databaseId, user: 'default', protocol }))
  }
}

/** Number of arguments that limits need. A command that adds to one entry may have 100,000, but only its key matters. */
function neededArguments({ effect, name }: ServedCommand): number {
  return effect === 'grows' && hasOneKey(name) ? NAME_AND_KEY : Number.POSITIVE_INFINITY
}

/** Whether a command has many arguments, and none of them matters to a limit or is too long. */
function isListOfShort({ effect, state }: ServedCommand, frame: Buffer, count: number): boolean {
  if (effect !== 'none' || state !== 'stateless' || count < MANY_ARGUMENTS) return false
  return longestArgumentBytes(frame, 0, count) <= UNSEEN_BYTES
}

/** The error for a command whose arguments would take too much memory if all were read. */
export function tooManyArguments(): HomeportError {
  const problem = `too many arguments: more than ${MAX_ARGUMENTS_READ} are only taken by commands that list keys, fields or values`
  return refusal('command_malformed', { problem })
}

/** Whether all arguments of a command have to be read, and there are too many. */
export function hasTooManyArguments(command: KnownCommand, count: number): boolean {
  if (count <= MAX_ARGUMENTS_READ || !command.allowed) return false
  return command.state !== 'stateless' || (command.effect !== 'none' && command.effect !== 'grows')
}
