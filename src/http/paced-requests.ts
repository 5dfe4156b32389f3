import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { isTurnSpent, scheduleSlice } from '../base/index.js'

/** Reading from a connection stops when it has this many unanswered requests. */
const MAX_UNANSWERED = 32
/** Reading resumes when this few are left. To resume after each answer would cost more. */
const FEW_UNANSWERED = 16
/** Request heads that Node parses in one go, before the limits are checked again. */
const MAX_HEADS = 16
/** From this size on, bytes that arrive at once may take milliseconds, whatever they contain. */
const MUCH_BYTES = 16_384
/** Fewer bytes wait only in a turn that has lasted this long: a thousand connections may bring a few requests each. */
const STRETCH_OF_LITTLE_MS = 50
const HEAD_END = '\r\n\r\n'

const PACE = Symbol('pace')

interface PacedStream extends Duplex {
  [PACE]?: PacedConnection
}

/**
 * Paces the requests of each connection that Node's HTTP server reads. Node parses 64 KiB at a time and begins all requests
 * in it (thousands, if they are short), and it reads on before they are answered. So one client could block the event loop
 * for seconds, and its requests would take a hundred times the memory of their bytes.
 *
 * Here Node's parser gets pieces that end after a head. Bytes that have to wait are put back into the connection, which is
 * paused, so that the client stops sending.
 */
export function paceRequests(server: Server): void {
  // Runs after Node's own listener, which has added its `data` listener to the connection.
  server.on('connection', (connection: PacedStream) => {
    connection[PACE] ??= new PacedConnection(connection)
  })
  const count = (request: IncomingMessage, response: ServerResponse): void => {
    const { [PACE]: paced }: PacedStream = request.socket
    if (!paced) return
    paced.began(request, response)
    response.once('close', () => paced.answered())
  }
  server.prependListener('request', count)
  // Without a listener, Node continues by itself and emits `request`.
  if (server.listenerCount('checkContinue') > 0) server.prependListener('checkContinue', count)
}

/**
 * Whether an error may be written to a connection: the client takes it for the answer to the bytes that cannot be read.
 * False when an answer has begun, or when the client would take it for the answer to an earlier request.
 * @param connection of a server with `paceRequests`
 */
export function mayRefuse({ [PACE]: paced }: PacedStream): boolean {
  return paced?.mayRefuse ?? true
}

/**
 * What a connection waits for.
 *
 * - nothing: Node gets the bytes as they arrive. Node may also pause the connection, if its client reads no answers or
 *   nobody reads the body of its request.
 * - answers: too many requests are unanswered.
 * - turn: other connections are served first.
 */
type Awaited = 'nothing' | 'answers' | 'turn'

class PacedConnection {
  readonly #connection: Duplex
  readonly #parse: (bytes: Buffer) => void
  #unanswered = 0
  #newest: { readonly request: IncomingMessage; readonly response: ServerResponse } | undefined
  #awaited: Awaited = 'nothing'
  /** Whether the arriving bytes are many, or the rest of bytes that were cut into pieces. */
  #isMuch = false

  constructor(connection: Duplex) {
    this.#connection = connection
    const listeners = connection.listeners('data')
    this.#parse = (bytes) => {
      for (const listener of listeners) listener.call(connection, bytes)
    }
    connection.removeAllListeners('data')
    // With a foreign listener, Node's parser no longer reads below the socket.
    connection.on('data', (bytes: Buffer) => this.#take(bytes))
    // Node resumes the connection whenever the body of a request is read.
    connection.on('resume', () => void (this.#awaited !== 'nothing' && connection.pause()))
  }

  /** A request has begun. */
  began(request: IncomingMessage, response: ServerResponse): void {
    this.#unanswered++
    this.#newest = { request, response }
  }

  /** See `mayRefuse`. What cannot be read belongs to the newest request if its body is incomplete, or to the next one. */
  get mayRefuse(): boolean {
    const newest = this.#newest
    if (!newest || newest.request.complete) return this.#unanswered === 0
    return this.#unanswered === 1 && !newest.response.headersSent
  }

  /** A request is answered. */
  answered(): void {
    this.#unanswered--
    if (this.#awaited === 'answers' && this.#unanswered <= FEW_UNANSWERED) this.#resume()
  }

  #take(bytes: Buffer): void {
    const connection = this.#connection
    this.#isMuch ||= bytes.length >= MUCH_BYTES
    for (let begin = 0; begin < bytes.length && !connection.destroyed; this.#isMuch = true) {
      if (this.#mustWait()) return void connection.unshift(bytes.subarray(begin))
      const end = endOfHeads(bytes, begin, Math.min(MAX_HEADS, MAX_UNANSWERED - this.#unanswered))
      this.#parse(bytes.subarray(begin, end))
      begin = end
    }
    this.#isMuch = false
  }

  #mustWait(): boolean {
    const connection = this.#connection
    // Node has paused the connection, must get no more bytes, and resumes it by itself.
    if (connection.isPaused()) return true
    if (this.#awaited === 'nothing') this.#awaited = this.#firstAwaited()
    if (this.#awaited === 'nothing') return false
    connection.pause()
    return true
  }

  #firstAwaited(): Awaited {
    if (this.#unanswered >= MAX_UNANSWERED) return 'answers'
    if (!isTurnSpent(this.#isMuch ? undefined : STRETCH_OF_LITTLE_MS)) return 'nothing'
    scheduleSlice(() => this.#resume())
    return 'turn'
  }

  #resume(): void {
    this.#awaited = 'nothing'
    this.#connection.resume()
  }
}

/** The index after this many heads; the end of the bytes if there are fewer. */
function endOfHeads(bytes: Buffer, begin: number, heads: number): number {
  let end = begin
  for (let found = 0; found < heads; found++) {
    const at = bytes.indexOf(HEAD_END, end, 'latin1')
    if (at < 0) return bytes.length
    end = at + HEAD_END.length
  }
  return end
}
