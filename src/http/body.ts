import type { IncomingMessage } from 'node:http'
import { finished, type Readable } from 'node:stream'
import {
  ChunkList,
  type ClientMemoryBudget,
  type MemoryConsumer,
  type OwnerConcurrency,
  systemClock,
  type Timer,
  yieldToEventLoop,
} from '../base/index.js'
import { HomeportError } from '../contract/errors/errors.js'
import { PlainRequest } from './plain/plain-messages.js'

const NOTHING = new Uint8Array()
/** Bytes copied before yielding, about a millisecond of work. */
const COPY_SLICE_BYTES = 1_048_576
/** Bytes read from the socket before yielding. */
const READ_SLICE_BYTES = 262_144

/** Limits of size and time for a body. */
export interface BodyLimits {
  readonly bytes: number
  readonly ms: number
}

/** The budget that an incomplete body is counted in, and its owner there. */
export interface BodyAccount {
  readonly memory: ClientMemoryBudget
  /** Turns of the large bodies of each owner. */
  readonly large: OwnerConcurrency
  readonly owner: string
}

/** Bodies above this size are received in turns, if clients declare their length. */
const LARGE_BYTES = 1_048_576
/** Large bodies of one owner may use this share of the memory budget. */
const SHARE = 1 / 4

/**
 * Number of large bodies of one owner that are received at a time. The clients of the others wait before they send. Without
 * turns, the results of many steps that end together would be evicted from the budget and refused.
 */
export const largeAtOnce = (memory: ClientMemoryBudget, limitBytes: number): number =>
  Math.max(1, Math.floor((memory.limitBytes * SHARE) / limitBytes))

/**
 * Reads the whole body of a request into memory.
 * @throws HomeportError `body_too_large` as soon as that is known, with the rest of the body unread;
 * `body_too_slow` when the time limit passes before the end of the body; `invalid_request` when the connection closes;
 * `memory_short` when the body is evicted from the memory budget.
 */
export function readBody(request: IncomingMessage, limits: BodyLimits, account: BodyAccount): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const declaredBytes = declaredWithin(request, limits)
    if (request instanceof PlainRequest) return resolve(request.body)
    process.nextTick(() => {
      const body = takeCompleteBody(request, declaredBytes)
      if (body) return resolve(body)
      const gathering =
        declaredBytes > LARGE_BYTES ? gatherInTurn(request, limits, account) : gather(request, limits, account)
      gathering.then((chunks) => resolve(joinChunks(chunks)), reject)
    })
  })
}

/** The `Content-Length`, 0 when absent. @throws HomeportError `body_too_large`. */
function declaredWithin(request: IncomingMessage, limits: BodyLimits): number {
  const bytes = Number(request.headers['content-length'] ?? 0)
  if (bytes > limits.bytes) throw new HomeportError('body_too_large', { limitBytes: limits.bytes, bytes })
  return bytes
}

/**
 * Takes a body that has arrived completely. A short body nearly always arrives in one packet with the head, and Node has
 * parsed it by the next tick. Then no stream events are needed.
 */
function takeCompleteBody(request: IncomingMessage, declaredBytes: number): Uint8Array | undefined {
  if (declaredBytes === 0) return undefined
  const body: unknown = request.read()
  if (!(body instanceof Buffer)) return undefined
  if (body.byteLength === declaredBytes) return joined([body], declaredBytes)
  request.unshift(body)
  return undefined
}

/** Reads a body that arrives in several chunks, or that has no declared length. */
function gather(request: IncomingMessage, limits: BodyLimits, account: BodyAccount): Promise<readonly Buffer[]> {
  return new Promise((resolve, reject) => new IncompleteBody(request, limits, account, { resolve, reject }))
}

/** Reads a body in its turn. Before that it reads nothing, so that the client stops sending. */
async function gatherInTurn(
  request: IncomingMessage,
  limits: BodyLimits,
  account: BodyAccount,
): Promise<readonly Buffer[]> {
  const end = await account.large.begin(account.owner, (leave) => request.once('close', leave))
  if (!end) throw cutOff()
  return gather(request, limits, account).finally(end)
}

/** Settles the promise of a body; exactly one of the two functions is called. */
interface Pending {
  readonly resolve: (chunks: readonly Buffer[]) => void
  readonly reject: (error: HomeportError) => void
}

/** A body that is still arriving. */
class IncompleteBody implements MemoryConsumer {
  readonly owner: string
  readonly #request: IncomingMessage
  readonly #limitBytes: number
  readonly #memory: ClientMemoryBudget
  readonly #pending: Pending
  readonly #timer: Timer
  readonly #chunks = new ChunkList()
  /** Bytes received since the last yield. */
  #sliceBytes = 0

