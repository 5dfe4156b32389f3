import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { isTurnSpent, scheduleSlice } from '../base/index.js'

/** Requests of a connection without an answer. The next ones are not read. */
const MOST_UNANSWERED = 32
/** They are read again when this few are left: a piece for each answer would cost more. */
const FEW_UNANSWERED = 16
/** Heads of requests that Node parses in one go, before anything else is looked at. */
const MOST_HEADS = 16
/** Bytes that come at once and may take milliseconds, whatever they are. */
const MUCH_BYTES = 16_384
/** Less waits only in a turn that lasts this long, for a thousand connections that bring a few requests each. */
const STRETCH_OF_LITTLE_MS = 50
const HEAD_END = '\r\n\r\n'

const PACE = Symbol('pace')

interface PacedStream extends Duplex {
  [PACE]?: PacedConnection
}

/**
 * Paces the requests of each connection that Node's HTTP server reads. Node parses 64 KiB at a time, begins all requests in
 * it, thousands if they are short, and reads on while they are answered. So one client could block the event loop for seconds,
 * and requests hold a hundred times the memory of the bytes they come in.
 *
 * Here Node's parser gets pieces that end behind a head. Bytes that have to wait go back into the connection, which is paused, so
 * that the client stops sending.
 */
export function paceRequests(server: Server): void {
  // Node has added its listeners by then.
  server.on('connection', (connection: PacedStream) => {
    connection[PACE] ??= new PacedConnection(connection)
  })
  const count = (request: IncomingMessage, response: ServerResponse): void => {
    const { [PACE]: paced }: PacedStream = request.socket
    if (!paced) return
    paced.began()
    response.once('close', () => paced.answered())
  }
  server.prependListener('request', count)
  // Where nobody listens, Node goes on by itself.
  if (server.listenerCount('checkContinue') > 0) server.prependListener('checkContinue', count)
}

/**
 * What a connection waits for.
 *
 * - nothing: Node gets what comes. It may pause the connection too, of a client that reads no answers or whose body nobody reads.
 * - answers: too many requests have none.
 * - turn: others are served first.
 */
type Awaited = 'nothing' | 'answers' | 'turn'

class PacedConnection {
  readonly #connection: Duplex
  readonly #parse: (bytes: Buffer) => void
  #unanswered = 0
  #awaited: Awaited = 'nothing'
  /** Whether what comes is the rest of several pieces, or long. */
  #isMuch = false

  constructor(connection: Duplex) {
    this.#connection = connection
    const listeners = connection.listeners('data')
    this.#parse = (bytes) => {
      for (const listener of listeners) listener.call(connection, bytes)
    }
    connection.removeAllListeners('data')
    // As soon as somebody else listens, Node no longer reads below the socket.
    connection.on('data', (bytes: Buffer) => this.#take(bytes))
    // Node resumes it for everyone who reads the body of a request.
    connection.on('resume', () => void (this.#awaited !== 'nothing' && connection.pause()))
  }

  /** A request has begun. */
  began(): void {
    this.#unanswered++
  }

  /** A request is answered. */
  answered(): void {
    this.#unanswered--
    if (this.#awaited === 'answers' && this.#unanswered <= FEW_UNANSWERED) this.#goOn()
  }

  #take(bytes: Buffer): void {
    const connection = this.#connection
    this.#isMuch ||= bytes.length >= MUCH_BYTES
    for (let begin = 0; begin < bytes.length && !connection.destroyed; this.#isMuch = true) {
      if (this.#mustWait()) return void connection.unshift(bytes.subarray(begin))
      const end = endOfHeads(bytes, begin, Math.min(MOST_HEADS, MOST_UNANSWERED - this.#unanswered))
      this.#parse(bytes.subarray(begin, end))
      begin = end
    }
    this.#isMuch = false
  }

  #mustWait(): boolean {
    const connection = this.#connection
    // Node must not be given more while it has paused the connection, and resumes it by itself.
    if (connection.isPaused()) return true
    if (this.#awaited === 'nothing') this.#awaited = this.#firstAwaited()
    if (this.#awaited === 'nothing') return false
    connection.pause()
    return true
  }

  #firstAwaited(): Awaited {
    if (this.#unanswered >= MOST_UNANSWERED) return 'answers'
    if (!isTurnSpent(this.#isMuch ? undefined : STRETCH_OF_LITTLE_MS)) return 'nothing'
    scheduleSlice(() => this.#goOn())
    return 'turn'
  }

  #goOn(): void {
    this.#awaited = 'nothing'
    this.#connection.resume()
  }
}

/** The index behind this many ends of heads, or that of the end of the bytes. */
function endOfHeads(bytes: Buffer, begin: number, heads: number): number {
  let end = begin
  for (let found = 0; found < heads; found++) {
    const at = bytes.indexOf(HEAD_END, end, 'latin1')
    if (at < 0) return bytes.length
    end = at + HEAD_END.length
  }
  return end
}
