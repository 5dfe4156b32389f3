import type { IncomingMessage, ServerResponse } from 'node:http'
import { HomeportError } from '../../contract/errors.js'
import type { DatabaseMeter } from '../../telemetry/index.js'
import { errorText } from '../error-text.js'
import type { EngineLink } from '../lane/engine-link.js'
import type { LaneKey, Lanes } from '../lane/lanes.js'
import { hideMonitorSource, PinnedStream } from '../lane/pinned-stream.js'
import { encodeTextCommand } from '../resp/encode.js'
import type { HttpAnswers } from './http-answers.js'
import { pathCommand, type Target } from './path-command.js'
import { ReplyReader } from './reply-reader.js'

const EVENT_COMMANDS: ReadonlySet<string> = new Set(['SUBSCRIBE', 'PSUBSCRIBE', 'MONITOR'])
/** Events that a client may leave unread before the engine has to wait. */
const SLOW_READER_BYTES = 1024 * 1024
const NO_BODY = Buffer.alloc(0)

/** Reads `/subscribe/{channel}…`, `/psubscribe/{pattern}…` or `/monitor`; `undefined` for any other path. */
export function eventCommand(target: Target): readonly string[] | undefined {
  const [, first = ''] = target.path.split('/', 2)
  if (!EVENT_COMMANDS.has(first.toUpperCase())) return undefined
  const args = pathCommand({ path: target.path, query: '' }, NO_BODY).map(String)
  const expectsChannels = first.toUpperCase() !== 'MONITOR'
  return expectsChannels === args.length > 1 ? args : undefined
}

/** The HTTP exchange that events are sent on. */
export interface EventExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly answers: HttpAnswers
  /** Where the stream and its bytes are counted. */
  readonly meter: DatabaseMeter
}

/**
 * Messages of the engine as server-sent events (reference redis 4.5), on a lane of their own, until the client or the
 * engine goes. A refusal by the engine is answered as an ordinary error.
 */
export class EventStream {
  readonly #lanes: Lanes
  readonly #key: LaneKey
  readonly #exchange: EventExchange
  readonly #link: EngineLink
  #isClosed = false

  constructor(lanes: Lanes, key: LaneKey, exchange: EventExchange) {
    this.#lanes = lanes
    this.#key = key
    this.#exchange = exchange
    this.#link = lanes.lend(key)
    exchange.meter.holds++
  }

  /** Subscribes and passes on what comes. */
  open(command: readonly string[]): void {
    const { response } = this.#exchange
    const stream = new PinnedStream({ toClient: (frame) => this.#onFrame(frame), toEngine: () => {} })
    stream.filterWith(hideMonitorSource)
    this.#link.streamTo((chunk) => stream.push(chunk))
    this.#link.onLost = () => this.#onLost()
    response.on('drain', () => this.#link.resumeReading())
    response.on('close', () => this.close())
    const bytes = Buffer.from(encodeTextCommand(command))
    this.#link.sendStreamed(bytes, 0, bytes.length)
  }

  /** Ends the subscription and the answer. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#exchange.meter.holds--
    this.#link.onLost = () => {}
    this.#lanes.discard(this.#key, this.#link)
    this.#exchange.response.end()
  }

  #onFrame(frame: Buffer): void {
    const { request, response, answers, meter } = this.#exchange
    const reply = new ReplyReader(frame, 'plain').next()
    if (!('error' in reply)) {
      if (!response.headersSent) answers.beginEvents(request, response)
      const event = `data: ${eventText(reply.json)}\n\n`
      meter.bytesOut += event.length
      response.write(event)
      if (response.writableLength > SLOW_READER_BYTES) this.#link.pauseReading()
      return
    }
    if (!response.headersSent) answers.error(request, response, 400, reply.error)
    this.close()
  }

  #onLost(): void {
    const { request, response, answers } = this.#exchange
    const error = new HomeportError('engine_unavailable', {})
    if (!response.headersSent) answers.error(request, response, error.status, errorText(error))
    this.close()
  }
}

/** Fields are joined by commas; what is not a list is a line of MONITOR. An event has no place for line breaks. */
function eventText(json: string): string {
  const value: unknown = JSON.parse(json)
  if (Array.isArray(value)) return value.join(',').replace(/[\r\n]+/g, ' ')
  return value === 'OK' ? '"OK"' : String(value)
}
