import { Duplex } from 'node:stream'

/**
 * The bytes of an HTTP/2 stream, usable as a socket by HTTP/1. HTTP/1 writes its head as text, in one go with the body, and
 * an HTTP/2 stream garbles that (Node 20); so text becomes bytes here.
 */
export class ByteStream extends Duplex {
  readonly #inner: Duplex

  constructor(inner: Duplex) {
    super({ decodeStrings: true, allowHalfOpen: true })
    this.#inner = inner
    inner.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) inner.pause()
    })
    inner.once('end', () => this.push(null))
    inner.on('error', (error) => this.destroy(error))
    // What came before its end is still to be read.
    inner.once('close', () => {
      if (!inner.readableEnded) this.destroy(new Error('the connection to the node was lost'))
    })
  }

  override _read(): void {
    this.#inner.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#inner.write(chunk, done)
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#inner.end(() => done())
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#inner.destroy()
    done(error)
  }
}
