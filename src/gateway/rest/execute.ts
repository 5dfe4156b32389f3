import { HomeportError } from '../../contract/errors.js'
import { errorText } from '../error-text.js'
import { filterInfoReply } from '../info-filter.js'
import { CollectedReplies } from '../lane/collect-reply.js'
import type { EngineLink } from '../lane/engine-link.js'
import { encodeTextCommand } from '../resp/encode.js'
import { ReplyFramer } from '../resp/reply-framer.js'
import type { ParsedCommand } from './json-commands.js'
import { type PreparedCommand, prepareCommand } from './prepare.js'
import { type ReplyEncoding, ReplyReader, type RestReply } from './reply-reader.js'

/** A command as it is sent. */
type Wire = Pick<PreparedCommand, 'wire'>

const MULTI = encodeTextCommand(['MULTI'])
const EXEC = encodeTextCommand(['EXEC'])
const DISCARDED = 'EXECABORT Transaction discarded because of: '

/** Sends a command; answers with the bytes of its one reply. Rejects when the engine is lost. */
export function sendCommand(link: EngineLink, command: Wire): Promise<Buffer> {
  return sendAll(link, [command])
}

/** Reads the reply to a command. */
export function readReply(command: PreparedCommand, reply: Buffer, encoding: ReplyEncoding): RestReply {
  return new ReplyReader(command.filtered ? filterInfoReply(reply, textOf(command.args[1])) : reply, encoding).next()
}

const textOf = (arg: string | Buffer | undefined): string | undefined => arg?.toString()

/** A command of a pipeline that is ready to be sent, or the error that stands in its slot. */
export type Slot = PreparedCommand | HomeportError

/** Prepares the commands of a pipeline; what cannot be sent is an error in its slot. */
export function prepareSlots(commands: readonly ParsedCommand[]): readonly Slot[] {
  return commands.map((command) => {
    try {
      return command instanceof HomeportError ? command : refuseManaged(prepareCommand(command))
    } catch (error) {
      if (error instanceof HomeportError) return error
      throw error
    }
  })
}

/** Commands about the database itself never reach an engine, so they have no place among those that do. */
function refuseManaged(prepared: PreparedCommand): Slot {
  if (prepared.command.state !== 'managed') return prepared
  const name = prepared.command.name.replace('|', ' ')
  return new HomeportError('command_malformed', { problem: `${name} must be sent alone, not with other commands` })
}

/** Sends the commands of a pipeline in order, not atomically; answers with the bytes of all replies. */
export async function sendPipeline(link: EngineLink, slots: readonly Slot[]): Promise<Buffer> {
  const commands = slots.filter(isPrepared)
  return commands.length === 0 ? Buffer.alloc(0) : sendAll(link, commands)
}

/** Reads the replies of a pipeline, each into its slot. */
export function readPipeline(slots: readonly Slot[], replies: Buffer, encoding: ReplyEncoding): readonly RestReply[] {
  let at = 0
  return slots.map((slot) => {
    if (slot instanceof HomeportError) return { error: errorText(slot) }
    const end = new ReplyFramer().scan(replies, at, 1)
    const reply = replies.subarray(at, end)
    at = end
    return readReply(slot, reply, encoding)
  })
}

/**
 * Runs commands as one transaction. All of it, MULTI to EXEC, goes out as one uninterrupted piece of the shared lane,
 * so nothing of anybody else can come between.
 * @returns one reply for each command, or the one error that discarded them all.
 */
export async function runTransaction(
  link: EngineLink,
  slots: readonly Slot[],
  encoding: ReplyEncoding,
): Promise<readonly RestReply[] | { readonly error: string }> {
  const refused = slots.find((slot) => slot instanceof HomeportError)
  if (refused instanceof HomeportError) return { error: errorText(refused) }
  const commands = slots.filter(isPrepared)
  const bracketed = [{ wire: MULTI }, ...commands, { wire: EXEC }]
  const replies = await sendAll(link, bracketed)
  return readTransaction(commands, replies, encoding)
}

function readTransaction(
  commands: readonly PreparedCommand[],
  replies: Buffer,
  encoding: ReplyEncoding,
): readonly RestReply[] | { readonly error: string } {
  const reader = new ReplyReader(replies, encoding)
  const queueing = [reader.next(), ...commands.map(() => reader.next())]
  const length = reader.arrayLength()
  if (length === commands.length) return readPipeline(commands, replies.subarray(reader.position), encoding)
  const cause = queueing.find((reply) => 'error' in reply) ?? reader.next()
  return { error: DISCARDED + ('error' in cause ? cause.error : 'the engine did not run it') }
}

function sendAll(link: EngineLink, commands: readonly Wire[]): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const sink = new CollectedReplies(commands.length, resolve, reject)
    if (commands.every(hasText)) {
      link.sendText(
        sink,
        commands.length === 1 ? (commands[0]?.wire ?? '') : commands.map(({ wire }) => wire).join(''),
        commands.length,
      )
      return
    }
    const bytes = Buffer.concat(commands.map(({ wire }) => (typeof wire === 'string' ? Buffer.from(wire) : wire)))
    link.send(sink, bytes, 0, bytes.length, commands.length)
  })
}

function hasText(command: Wire): command is { readonly wire: string } {
  return typeof command.wire === 'string'
}

/** Whether a slot holds a command. */
export function isPrepared(slot: Slot): slot is PreparedCommand {
  return !(slot instanceof HomeportError)
}
