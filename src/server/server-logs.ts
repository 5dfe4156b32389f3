/**
 * `GET /v2/server/logs`: the operator reads and follows the log of the running server. Lines are kept in memory once, in
 * `RecentLines`. A reader has only a position in it, so a slow reader costs nothing and is shown how many lines it missed.
 */
import { type Clock, type Service, tryParseJson, yieldToEventLoop } from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { EVENT_LEVELS } from '../contract/logs/declaration.js'
import { getServerLogs, type LogLine, type LogsQuery } from '../contract/server/logs.js'
import { type Call, EventStream, type Reply, type Route, route, wantsEvents } from '../http/index.js'
import type { RecentLines } from '../telemetry/index.js'

/** Lines sent between yields to the event loop. */
const LINES_AT_ONCE = 200
const DEFAULT_COUNT = 100
const MAX_READERS = 20

/** Collaborators of `ServerLogs`. */
export interface ServerLogsDeps {
  readonly lines: RecentLines
  readonly clock: Clock
  readonly isOperator: (accountId: string) => boolean
  /** Distinguishes the lines of this process from the lines of the previous process. */
  readonly startedAt: number
}

type Filter = (line: LogLine) => boolean

/** Serves the log. As a service it ends its streams when the server stops. */
export class ServerLogs implements Service {
  readonly name = 'log readers'
  readonly #deps: ServerLogsDeps
  readonly #readers = new Set<EventStream>()
  #isStopped = false

  constructor(deps: ServerLogsDeps) {
    this.#deps = deps
  }

  /** The route of the log. */
  get route(): Route {
    return route(getServerLogs, async (call) => {
      if (!this.#deps.isOperator(call.caller.accountId)) throw new HomeportError('operator_only', {})
      return wantsEvents(call)
        ? this.#follow(call, call.query)
        : { lines: this.#newest(call.query).map(({ line }) => line) }
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
    if (this.#readers.size >= MAX_READERS) throw new HomeportError('too_many_log_readers', { most: MAX_READERS })
    const { clock, lines } = this.#deps
    const stream = new EventStream(clock, call)
    const unwatch = lines.watch(() => stream.notify())
    this.#readers.add(stream)
    if (this.#isStopped) stream.end()
    return stream.reply(this.#events(stream, this.#positionOf(call.headers['last-event-id']), query), () => {
      unwatch()
      this.#readers.delete(stream)
    })
  }

  /** @param resumed the number of the next line for a reader that reconnects. */
  async *#events(stream: EventStream, resumed: number | undefined, query: LogsQuery): AsyncGenerator<string> {
    const { lines } = this.#deps
    const matches = filterOf(query)
    let position = resumed ?? lines.next
    if (resumed === undefined) for (const { number, line } of this.#newest(query)) yield this.#event(number, line)
    yield `event: following\nid: ${this.#idOf(position)}\ndata: {}\n\n`
    for (let comment: string | undefined = ''; comment !== undefined; comment = await stream.next()) {
      let text = comment
      if (position < lines.first) {
        text += `event: missed\ndata: {"missed":${lines.first - position}}\n\n`
        position = lines.first
      }
      for (let sent = 0; position < lines.next && sent < LINES_AT_ONCE; sent++, position++) {
        const line = parsed(lines.at(position)?.json)
        if (line && matches(line)) text += this.#event(position, line)
      }
      if (text !== '') yield text
      if (position === lines.next) continue
      stream.notify()
      await yieldToEventLoop()
    }
  }

  #event(number: number, line: LogLine): string {
    return `event: line\nid: ${this.#idOf(number + 1)}\ndata: ${JSON.stringify(line)}\n\n`
  }

  /** Names the position of a reader whose next line has this number. */
  #idOf(number: number): string {
    return `${this.#deps.startedAt}-${number}`
  }

  /**
   * Number of the next line of a reader that reconnects; the oldest line if it read from an earlier process. `undefined`
   * for a new reader.
   */
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
