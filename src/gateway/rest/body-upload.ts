import type { IncomingMessage } from 'node:http'
import type { HomeportError } from '../../contract/errors/errors.js'
import { findCommandByName, type ServedCommand } from '../commands/command-table.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import { CollectedReplies } from '../engine/reply-sink.js'
import { isUploadable } from '../limits/inspect.js'
import { type Argument, encodeBulk } from '../resp/encode.js'
import { pathCommand, type Target } from './parse-commands.js'

/** From this length on a body is passed on as it comes, bytes. */
const LARGE_BODY_BYTES = 1024 * 1024
/** What stands in the place of the body while the path and the query are read. */
const BODY = Buffer.from('body')
const LINE_END = Buffer.from('\r\n')

/** A command whose last path argument is a large body (reference redis 4.1). */
export interface BodyCommand {
  readonly command: ServedCommand
  /** What stands before the body, the command's name first. */
  readonly before: readonly [name: Argument, key: Argument, ...rest: Argument[]]
  readonly bodyBytes: number
  /** What stands behind it. */
  readonly behind: readonly Argument[]
}

/**
 * Reads a request as a command that can be carried out while its body comes: every limit can be judged without it. Of
 * bodies that do not tell their length, and of every other request, undefined.
 */
export function bodyCommandOf(
  target: Target,
  { headers }: Pick<IncomingMessage, 'headers'>,
  limitBytes: number,
): BodyCommand | undefined {
  const bodyBytes = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : 0
  if (!(bodyBytes >= LARGE_BODY_BYTES && bodyBytes <= limitBytes) || target.path.length < 2) return undefined
  const args = pathCommand(target, BODY)
  const at = args.indexOf(BODY)
  const [name, key, ...rest] = args.slice(0, at)
  const command = name === undefined ? undefined : findCommandByName(name.toString())
  if (name === undefined || key === undefined || !command?.allowed || !command.rest) return undefined
  if (!isUploadable(command, [name, key, ...rest], at === args.length - 1)) return undefined
  return { command, before: [name, key, ...rest], bodyBytes, behind: args.slice(at + 1) }
}

/** Who waits for what becomes of a body; exactly one of the two is called, unless the client goes before. */
export interface UploadReader {
  onReply(reply: Buffer): void
  onLost(error: HomeportError): void
}

/**
 * Sends a command to the engine while its body comes, on a connection of its own: a shared one would be held up for
 * everybody by a client that sends slowly, and lost by one that goes away halfway. No more of the body is held than the
 * engine is behind.
 */
export class BodyUpload {
  readonly #lanes: Lanes
  readonly #key: LaneKey
  readonly #link: EngineLink
  readonly #request: IncomingMessage
  readonly #body: BodyCommand
  #leftBytes: number
  #isOver = false

  constructor(lanes: Lanes, key: LaneKey, request: IncomingMessage, body: BodyCommand) {
    this.#lanes = lanes
    this.#key = key
    this.#link = lanes.lend(key)
    this.#request = request
    this.#body = body
    this.#leftBytes = body.bodyBytes
  }

  start(reader: UploadReader): void {
    const { before, behind, bodyBytes } = this.#body
    const count = before.length + 1 + behind.length
    const head = Buffer.concat([
      Buffer.from(`*${count}\r\n`),
      ...before.map(encodeBulk),
      Buffer.from(`$${bodyBytes}\r\n`),
    ])
    const sink = new CollectedReplies(
      1,
      (reply) => {
        if (this.#end(this.#leftBytes === 0 ? 'clean' : 'spoilt')) reader.onReply(reply)
      },
      (error) => {
        if (this.#end('spoilt')) reader.onLost(error)
      },
    )
    this.#link.send(sink, head, 0, head.length, 1)
    this.#request.on('data', this.#onData)
    // This also comes behind a whole body.
    this.#request.on('close', () => this.#leftBytes > 0 && this.#end('spoilt'))
  }

  readonly #onData = (piece: Buffer): void => {
    if (this.#isOver) return
    this.#leftBytes -= piece.length
    this.#link.sendStreamed(piece, 0, piece.length)
    if (this.#leftBytes === 0) this.#sendRest()
    else if (this.#link.isCongested) this.#waitForDrain()
  }

  #sendRest(): void {
    const rest = Buffer.concat([LINE_END, ...this.#body.behind.map(encodeBulk)])
    this.#link.sendStreamed(rest, 0, rest.length)
  }

  #waitForDrain(): void {
    this.#request.pause()
    this.#link.onceWritable(() => this.#request.resume())
  }

  /** The reply has come, or never will, or the client has gone. @returns false when that is so already. */
  #end(link: 'clean' | 'spoilt'): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#request.off('data', this.#onData)
    if (link === 'clean') this.#lanes.giveBack(this.#key, this.#link)
    else this.#lanes.discard(this.#key, this.#link)
    return true
  }
}
