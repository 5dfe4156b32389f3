/**
 * `GET /v2/server/logs`: the operator reads and follows the log of the running server. Lines are kept in memory once, in
 * `RecentLines`; a reader only has a position in it, so a slow one costs nothing and learns how many lines it has missed.
 */
import { Readable } from 'node:stream'
import type { Clock, Service, Timer } from '../base/index.js'
import { tryParseJson } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { EVENT_LEVELS } from '../contract/logs/declaration.js'
import { getServerLogs, type LogLine, type LogsQuery } from '../contract/server/logs.js'
import { type Call, type Reply, type Route, reply, route } from '../http/index.js'
import type { RecentLines } from '../telemetry/index.js'

/** Interval of comments that keep an idle stream open, and of checks of the credentials of its reader. */
const KEEPALIVE_MS = 15_000
/** Lines that are sent before others get their turn. */
const LINES_AT_ONCE = 200
const DEFAULT_COUNT = 100
const MOST_READERS = 20

/** Collaborators of `ServerLogs`. */
export interface ServerLogsDeps {
  readonly lines: RecentLines
  readonly clock: Clock
  readonly isOperator: (accountId: string) => boolean
  /** Distinguishes the lines of this process from those of the one before. */
  readonly startedAt: number
}

type Filter = (line: LogLine) => boolean

/** Serves the log. As a service it ends its streams when the server stops. */
export class ServerLogs implements Service {
  readonly name = 'log readers'
  readonly #deps: ServerLogsDeps
  readonly #readers = new Set<Reader>()
  #isStopped = false

  constructor(deps: ServerLogsDeps) {
    this.#deps = deps
  }

  /** The route of the log. */
  get route(): Route {
    return route(getServerLogs, async (call) => {
      if (!this.#deps.isOperator(call.caller.accountId)) throw new HomeportError('operator_only', {})
      const isStream = call.headers.accept?.includes('text/event-stream') ?? false
      return isStream ? this.#follow(call, call.query) : { lines: this.#newest(call.query).map(({ line }) => line) }
    })
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {
    this.#isStopped = true
    for (const reader of this.#readers) reader.end()
  }

  /** The newest matching lines, oldest first. */
  #newest({ count = DEFAULT_COUNT, ...query }: LogsQuery): { number: number; line: LogLine }[] {
    const { lines } = this.#deps
    const matches = filterOf(query)
    const found: { number: number; line: LogLine }[] = []
    for (let number = lines.next - 1; number >= lines.first && found.length < count; number--) {
      const line = parsed(lines.at(number)?.json)
      if (line && matches(line)) found.push({ number, line })
    }
    return found.reverse()
  }

  #follow(call: Pick<Call, 'headers' | 'signal' | 'isStillAllowed'>, query: LogsQuery): Reply {
    if (this.#readers.size >= MOST_READERS) throw new HomeportError('too_many_log_readers', { most: MOST_READERS })
    const headers = {
      'content-type': 'text/event-stream; charset=utf-8',
      // nginx would buffer some kilobytes of events.
      'x-accel-buffering': 'no',
      // A stopping server must not wait for this connection.
      connection: 'close',
    }
    const reader = new Reader(this.#deps, call.signal)
    this.#readers.add(reader)
    if (this.#isStopped) reader.end()
    // Also called for a stream that was never read.
    const stream = Readable.from(this.#events(reader, call, query)).once('close', () => {
      reader.end()
      this.#readers.delete(reader)
    })
    return reply(200, stream, headers)
  }

  async *#events(
    reader: Reader,
    call: Pick<Call, 'headers' | 'isStillAllowed'>,
    query: LogsQuery,
  ): AsyncGenerator<string> {
    const { lines } = this.#deps
    const matches = filterOf(query)
    const resumed = this.#positionOf(call.headers['last-event-id'])
    let position = resumed ?? lines.next
    if (resumed === undefined) for (const { number, line } of this.#newest(query)) yield this.#event(number, line)
    yield `event: following\nid: ${this.#idOf(position)}\ndata: {}\n\n`
    while (!reader.isEnded) {
      if (position < lines.first) {
        yield `event: missed\ndata: {"missed":${lines.first - position}}\n\n`
        position = lines.first
      }
      let text = ''
      for (let sent = 0; position < lines.next && sent < LINES_AT_ONCE; sent++, position++) {
        const line = parsed(lines.at(position)?.json)
        if (line && matches(line)) text += this.#event(position, line)
      }
      if (text !== '') yield text
      if (reader.takeDue()) {
        if (!(await call.isStillAllowed())) return
        yield ': still there\n\n'
      }
      if (position < lines.next) await reader.turn()
      else await reader.waitForLine()
    }
  }

  #event(number: number, line: LogLine): string {
    return `event: line\nid: ${this.#idOf(number + 1)}\ndata: ${JSON.stringify(line)}\n\n`
  }

  /** Names the position of a reader whose next line has this number. */
  #idOf(number: number): string {
    return `${this.#deps.startedAt}-${number}`
  }

  /** Where a reader that reconnects goes on: for one of an earlier process at the oldest line. `undefined`: a new reader. */
  #positionOf(id: string | string[] | undefined): number | undefined {
    const { lines, startedAt } = this.#deps
    const [, process, number] = /^(\d{1,16})-(\d{1,16})$/.exec(String(id ?? '')) ?? []
    if (number === undefined) return undefined
    return Number(process) === startedAt ? Math.min(Number(number), lines.next) : lines.first
  }
}

function filterOf({ level, event, request }: LogsQuery): Filter {
  const lowest = level === undefined ? 0 : EVENT_LEVELS.indexOf(level)
  return (line) =>
    EVENT_LEVELS.indexOf(line.level) >= lowest &&
    (event === undefined || line.event === event) &&
    (request === undefined || line.requestId === request)
}

/** The logger has written the line, so it has these fields. */
const parsed = (json: string | undefined): LogLine | undefined =>
  json === undefined ? undefined : (tryParseJson(json) as LogLine | undefined)

/** Waits on behalf of one stream: for lines, and for the time of the next check of its reader, whatever comes first. */
class Reader {
  readonly #deps: Pick<ServerLogsDeps, 'lines' | 'clock'>
  readonly #unwatch: () => void
  #wake: () => void = () => undefined
  #timer: Timer
  #hasLine = false
  #isDue = false
  #isEnded = false

  constructor(deps: Pick<ServerLogsDeps, 'lines' | 'clock'>, gone: AbortSignal) {
    this.#deps = deps
    this.#unwatch = deps.lines.watch(() => {
      this.#hasLine = true
      this.#wake()
    })
    this.#timer = this.#nextCheck()
    this.#isEnded = gone.aborted
    gone.addEventListener('abort', () => this.end(), { once: true })
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  end(): void {
    this.#isEnded = true
    this.#timer.cancel()
    this.#unwatch()
    this.#wake()
  }

  /** Lets others get their turn. */
  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve))
  }

  /** Whether a check is due, however many lines there are; true once for each. */
  takeDue(): boolean {
    if (!this.#isDue || this.#isEnded) return false
    this.#isDue = false
    this.#timer = this.#nextCheck()
    return true
  }

  #nextCheck(): Timer {
    return this.#deps.clock.after(KEEPALIVE_MS, () => {
      this.#isDue = true
      this.#wake()
    })
  }

  /** Resolves when there is a new line, when a check is due, and when the stream has ended. */
  async waitForLine(): Promise<void> {
    if (!this.#hasLine && !this.#isDue && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    this.#hasLine = false
  }
}
