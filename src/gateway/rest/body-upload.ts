import type { IncomingMessage } from 'node:http'
import { findCommandByName, type ServedCommand } from '../commands/command-table.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import { CollectedReplies } from '../engine/reply-sink.js'
import { errorOfUnsent } from '../engine/unsent.js'
import { isUploadable } from '../limits/inspect.js'
import { type Argument, encodeBulk } from '../resp/encode.js'
import { pathCommand, type Target } from './parse-commands.js'

/** A body of this length or more is passed on while it arrives, bytes. */
const LARGE_BODY_BYTES = 1024 * 1024
/** Stands for the body while the path and the query are parsed. */
const BODY = Buffer.from('body')
const LINE_END = Buffer.from('\r\n')

/** A command whose last path argument is a large body (reference redis 4.1). */
export interface BodyCommand {
  readonly command: ServedCommand
  /** The arguments before the body, the command's name first. */
  readonly before: readonly [name: Argument, key: Argument, ...rest: Argument[]]
  readonly bodyBytes: number
  /** The arguments after the body. */
  readonly behind: readonly Argument[]
}

/**
 * Reads a request as a command that can run while its body arrives, because every limit can be checked without it.
 * Undefined for a body without a declared length, and for every other request.
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

/** Receives the outcome of an upload: `onReply` or `onLost`, or none of them if the client disconnects first. */
export interface UploadReader {
  /** Called when the engine is connected: from now on the body is read. */
  onBegin(): void
  onReply(reply: Buffer): void
  onLost(error: unknown): void
}

/**
 * Sends a command to the engine while its body arrives, on a dedicated lane: on a shared lane, a client that sends slowly
 * would block all others, and one that disconnects halfway would break the lane. It holds only bytes of the body that the
 * engine has not read yet. While there is no connection, the body stays unread, because another node may become the home.
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

  /** Starts the upload. Never rejects. */
  async start(reader: UploadReader): Promise<void> {
    // Node emits `close` also after a complete body.
    this.#request.on('close', () => this.#leftBytes > 0 && this.#end('broken'))
    try {
      await this.#link.greeting()
      if (!this.#isOver) this.#begin(reader)
    } catch (error) {
      if (this.#end('broken')) reader.onLost(error)
    }
  }

  #begin(reader: UploadReader): void {
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
        if (this.#end(this.#leftBytes === 0 ? 'reusable' : 'broken')) reader.onReply(reply)
      },
      (error) => {
        const isIncomplete = this.#leftBytes > 0
        if (this.#end('broken')) reader.onLost(isIncomplete ? errorOfUnsent(error) : error)
      },
    )
    this.#link.send(sink, head, 0, head.length, 1)
    this.#link.lastPartAtMs = performance.now()
    reader.onBegin()
    this.#request.on('data', this.#onData)
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#isOver) return
    this.#leftBytes -= chunk.length
    this.#link.sendStreamed(chunk, 0, chunk.length)
    this.#link.lastPartAtMs = performance.now()
    if (this.#leftBytes === 0) this.#sendRest()
    else if (this.#link.isCongested) this.#waitForDrain()
  }

  #sendRest(): void {
    const rest = Buffer.concat([LINE_END, ...this.#body.behind.map(encodeBulk)])
    this.#link.sendStreamed(rest, 0, rest.length)
    this.#link.lastPartAtMs = undefined
  }

  #waitForDrain(): void {
    this.#request.pause()
    this.#link.onceWritable(() => this.#request.resume())
  }

  /** Ends the upload: the reply has arrived or is lost, or the client has left. @returns false if it had already ended */
  #end(link: 'reusable' | 'broken'): boolean {
    if (this.#isOver) return false
    this.#isOver = true
    this.#request.off('data', this.#onData)
    if (link === 'reusable') this.#lanes.giveBack(this.#key, this.#link)
    else this.#lanes.discard(this.#key, this.#link)
    return true
  }
}
