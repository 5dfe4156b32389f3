import type { IncomingMessage } from 'node:http'
import { finished, type Readable } from 'node:stream'
import {
  type ClientMemoryBudget,
  type MemoryConsumer,
  systemClock,
  type Timer,
  yieldToEventLoop,
} from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'

const NOTHING = new Uint8Array()
/** So much is copied at a stretch, in about a millisecond. */
const TURN_BYTES = 1_048_576
/** So much is read at a stretch. */
const TURN_READ_BYTES = 262_144

/** How much of a body is read, and how long it may take to come. */
export interface BodyLimits {
  readonly bytes: number
  readonly ms: number
}

/** Where a body that comes in pieces is counted until it is whole, and as whose. */
export interface BodyAccount {
  readonly memory: ClientMemoryBudget
  readonly owner: string
}

/**
 * Reads the whole body of a request, into bytes of its own.
 * @throws HomeportError `body_too_large` as soon as that is known; the rest is still to be read or thrown away.
 * `invalid_request` when the connection or the time ends before the body does,
 * `memory_short` when too much would be held with it.
 */
export function readBody(request: IncomingMessage, limits: BodyLimits, account: BodyAccount): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const declaredBytes = declaredWithin(request, limits)
    process.nextTick(() => {
      const body = takeWhole(request, declaredBytes)
      if (body) resolve(body)
      else gather(request, limits, account).then((pieces) => resolve(joinPieces(pieces)), reject)
    })
  })
}

/** How long a body says that it is, 0 when it does not. @throws HomeportError `body_too_large`. */
function declaredWithin(request: IncomingMessage, limits: BodyLimits): number {
  const bytes = Number(request.headers['content-length'] ?? 0)
  if (bytes > limits.bytes) throw new HomeportError('body_too_large', { limitBytes: limits.bytes, bytes })
  return bytes
}

/**
 * A short body nearly always comes together with its head and has been parsed once the call has returned that told of
 * the head. Then it is there for the taking, without the events of a stream.
 */
function takeWhole(request: IncomingMessage, declaredBytes: number): Uint8Array | undefined {
  if (declaredBytes === 0) return undefined
  const body: unknown = request.read()
  if (!(body instanceof Buffer)) return undefined
  if (body.byteLength === declaredBytes) return joined([body], declaredBytes)
  request.unshift(body)
  return undefined
}

/** Reads a body that comes in pieces, or that tells its end by itself. */
function gather(request: IncomingMessage, limits: BodyLimits, account: BodyAccount): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => new Gathering(request, limits, account, { resolve, reject }))
}

/** Who waits for a body; one of the two is called. */
interface Waiting {
  readonly resolve: (pieces: readonly Buffer[]) => void
  readonly reject: (error: HomeportError) => void
}

/** What has come of a body so far. */
class Gathering implements MemoryConsumer {
  readonly owner: string
  heldBytes = 0
  readonly #request: IncomingMessage
  readonly #limitBytes: number
  readonly #memory: ClientMemoryBudget
  readonly #waiting: Waiting
  readonly #timer: Timer
  #pieces: Buffer[] = []
  /** What has come in the present turn of the event loop. */
  #turnBytes = 0

