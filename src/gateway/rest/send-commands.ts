import { mapInSlices } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { Awaited, ReplySink } from '../engine/reply-sink.js'
import { ReplyWindow } from '../engine/reply-window.js'
import { isNotServedHere } from '../engine/unsent.js'
import { JOINED_AT_ONCE_BYTES, joinInSlices } from '../resp/join-in-slices.js'
import { type KeptBytes, keep, type LentBytes } from '../resp/lent-memory.js'
import { GatheredReplies } from './gathered-replies.js'
import { LARGE_COMMAND } from './large-commands.js'
import type { RepliesClient, RepliesReader } from './replies-reader.js'

/** An encoded command. */
export interface EncodedCommand {
  readonly wire: string | Buffer
}

/** Options for sending the commands of a request. */
export interface SendOptions<Command extends EncodedCommand = EncodedCommand> {
  readonly client: RepliesClient
  /** Why the replies may take long; undefined for ordinary commands. */
  readonly awaits?: Awaited | undefined
  /** Called when a batch is sent. @returns a function to call when the batch is answered or lost */
  readonly onSend?: (batch: readonly Command[]) => () => void
}

/**
 * Sends commands in order, at least one. `reader` gets their replies together. An engine builds the replies to all commands
 * that it reads at once. Therefore many commands are sent in batches: each when the batch before was answered and the client
 * has read enough.
 */
export function sendCommands<Command extends EncodedCommand>(
  link: EngineLink,
  commands: readonly Command[],
  options: SendOptions<Command>,
  reader: RepliesReader,
): void {
  const window = new ReplyWindow(options.client.maxUnreadBytes, link.replyLimits.maxReplyBytes)
  new SentCommands(link, commands, options, reader, window).send()
}

/** `sendCommands` as a promise. */
export function sentCommands(
  link: EngineLink,
  commands: readonly EncodedCommand[],
  options: SendOptions,
): Promise<KeptBytes> {
  if (commands.length === 0) return Promise.resolve(Buffer.alloc(0))
  return asPromise((reader) => sendCommands(link, commands, options, reader))
}

/** Sends commands in one batch, so that no command of another client comes between. */
export async function sentTogether(
  link: EngineLink,
  commands: readonly EncodedCommand[],
  options: SendOptions,
): Promise<KeptBytes> {
  const joined = await joinedWires(commands)
  return asPromise((reader) => new SentCommands(link, commands, options, reader, undefined).send(joined))
}

/** Joins commands that must be sent at once, in slices that yield to the event loop; undefined if they are short. */
async function joinedWires(commands: readonly EncodedCommand[]): Promise<Buffer | undefined> {
  const characters = commands.reduce((sum, { wire }) => sum + wire.length, 0)
  return characters > JOINED_AT_ONCE_BYTES ? joinInSlices(await mapInSlices(commands, bytesOf)) : undefined
}

function asPromise(send: (reader: RepliesReader) => void): Promise<KeptBytes> {
  return new Promise((resolve, reject) => send({ onReplies: (replies) => resolve(keep(replies)), onLost: reject }))
}

/** The error of a request that fails after some of its replies: its commands must not run again at the next home. */
export const failureAfterReplies = (error: unknown): unknown =>
  isNotServedHere(error) ? new HomeportError('engine_lost', {}, { cause: error }) : error

const NOTHING_TO_SETTLE = (): void => {}

/** The commands of a request on their way to the engine, in one batch or several. */
class SentCommands<Command extends EncodedCommand> implements ReplySink {
  readonly awaits: Awaited | undefined
  readonly #link: EngineLink
  readonly #commands: readonly Command[]
  readonly #options: SendOptions<Command>
  readonly #reader: RepliesReader
  /** Limits the commands of a batch; undefined: all are one batch. */
  readonly #window: ReplyWindow | undefined
  /** The last batch: index of its first command, and of the command behind it. */
  #from = 0
  #to = 0
  /** Number of pending replies to the batch. */
  #pending = 0
  /** Bytes of the batch's replies so far. */
  #bytes = 0
  /** Present once replies have arrived in more than one chunk; nearly always there is only one. */
  #gathering: GatheredReplies | undefined
  /** Call it when the batch is answered or lost. */
  #settled = NOTHING_TO_SETTLE
  #isLost = false

