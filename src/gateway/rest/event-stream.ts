import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Clock, runInTurn, type Timer } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { onResponseOver } from '../../http/index.js'
import { isAllowed } from '../allow-list.js'
import { guarded } from '../client/guarded.js'
import type { GatewayLogger } from '../deps.js'
import { DedicatedStream } from '../engine/dedicated-stream.js'
import type { EngineLink } from '../engine/engine-link.js'
import type { LaneKey, Lanes } from '../engine/lanes.js'
import { errorText } from '../error-text.js'
import type { DatabaseGuard } from '../limits/database-guard.js'
import type { MonitorView } from '../monitor/monitors.js'
import { encodeTextCommand } from '../resp/encode.js'
import type { LentBytes } from '../resp/lent-memory.js'
import { type EventSink, EventText } from './event-text.js'
import type { Exchange } from './exchange.js'
import type { HttpAnswers } from './http-answers.js'
import { pathCommand, type Target } from './parse-commands.js'
import type { TokenGrant } from './token-grants.js'

const EVENT_PATH = /^\/(?:p?subscribe|(monitor))(?:\/|$)/i
/** Above this number of unread bytes, the gateway stops reading from the engine. */
const SLOW_READER_BYTES = 1024 * 1024
const NO_BODY = Buffer.alloc(0)
/**
 * Interval of the comments in a silent stream. They keep proxies from closing it, and detect a client that has disappeared
 * without closing its connection.
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
interface EventExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly answers: HttpAnswers
  /** Counts the stream and its bytes. */
  readonly guard: DatabaseGuard
  /** The client's address. */
  readonly address: string | undefined
  readonly clock: Clock
  readonly logger: Pick<GatewayLogger, 'error'>
  /** Called with the number of bytes that were written, which the client may leave unread. */
  readonly written: (bytes: number) => void
}

/** The collaborators of `openEvents`. */
interface EventsDeps {
  readonly lanes: Lanes
  /** The open event streams. */
  readonly streams: Set<EventStream>
}

/** Opens an event stream on an exchange, and closes it when its client leaves. */
export function openEvents(
  exchange: Exchange,
  { key, guard }: TokenGrant,
  { lanes, streams }: EventsDeps,
  command: readonly string[],
): void {
  const { request, response, address } = exchange
  // A client may disconnect while it waits for its database. No later event would report that.
  if (request.socket.destroyed) return
  const { answers, clock, logger } = exchange.deps
  const written = (bytes: number): void => exchange.countUnread(bytes)
  const stream = new EventStream(lanes, key, { request, response, answers, guard, clock, logger, address, written })
  streams.add(stream)
  onResponseOver(request, response, () => {
    streams.delete(stream)
    stream.close()
  })
  stream.open(command)
}

/**
 * Sends messages of the engine as server-sent events (reference redis 4.5), on a dedicated lane, until the client
 * disconnects or the engine is lost. If the engine refuses the command, the answer is an ordinary error.
 */
export class EventStream implements EventSink {
  readonly #lanes: Lanes
  readonly #key: LaneKey
  readonly #exchange: EventExchange
  readonly #link: EngineLink
  readonly #text = new EventText(this)
  #unsent = ''
  #heartbeat: Timer | undefined
  #view: MonitorView | undefined
  #isClosed = false
  /** Chunks of the engine that wait for a turn of the event loop. */
  #waiting = 0

  constructor(lanes: Lanes, key: LaneKey, exchange: EventExchange) {
    this.#lanes = lanes
    this.#key = key
    this.#exchange = exchange
    this.#link = lanes.lend(key)
    exchange.guard.meter.holds++
    exchange.guard.countConnection(1)
  }

  /** Sends the command and passes on the engine's messages, until `close`. */
  open(command: readonly string[]): void {
    const { response } = this.#exchange
    if (command[0]?.toUpperCase() === 'MONITOR') this.#watch()
    else this.#link.streamTo((chunk) => this.#passOnInTurn(chunk))
    this.#link.onLost = () => this.#onLost()
    response.on('drain', () => this.#readOn())
    // Node emits `error` for a write after the end; without a listener that would end the process.
    response.on('error', () => this.close())
    const bytes = Buffer.from(encodeTextCommand(command))
    this.#link.sendStreamed(bytes, 0, bytes.length)
  }

  #watch(): void {
    const { guard, clock } = this.#exchange
    const stream = new DedicatedStream(this.#link, 2, (line) => this.#passOn(line))
    this.#link.streamTo((chunk) => stream.push(chunk))
    this.#view = guard.monitors.watch({ now: () => clock.now(), show: (line) => stream.insert(line) })
    stream.filterWith(this.#view.filter)
  }

  /** Call it when the database has changed: closes the stream if the client's address is no longer allowed. */
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

  /**
   * Passes a chunk on in this turn of the event loop, or in a later one if this one is spent: hundreds of subscribers may
   * get a message at once. The link reads nothing more until then, because the chunk is in the memory that it reads into.
   */
  #passOnInTurn(chunk: LentBytes): void {
    this.#waiting++
    let isLate = false
    runInTurn(
      guarded({ fault: (error) => this.#fault(error) }, () => {
        this.#waiting--
        this.#passOn(chunk)
        if (isLate) this.#readOn()
      }),
    )
    if (this.#waiting === 0) return
    isLate = true
    this.#link.pauseReading()
  }

  #readOn(): void {
    const isSlow = this.#exchange.response.writableLength > SLOW_READER_BYTES
    if (!this.#isClosed && this.#waiting === 0 && !isSlow) this.#link.resumeReading()
  }

  #fault(error: unknown): void {
    this.#exchange.logger.error('gateway_reply_fault', { error })
    this.close()
  }

  #passOn(chunk: Buffer): void {
    if (this.#isClosed) return
    this.#text.push(chunk)
    this.#flush()
    if (this.#exchange.response.writableLength > SLOW_READER_BYTES) this.#link.pauseReading()
  }

  /** Adds text of the events. The text of one chunk of the engine is sent together. */
  write(text: string): void {
    this.#unsent += text
  }

  #flush(): void {
    const text = this.#unsent
    this.#unsent = ''
    if (text !== '') this.#send(text)
  }

  #send(text: string): void {
    const { request, response, answers, guard, clock } = this.#exchange
    if (this.#isClosed) return
    if (!response.headersSent) answers.beginEvents(request, response)
    guard.meter.bytesOut += Buffer.byteLength(text)
    response.write(text)
    this.#exchange.written(text.length)
    this.#heartbeat?.cancel()
    this.#heartbeat = clock.after(HEARTBEAT_MS, () => this.#beat())
  }

  #beat(): void {
    // A comment must not be written into the middle of an event.
    if (!this.#text.isMidEvent) this.#send(HEARTBEAT)
  }

  /** Called when the engine has refused the command. */
  refuse(error: string): void {
    const { request, response, answers } = this.#exchange
    this.#flush()
    if (!response.headersSent) answers.error(request, response, 400, error)
    this.close()
  }

  #onLost(): void {
    const { request, response, answers } = this.#exchange
    const error = new HomeportError('engine_unavailable', {})
    if (!response.headersSent) answers.error(request, response, error.status, errorText(error))
    this.close()
  }
}
