import { constants, type Http2Stream } from 'node:http2'
import { Duplex } from 'node:stream'
import type { ClientMemoryBudget, MemoryConsumer } from '../../base/index.js'
import type { Logger } from '../../telemetry/index.js'
import type { TunnelHead } from '../peer-link.js'

/** How much an unread stream is assumed to grow. The real growth is between 0 and the window of a stream. */
const GROWTH_BYTES = 256 * 1024

/** The memory budget that unread bytes count against, and whose bytes the stream carries. */
export interface Counted {
  readonly memory: ClientMemoryBudget
  readonly head: Pick<TunnelHead, 'ip' | 'detail'>
  /** Called when the stream was ended because unread bytes use too much memory. */
  readonly onEvicted: (ip: string) => void
}

/**
 * The bytes of an HTTP/2 stream, usable as a socket by HTTP/1. HTTP/1 writes its head as text together with the body,
 * which an HTTP/2 stream garbles (Node 20). So this class turns text into bytes.
 *
 * Unread bytes, up to the window of the stream, are in the memory of this node. For clients they count against the memory of
 * clients; for streams between nodes, which have no client address, they do not.
 */
export class ByteStream extends Duplex implements MemoryConsumer {
  /** The id of the database if it is known, otherwise the address of the client. */
  readonly owner: string
  readonly #inner: Http2Stream
  readonly #counted: Counted | undefined

  constructor(inner: Http2Stream, counted: Counted) {
    super({ decodeStrings: true, allowHalfOpen: true })
    this.#inner = inner
    const { ip, detail = '' } = counted.head
    this.#counted = ip === '' ? undefined : counted
    const [databaseId = '', port] = detail.split(' ')
    this.owner = port === undefined ? ip : databaseId
    inner.on('data', (chunk: Buffer) => {
      if (this.push(chunk)) return
      inner.pause()
      this.#counted?.memory.grow(this, GROWTH_BYTES)
    })
    inner.once('end', () => this.push(null))
    inner.on('error', (error) => this.destroy(error))
    // Bytes that arrived before the end of the stream can still be read.
    inner.once('close', () => {
      if (!inner.readableEnded) this.destroy(new Error('the connection to the node was lost'))
    })
  }

  get heldBytes(): number {
    return this.destroyed ? 0 : this.readableLength + this.#inner.readableLength
  }

  evict(): void {
    this.#counted?.onEvicted(this.#counted.head.ip)
    this.destroy(new Error('too much memory is held for unread bytes'))
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
    this.#counted?.memory.remove(this)
    // Without CANCEL, the other node first reads the bytes that are on their way, which may never happen. A stream that
    // is given up must end there too.
    if (error || !this.writableFinished) this.#inner.close(constants.NGHTTP2_CANCEL)
    this.#inner.destroy()
    done(error)
  }
}

/** The bytes of a stream between nodes, counted against the memory of clients. */
export function countedStream(
  inner: Http2Stream,
  head: TunnelHead,
  { memory, logger }: { readonly memory: ClientMemoryBudget; readonly logger: Pick<Logger, 'warn'> },
): ByteStream {
  return new ByteStream(inner, {
    memory,
    head,
    onEvicted: (address) => logger.warn('peer_stream_over_memory', { address }),
  })
}