  constructor(request: IncomingMessage, { bytes, ms }: BodyLimits, { memory, owner }: BodyAccount, waiting: Waiting) {
    this.owner = owner
    this.#request = request
    this.#limitBytes = bytes
    this.#memory = memory
    this.#waiting = waiting
    // Somebody who sends a byte now and then must not hold what has come forever.
    this.#timer = systemClock.after(ms, () => this.#refuse(tooSlow(ms)))
    request.on('data', this.#take)
    request.once('end', () => this.#end())
    request.once('error', () => this.#refuse(cutOff()))
  }

  evict(): void {
    this.#refuse(new HomeportError('memory_short', {}))
  }

  readonly #take = (piece: Buffer): void => {
    this.heldBytes += piece.byteLength
    if (this.heldBytes > this.#limitBytes) {
      this.#refuse(new HomeportError('body_too_large', { limitBytes: this.#limitBytes }))
      return
    }
    this.#pieces.push(piece)
    this.#memory.grow(this, piece.byteLength)
    this.#turnBytes += piece.byteLength
    if (this.#turnBytes >= TURN_READ_BYTES) this.#giveOthersATurn()
  }

  /** A socket is read for as long as there is something, and a fast client can keep it full for megabytes. */
  #giveOthersATurn(): void {
    this.#turnBytes = 0
    this.#request.pause()
    void yieldToEventLoop().then(() => this.#request.resume())
  }

  #end(): void {
    this.#over()
    this.#waiting.resolve(this.#pieces)
  }

  #refuse(error: HomeportError): void {
    this.#over()
    this.#request.off('data', this.#take)
    this.#pieces = []
    this.heldBytes = 0
    this.#waiting.reject(error)
  }

  #over(): void {
    this.#timer.cancel()
    this.#memory.remove(this)
  }
}

/** Makes one of the pieces of a body; nobody has to wait until all of a long one was copied. */
function joinPieces(pieces: readonly Uint8Array[]): Uint8Array | Promise<Uint8Array> {
  const bytes = pieces.reduce((sum, piece) => sum + piece.byteLength, 0)
  return bytes > TURN_BYTES ? joinedInTurns(pieces, bytes) : joined(pieces, bytes)
}

/** Most bodies come in one piece, which the parser has already copied out of the buffer of the connection. */
function joined(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = pieces
  if (!first) return NOTHING
  if (pieces.length === 1 && first.byteLength === first.buffer.byteLength) return new Uint8Array(first.buffer)
  return joinBytes(pieces, bytes)
}

function joinBytes(pieces: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.byteLength
  }
  return whole
}

async function joinedInTurns(pieces: readonly Uint8Array[], bytes: number): Promise<Uint8Array> {
  const whole = new Uint8Array(bytes)
  let at = 0
  let turnEnd = TURN_BYTES
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.byteLength
    if (at < turnEnd) continue
    turnEnd = at + TURN_BYTES
    await yieldToEventLoop()
  }
  return whole
}

const tooSlow = (ms: number): HomeportError =>
  new HomeportError('invalid_request', { problem: `The body was not complete within ${ms / 1000} s.` })

const cutOff = (): HomeportError =>
  new HomeportError('invalid_request', { problem: 'The connection was closed before the body was complete.' })

/** How much is read for the sake of the answer. */
const MOST_BYTES = 64 * 2 ** 20
const LONGEST_MS = 5_000

/** So much of the beginning is shown to who wants to know what it was. */
const HEAD_BYTES = 65_536

/** What was thrown away. */
export interface Discarded {
  /** The connection can go on with another request. */
  readonly isAtEnd: boolean
  /** The beginning of it. */
  readonly head: Buffer
}

/**
 * Reads on and throws away the rest of a body that is refused, so that the client gets to read why: a connection that
 * is closed while bytes arrive is reset, and the answer is lost with it. Resolves when the body has ended, and early
 * when there is no end in sight.
 */
export function discardBody(request: Readable): Promise<Discarded> {
  return new Promise((resolve) => {
    let left = MOST_BYTES
    const head: Uint8Array[] = []
    let headBytes = 0
    const settle = (isAtEnd: boolean): void => {
      timer.cancel()
      stopListening()
      request.off('data', count)
      resolve({ isAtEnd, head: Buffer.concat(head) })
    }
    const count = (chunk: Uint8Array): void => {
      left -= chunk.byteLength
      if (headBytes < HEAD_BYTES) headBytes += head[head.push(chunk) - 1]?.byteLength ?? 0
      if (left < 0) settle(false)
    }
    const timer = systemClock.after(LONGEST_MS, () => settle(false))
    const stopListening = finished(request, { writable: false }, (error) => settle(!error))
    request.on('data', count)
    request.resume()
  })
}
