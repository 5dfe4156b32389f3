import type { IncomingMessage } from 'node:http'
import { type HeldMemory, type Holder, othersFirst, systemClock, type Timer } from '../base/index.js'
import { HomeportError } from '../contract/errors.js'

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
  readonly memory: HeldMemory
  readonly owner: string
}

/**
 * Reads the whole body of a request, into bytes of its own.
 * @throws HomeportError `body_too_large` as soon as that is known; the rest is still to be read or thrown away.
 * `invalid_request` when the connection or the time ends before the body does,
 * `memory_short` when too much would be held with it.
 */
export function readBody(request: IncomingMessage, limits: BodyLimits, account: BodyAccount): Promise<Uint8Array> {
  const declaredBytes = Number(request.headers['content-length'] ?? 0)
  return new Promise((resolve, reject) => {
    if (declaredBytes > limits.bytes) {
      return reject(new HomeportError('body_too_large', { limitBytes: limits.bytes, bytes: declaredBytes }))
    }
    process.nextTick(() => {
      const body = takeWhole(request, declaredBytes)
      if (body) resolve(body)
      else gather(request, limits, account).then(resolve, reject)
    })
  })
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
function gather(request: IncomingMessage, limits: BodyLimits, account: BodyAccount): Promise<Uint8Array> {
  return new Promise((resolve, reject) => new Gathering(request, limits, account, { resolve, reject }))
}

/** Who waits for a body; one of the two is called. */
interface Waiting {
  readonly resolve: (body: Uint8Array | Promise<Uint8Array>) => void
  readonly reject: (error: HomeportError) => void
}

/** What has come of a body so far. */
class Gathering implements Holder {
  readonly owner: string
  heldBytes = 0
  readonly #request: IncomingMessage
  readonly #limitBytes: number
  readonly #memory: HeldMemory
  readonly #waiting: Waiting
  readonly #timer: Timer
  #chunks: Buffer[] = []
  /** What has come in the present turn of the event loop. */
  #turnBytes = 0

  constructor(request: IncomingMessage, { bytes, ms }: BodyLimits, { memory, owner }: BodyAccount, waiting: Waiting) {
    this.owner = owner
    this.#request = request
    this.#limitBytes = bytes
    this.#memory = memory
    this.#waiting = waiting
    // Somebody who sends a byte now and then must not hold what has come for ever.
    this.#timer = systemClock.after(ms, () => this.#refuse(tooSlow(ms)))
    request.on('data', this.#take)
    request.once('end', () => this.#end())
    request.once('error', () => this.#refuse(cutOff()))
  }

  giveWay(): void {
    this.#refuse(new HomeportError('memory_short', {}))
  }

  readonly #take = (chunk: Buffer): void => {
    this.heldBytes += chunk.byteLength
    if (this.heldBytes > this.#limitBytes) {
      this.#refuse(new HomeportError('body_too_large', { limitBytes: this.#limitBytes }))
      return
    }
    this.#chunks.push(chunk)
    this.#memory.grew(this, chunk.byteLength)
    this.#turnBytes += chunk.byteLength
    if (this.#turnBytes >= TURN_READ_BYTES) this.#letOthersRead()
  }

  /** A socket is read for as long as there is something, and a fast client can keep it full for megabytes. */
  #letOthersRead(): void {
    this.#turnBytes = 0
    this.#request.pause()
    setImmediate(() => this.#request.resume())
  }

  #end(): void {
    this.#over()
    const bytes = this.heldBytes
    const { resolve } = this.#waiting
    resolve(bytes > TURN_BYTES ? joinedInTurns(this.#chunks, bytes) : joined(this.#chunks, bytes))
  }

  #refuse(error: HomeportError): void {
    this.#over()
    this.#request.off('data', this.#take)
    this.#chunks = []
    this.heldBytes = 0
    this.#waiting.reject(error)
  }

  #over(): void {
    this.#timer.cancel()
    this.#memory.gone(this)
  }
}

/** Most bodies come in one piece, which the parser has already copied out of the buffer of the connection. */
function joined(chunks: readonly Buffer[], bytes: number): Uint8Array {
  const [first] = chunks
  if (!first) return NOTHING
  if (chunks.length === 1 && first.byteLength === first.buffer.byteLength) return new Uint8Array(first.buffer)
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

/** The same for a long body: nobody has to wait until all of it was copied. */
async function joinedInTurns(chunks: readonly Buffer[], bytes: number): Promise<Uint8Array> {
  const whole = new Uint8Array(bytes)
  let at = 0
  let turnEnd = TURN_BYTES
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
    if (at < turnEnd) continue
    turnEnd = at + TURN_BYTES
    await othersFirst()
  }
  return whole
}

const tooSlow = (ms: number): HomeportError =>
  new HomeportError('invalid_request', { problem: `The body was not complete within ${ms / 1000} s.` })

const cutOff = (): HomeportError =>
  new HomeportError('invalid_request', { problem: 'The connection was closed before the body was complete.' })
