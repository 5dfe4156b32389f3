import type { IncomingMessage } from 'node:http'
import { HomeportError } from '../../contract/errors/errors.js'

const EMPTY = Buffer.alloc(0)

/** Who waits for a body; the first or the second is called, once, unless the client goes before its end. */
export interface BodyReader {
  /** The body, whole. */
  onBody(body: Buffer): void
  /** The body is too large (`request_too_large`); the client may still be sending it. */
  onRefused(error: HomeportError): void
  /** So much more of the body is held until all of it has come. @returns whether the rest is still wanted */
  onHeld(bytes: number): boolean
}

/** Reads the body of a request, up to `limitBytes`; at once where there is none. */
export function readBody(request: IncomingMessage, limitBytes: number, reader: BodyReader): void {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  const declaredBytes = Number(length)
  if (encoding !== undefined) new BodyGathering(request, limitBytes, undefined, reader).start()
  else if (declaredBytes > limitBytes) refuse(limitBytes, declaredBytes, reader)
  else if (declaredBytes > 0) process.nextTick(takeWhole, request, limitBytes, declaredBytes, reader)
  else reader.onBody(EMPTY)
}

/**
 * A short body nearly always comes together with its head and has been parsed once the call has returned that told of
 * the head. Then it is there for the taking, without the events of a stream.
 */
function takeWhole(request: IncomingMessage, limitBytes: number, declaredBytes: number, reader: BodyReader): void {
  const body: unknown = request.read()
  if (body instanceof Buffer && body.length === declaredBytes) {
    reader.onBody(body)
    return
  }
  if (body instanceof Buffer) request.unshift(body)
  new BodyGathering(request, limitBytes, declaredBytes, reader).start()
}

/** A body that comes in pieces. */
class BodyGathering {
  readonly #request: IncomingMessage
  readonly #limitBytes: number
  /** Undefined where the body tells its end by itself. */
  readonly #declaredBytes: number | undefined
  readonly #reader: BodyReader
  #pieces: Buffer[] = []
  #bytes = 0

  constructor(request: IncomingMessage, limitBytes: number, declaredBytes: number | undefined, reader: BodyReader) {
    this.#request = request
    this.#limitBytes = limitBytes
    this.#declaredBytes = declaredBytes
    this.#reader = reader
  }

  start(): void {
    this.#request.on('data', this.#onData)
    if (this.#declaredBytes === undefined) this.#request.on('end', this.#onEnd)
  }

  readonly #onData = (piece: Buffer): void => {
    this.#bytes += piece.length
    this.#pieces.push(piece)
    if (!this.#reader.onHeld(piece.length)) this.#stop()
    else if (this.#bytes === this.#declaredBytes) this.#onEnd()
    else if (this.#bytes > this.#limitBytes) this.#refuse()
  }

  readonly #onEnd = (): void => this.#reader.onBody(Buffer.concat(this.#pieces))

  #stop(): void {
    this.#request.off('data', this.#onData).off('end', this.#onEnd)
    this.#pieces = []
  }

  #refuse(): void {
    this.#stop()
    refuse(this.#limitBytes, this.#bytes, this.#reader)
  }
}

function refuse(limitBytes: number, actualBytes: number, reader: BodyReader): void {
  reader.onRefused(new HomeportError('request_too_large', { limitBytes, actualBytes }))
}
