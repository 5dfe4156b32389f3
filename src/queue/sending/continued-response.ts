import { Socket } from 'node:net'
import { Client, errors } from 'undici'
import type { OutgoingRequest, ResponseHandler } from './outgoing-request.js'
import type { Wire } from './wire.js'

/** The connection that a response comes from. */
export type ResponseSource = Pick<Wire, 'pause' | 'resume' | 'destroy'>

/**
 * Lets undici read a response that is not plain. undici gets a simulated connection: it writes the request there, without
 * effect, and then receives the response from its first byte on.
 */
export class ContinuedResponse {
  readonly #rest: RestOfConnection

  /** @param bytes the bytes of the response that have arrived */
  constructor(request: OutgoingRequest, handler: ResponseHandler, source: ResponseSource, bytes: Buffer) {
    this.#rest = new RestOfConnection(source)
    this.#rest.arrive(bytes)
    const client = new Client(request.origin, {
      headersTimeout: 0,
      bodyTimeout: 0,
      // The connection ends after this response.
      pipelining: 0,
      // undici expects the callback to be called asynchronously.
      connect: (_options, done) => process.nextTick(() => done(null, this.#rest)),
    })
    // Otherwise undici would connect again for a request that it has not sent.
    this.#rest.once('close', () => client.destroy(this.#rest.errored ?? new errors.SocketError('other side closed')))
    client.dispatch(request, handler)
  }

  /** More bytes of the response have arrived. */
  take(bytes: Buffer): void {
    this.#rest.arrive(Buffer.from(bytes))
  }

  /** The connection has ended. @param error absent when the other side has ended it */
  end(error: Error | undefined): void {
    if (error) this.#rest.destroy(error)
    else this.#rest.arrive(null)
  }
}

/**
 * A socket whose bytes come from the real connection and whose writes are
 * discarded, because the request was already sent.
 */
class RestOfConnection extends Socket {
  readonly #source: ResponseSource
  /**
   * Bytes that arrived before undici has written the request. undici would take
   * them for the response to another request.
   */
  #held: (Buffer | null)[] | undefined = []

  constructor(source: ResponseSource) {
    super({ allowHalfOpen: true })
    this.#source = source
    this.once('close', () => source.destroy())
    this.on('error', () => {})
  }

  /** @param bytes `null` for the end */
  arrive(bytes: Buffer | null): void {
    if (this.destroyed) return
    if (this.#held) this.#held.push(bytes)
    else if (!this.push(bytes)) this.#source.pause()
  }

  override _read(): void {
    this.#source.resume()
  }

  override _write(_chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    this.#written(done)
  }

  override _writev(_chunks: readonly unknown[], done: () => void): void {
    this.#written(done)
  }

  #written(done: () => void): void {
    done()
    if (this.#held) process.nextTick(() => this.#release())
  }

  #release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const bytes of held) this.arrive(bytes)
  }
}