  constructor(
    link: EngineLink,
    commands: readonly Command[],
    options: SendOptions<Command>,
    reader: RepliesReader,
    window: ReplyWindow | undefined,
  ) {
    this.awaits = options.awaits
    this.#link = link
    this.#commands = commands
    this.#options = options
    this.#reader = reader
    this.#window = window
  }

  /** Sends the next batch. @param joined all bytes of the batch, if they were joined before */
  send(joined?: Buffer): void {
    const all = this.#commands
    this.#from = this.#to
    this.#to = Math.min(this.#from + (this.#window?.size ?? all.length), all.length)
    this.#pending = this.#to - this.#from
    this.#bytes = 0
    const batch = this.#pending === all.length ? all : all.slice(this.#from, this.#to)
    this.#settled = this.#options.onSend?.(batch) ?? NOTHING_TO_SETTLE
    if (joined) this.#link.send(this, joined, 0, joined.length, batch.length)
    else sendBatch(this.#link, this, batch)
  }

  deliver(chunk: LentBytes, start: number, end: number, completed: number): void {
    if (this.#isLost) return
    const replies = chunk.subarray(start, end)
    this.#complete(completed)
    if (this.#isAnswered && this.#gathering === undefined) this.#reader.onReplies(replies)
    else this.#gather(replies.length, (gathering) => gathering.take(replies))
  }

  deliverHeld(pieces: readonly LentBytes[]): void {
    if (this.#isLost) return
    this.#complete(1)
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
    this.#gather(bytes, (gathering) => gathering.takeHeld(pieces))
  }

  #complete(count: number): void {
    this.#pending -= count
    if (this.#pending === 0) this.#settled()
  }

  /** Whether the replies to all commands have arrived. */
  get #isAnswered(): boolean {
    return this.#pending === 0 && this.#to === this.#commands.length
  }

  #gather(bytes: number, take: (gathering: GatheredReplies) => void): void {
    this.#bytes += bytes
    this.#gathering ??= new GatheredReplies(this.#options.client, this.#reader)
    take(this.#gathering)
    if (this.#isAnswered) this.#gathering.end()
    else if (this.#pending === 0) void this.#proceed(this.#gathering)
  }

  /** Sends the next batch after this one was answered. Never rejects. */
  async #proceed(gathering: GatheredReplies): Promise<void> {
    this.#window?.answered(this.#to - this.#from, this.#bytes)
    this.#window?.widen()
    try {
      await this.#options.client.whenWanted()
      if (!gathering.isGivenUp) this.send()
    } catch (error) {
      gathering.giveUp(error)
    }
  }

  fail(_count: number, error: HomeportError): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#settled()
    const isAnsweredInPart = this.#from > 0 || this.#pending < this.#to
    const shown = isAnsweredInPart ? failureAfterReplies(error) : error
    if (this.#gathering) this.#gathering.giveUp(shown)
    else this.#reader.onLost(shown)
  }
}

function sendBatch(link: EngineLink, sink: ReplySink, commands: readonly EncodedCommand[]): void {
  if (commands.every(hasText)) {
    link.sendText(sink, commands.map(({ wire }) => wire).join(''), commands.length)
    return
  }
  if (commands.some(isLong)) {
    // Sent one by one, because joining them would take long.
    for (const { wire } of commands) {
      if (typeof wire === 'string') link.sendText(sink, wire, 1)
      else link.send(sink, wire, 0, wire.length, 1)
    }
    return
  }
  const bytes = Buffer.concat(commands.map(bytesOf))
  link.send(sink, bytes, 0, bytes.length, commands.length)
}

const bytesOf = ({ wire }: EncodedCommand): Buffer => (typeof wire === 'string' ? Buffer.from(wire) : wire)

function isLong({ wire }: EncodedCommand): boolean {
  return wire.length >= LARGE_COMMAND && typeof wire !== 'string'
}

function hasText(command: EncodedCommand): command is { readonly wire: string } {
  return typeof command.wire === 'string'
}
