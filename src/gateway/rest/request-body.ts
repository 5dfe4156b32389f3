import type { IncomingMessage } from 'node:http'
import { ChunkList } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { PlainRequest } from '../../http/index.js'
import { joinThen } from '../resp/join-in-slices.js'

const EMPTY = Buffer.alloc(0)
/** Bodies up to this length, bytes, are kept until the answer, because the database may get another home before. */
export const KEPT_BODY_BYTES = 1024 * 1024

/** The body of a request whose commands no engine got. `unread`: the request can still be read from its first byte. */
export type UnsentBody = Buffer | 'unread'

/** Receives a body: `onBody` or `onBodyRefused` is called once, unless the client disconnects first. */
export interface BodyReader {
  /** Takes the whole body. */
  onBody(body: Buffer): void
  /** Called when the body is too large (`request_too_large`); the client may still be sending it. */
  onBodyRefused(error: HomeportError): void
  /** Counts `bytes` more bytes that are held until the body is complete. @returns whether the rest should be read */
  onBodyHeld(bytes: number): boolean
}

/** Reads the body of a request, up to `limitBytes`. Requests that arrive together keep their order, even without a body. */
export function readBody(request: IncomingMessage, limitBytes: number, reader: BodyReader): void {
  if (request instanceof PlainRequest) {
    if (request.body.length > limitBytes) refuse(limitBytes, request.body.length, reader)
    else reader.onBody(request.body)
    return
  }
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  const declaredBytes = Number(length)
  if (encoding !== undefined) new BodyGathering(request, limitBytes, undefined, reader).start()
  else if (declaredBytes > limitBytes) refuse(limitBytes, declaredBytes, reader)
  else process.nextTick(takeWhole, request, limitBytes, declaredBytes, reader)
}

/**
 * Takes a short body without the events of a stream. It nearly always arrives together with its head, and Node has parsed
 * it by the next tick.
 */
function takeWhole(request: IncomingMessage, limitBytes: number, declaredBytes: number, reader: BodyReader): void {
  const body: unknown = declaredBytes === 0 ? EMPTY : request.read()
  if (body instanceof Buffer && body.length === declaredBytes) {
    reader.onBody(body)
    return
  }
  if (body instanceof Buffer) request.unshift(body)
  new BodyGathering(request, limitBytes, declaredBytes, reader).start()
}

/** Gathers a body that arrives in several chunks. */
class BodyGathering {
  readonly #request: IncomingMessage
  readonly #limitBytes: number
  /** Undefined for a chunked body. */
  readonly #declaredBytes: number | undefined
  readonly #reader: BodyReader
  readonly #chunks = new ChunkList()

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

  readonly #onData = (chunk: Buffer): void => {
    this.#chunks.add(chunk)
    const { bytes } = this.#chunks
    if (!this.#reader.onBodyHeld(chunk.length)) this.#stop()
    else if (bytes === this.#declaredBytes) this.#onEnd()
    else if (bytes > this.#limitBytes) this.#refuse()
  }

  readonly #onEnd = (): void => {
    joinThen(this.#chunks.chunks, (body) => this.#reader.onBody(body))
  }

  #stop(): void {
    this.#request.off('data', this.#onData).off('end', this.#onEnd)
    this.#chunks.clear()
  }

  #refuse(): void {
    const { bytes } = this.#chunks
    this.#stop()
    refuse(this.#limitBytes, bytes, this.#reader)
  }
}

function refuse(limitBytes: number, actualBytes: number, reader: BodyReader): void {
  reader.onBodyRefused(new HomeportError('request_too_large', { limitBytes, actualBytes }))
}
