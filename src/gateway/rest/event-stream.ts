import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock, Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { isAllowed } from '../allow-list.js'
import { DedicatedStream } from '../engine/dedicated-stream.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import { errorText } from '../error-text.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { MonitorView } from '../monitor/monitors.js'
import { encodeTextCommand } from '../resp/encode.js'
import type { HttpAnswers } from './http-answers.js'
import { pathCommand, type Target } from './parse-commands.js'

const EVENT_PATH = /^\/(?:p?subscribe|(monitor))(?:\/|$)/i
/** Events that a client may leave unread before the engine has to wait. */
const SLOW_READER_BYTES = 1024 * 1024
const NO_BODY = Buffer.alloc(0)
/**
 * A silent stream gets a comment this often: proxies do not take it for dead, and a client that is gone without a word
 * is found out.
 */
const HEARTBEAT_MS = 30_000
const HEARTBEAT = ':\n\n'

/** Reads `/subscribe/{channel}…`, `/psubscribe/{pattern}…` or `/monitor`; `undefined` for any other path. */
export function eventCommand(target: Target): readonly string[] | undefined {
  const found = EVENT_PATH.exec(target.path)
  if (!found) return undefined
  const args = pathCommand({ path: target.path, query: '' }, NO_BODY).map(String)
  const expectsChannels = found[1] === undefined
  return expectsChannels === args.length > 1 ? args : undefined
}

/** The HTTP exchange that events are sent on. */
export interface EventExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly answers: HttpAnswers
  /** Where the stream and its bytes are counted. */
  readonly guard: DatabaseGuard
  /** Where the client is. */
  readonly address: string | undefined
  readonly clock: Clock
  /** Told of bytes that the client may not read. */
  readonly written: (bytes: number) => void
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
  #heartbeat: Timer | undefined
  #view: MonitorView | undefined
  #isClosed = false

  constructor(lanes: Lanes, key: LaneKey, exchange: EventExchange) {
    this.#lanes = lanes
    this.#key = key
    this.#exchange = exchange
    this.#link = lanes.lend(key)
    exchange.guard.meter.holds++
    exchange.guard.countConnection(1)
  }

  /** Subscribes and passes on what comes, until `close`. */
  open(command: readonly string[]): void {
    const { response } = this.#exchange
    const toEngine = (bytes: Buffer): void => this.#link.sendStreamed(bytes, 0, bytes.length)
    const stream = new DedicatedStream({ toClient: (frame) => this.#onFrame(frame), toEngine }, 2)
    if (command[0]?.toUpperCase() === 'MONITOR') this.#watch(stream)
    this.#link.streamTo((chunk) => stream.push(chunk))
    this.#link.onLost = () => this.#onLost()
    response.on('drain', () => this.#link.resumeReading())
    // Writing behind the end is an event of its own, which would end the process.
    response.on('error', () => this.close())
    const bytes = Buffer.from(encodeTextCommand(command))
    this.#link.sendStreamed(bytes, 0, bytes.length)
  }

  #watch(stream: DedicatedStream): void {
    const { guard, clock } = this.#exchange
    this.#view = guard.monitors.watch({ now: () => clock.now(), tell: (line) => stream.insert(line) })
    stream.filterWith(this.#view.filter)
  }

  /** The database has changed: ends the stream of a client whose address is no longer allowed. */
  recheck(): void {
    const { guard, address } = this.#exchange
    if (!isAllowed(guard.database, address)) this.close()
  }

  /** Ends the subscription and the answer. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#view?.end()
    this.#heartbeat?.cancel()
    this.#exchange.guard.meter.holds--
    this.#exchange.guard.countConnection(-1)
    this.#link.onLost = () => {}
    this.#lanes.discard(this.#key, this.#link)
    this.#exchange.response.end()
  }

  #onFrame(frame: Buffer): void {
    if (this.#isClosed) return
    const { request, response, answers } = this.#exchange
    const { kind, text } = eventText(frame)
    if (kind === 'event') {
      if (!response.headersSent) answers.beginEvents(request, response)
      this.#write(`data: ${text}\n\n`)
      if (response.writableLength > SLOW_READER_BYTES) this.#link.pauseReading()
      return
    }
    if (!response.headersSent) answers.error(request, response, 400, text)
    this.close()
  }

  #write(text: string): void {
    const { response, guard, clock } = this.#exchange
    guard.meter.bytesOut += Buffer.byteLength(text)
    response.write(text)
    this.#exchange.written(text.length)
    this.#heartbeat?.cancel()
    this.#heartbeat = clock.after(HEARTBEAT_MS, () => this.#write(HEARTBEAT))
  }

  #onLost(): void {
    const { request, response, answers } = this.#exchange
    const error = new HomeportError('engine_unavailable', {})
    if (!response.headersSent) answers.error(request, response, error.status, errorText(error))
    this.close()
  }
}

/** What a frame of a stream is to its client: the text of an event, or of the error that ends it. */
interface EventText {
  readonly kind: 'event' | 'error'
  readonly text: string
}

const LF = 10
const MINUS = 0x2d
const PLUS = 0x2b
const DOLLAR = 0x24
const STAR = 0x2a

/**
 * Reads a frame of a subscription or of MONITOR. The fields of a list are joined by commas; what is not a list is a line
 * of MONITOR. An event has no place for line breaks. Payloads are taken as they are: a message may have many megabytes.
 */
function eventText(frame: Buffer): EventText {
  const lineEnd = frame.indexOf(LF)
  const line = frame.toString('utf8', 1, lineEnd - 1)
  switch (frame[0]) {
    case MINUS:
      return { kind: 'error', text: line }
    case PLUS:
      return { kind: 'event', text: line === 'OK' ? '"OK"' : line }
    case STAR:
      return {
        kind: 'event',
        text: fieldsOf(frame, lineEnd + 1, Number(line))
          .join(',')
          .replace(/[\r\n]+/g, ' '),
      }
    default:
      return { kind: 'event', text: line }
  }
}

/** The fields of a list, of which none is a list itself. */
function fieldsOf(frame: Buffer, start: number, count: number): readonly string[] {
  const fields: string[] = []
  for (let at = start; fields.length < count && at < frame.length; ) {
    const lineEnd = frame.indexOf(LF, at)
    const line = frame.toString('utf8', at + 1, lineEnd - 1)
    const isBulk = frame[at] === DOLLAR
    at = lineEnd + 1
    if (!isBulk) fields.push(line)
    else if (line.startsWith('-')) fields.push('')
    else {
      fields.push(frame.toString('utf8', at, at + Number(line)))
      at += Number(line) + 2
    }
  }
  return fields
}
