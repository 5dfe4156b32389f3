import type { IncomingMessage } from 'node:http'
import { type HeldMemory, type Holder, othersFirst, systemClock } from '../base/index.js'
import { HomeportError } from '../contract/errors.js'

const NOTHING = new Uint8Array()
/** So much is copied at a stretch, in about a millisecond. */
const TURN_BYTES = 1_048_576

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
    if (declaredBytes > limits.bytes) return reject(new HomeportError('body_too_large', { limitBytes: limits.bytes }))
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
function gather(
  request: IncomingMessage,
  { bytes: limitBytes, ms }: BodyLimits,
  { memory, owner }: BodyAccount,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let receivedBytes = 0
    const holder: Holder = {
      owner,
      get heldBytes() {
        return receivedBytes
      },
      giveWay: () => refuse(new HomeportError('memory_short', {})),
    }
    const refuse = (error: HomeportError): void => {
      timer.cancel()
      memory.gone(holder)
      request.off('data', take)
      chunks = []
      reject(error)
    }
    const take = (chunk: Buffer): void => {
      receivedBytes += chunk.byteLength
      if (receivedBytes > limitBytes) refuse(new HomeportError('body_too_large', { limitBytes }))
      else {
        chunks.push(chunk)
        memory.grew(holder, chunk.byteLength)
      }
    }
    // Somebody who sends a byte now and then must not hold what has come for ever.
    const timer = systemClock.after(ms, () => refuse(tooSlow(ms)))
    request.on('data', take)
    request.once('end', () => {
      timer.cancel()
      memory.gone(holder)
      resolve(receivedBytes > TURN_BYTES ? joinedInTurns(chunks, receivedBytes) : joined(chunks, receivedBytes))
    })
    request.once('error', () => refuse(cutOff()))
  })
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