  constructor(request: IncomingMessage, { bytes, ms }: BodyLimits, { memory, owner }: BodyAccount, pending: Pending) {
    this.owner = owner
    this.#request = request
    this.#limitBytes = bytes
    this.#memory = memory
    this.#pending = pending
    // A client that sends a byte now and then must not hold the memory forever.
    this.#timer = systemClock.after(ms, () => this.#refuse(tooSlow(ms)))
    request.on('data', this.#take)
    request.once('end', () => this.#end())
    request.once('error', () => this.#refuse(cutOff()))
  }

  get heldBytes(): number {
    return this.#chunks.bytes
  }

  evict(): void {
    this.#refuse(new HomeportError('memory_short', {}))
  }

  readonly #take = (chunk: Buffer): void => {
    this.#chunks.add(chunk)
    if (this.heldBytes > this.#limitBytes) {
      this.#refuse(new HomeportError('body_too_large', { limitBytes: this.#limitBytes }))
      return
    }
    this.#memory.grow(this, chunk.byteLength)
    this.#sliceBytes += chunk.byteLength
    if (this.#sliceBytes >= READ_SLICE_BYTES) this.#yield()
  }

  /** Yields to the event loop: Node reads a socket as long as it has data, and a fast client can send many megabytes. */
  #yield(): void {
    this.#sliceBytes = 0
    this.#request.pause()
    void yieldToEventLoop().then(() => this.#request.resume())
  }

  #end(): void {
    this.#release()
    this.#pending.resolve(this.#chunks.chunks)
  }

  #refuse(error: HomeportError): void {
    this.#release()
    this.#request.off('data', this.#take)
    this.#chunks.clear()
    this.#pending.reject(error)
  }

  #release(): void {
    this.#timer.cancel()
    this.#memory.remove(this)
  }
}

/** Joins the chunks of a body, with yields if it is long. */
function joinChunks(chunks: readonly Uint8Array[]): Uint8Array | Promise<Uint8Array> {
  const bytes = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0)
  return bytes > COPY_SLICE_BYTES ? joinedWithYields(chunks, bytes) : joined(chunks, bytes)
}

/** Most bodies are one chunk, which the parser has already copied out of the connection's buffer. */
function joined(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = chunks
  if (!first) return NOTHING
  if (chunks.length === 1 && first.byteLength === first.buffer.byteLength) return new Uint8Array(first.buffer)
  return joinBytes(chunks, bytes)
}

function joinBytes(chunks: readonly Uint8Array[], bytes: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

async function joinedWithYields(chunks: readonly Uint8Array[], bytes: number): Promise<Uint8Array> {
  const whole = new Uint8Array(bytes)
  let at = 0
  let sliceEnd = COPY_SLICE_BYTES
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
    if (at < sliceEnd) continue
    sliceEnd = at + COPY_SLICE_BYTES
    await yieldToEventLoop()
  }
  return whole
}

const tooSlow = (ms: number): HomeportError => new HomeportError('body_too_slow', { seconds: ms / 1_000 })

const cutOff = (): HomeportError =>
  new HomeportError('invalid_request', { problem: 'The connection was closed before the body was complete.' })

/** Most bytes of a refused body that are read before the connection is closed. */
const MAX_DISCARDED_BYTES = 64 * 2 ** 20
const DISCARD_TIMEOUT_MS = 5_000

/** Bytes from the start of a discarded body that are kept. */
const HEAD_BYTES = 65_536

/** A discarded body. */
export interface Discarded {
  /** Whether its end was reached, so that the connection can carry another request. */
  readonly isAtEnd: boolean
  /** Its first bytes. */
  readonly head: Buffer
}

/**
 * Reads and discards the rest of a refused body, so that the client can read the response: closing a connection while
 * bytes arrive resets it and loses the response. Resolves at the end of the body, or earlier when a limit is reached.
 */
export function discardBody(request: Readable): Promise<Discarded> {
  return new Promise((resolve) => {
    let left = MAX_DISCARDED_BYTES
    const head = new ChunkList()
    const settle = (isAtEnd: boolean): void => {
      timer.cancel()
      stopListening()
      request.off('data', count)
      resolve({ isAtEnd, head: Buffer.concat(head.chunks) })
    }
    const count = (chunk: Buffer): void => {
      left -= chunk.byteLength
      if (head.bytes < HEAD_BYTES) head.add(chunk)
      if (left < 0) settle(false)
    }
    const timer = systemClock.after(DISCARD_TIMEOUT_MS, () => settle(false))
    const stopListening = finished(request, { writable: false }, (error) => settle(!error))
    request.on('data', count)
    request.resume()
  })
}
