/**
 * Reads RESP2 replies of a Redis server that is not trusted, with a limit for everything that it may announce or send.
 *
 * Every number from the server is compared with its limit before anything is allocated for it. Nothing is read ahead:
 * the caller pulls each reply out of the socket, so anything more that the server sends stays in the buffers of the
 * operating system. A value can be streamed to the caller; it is then never held as a whole.
 */

/** Limits of one reply. */
export interface ReplyLimits {
  /** Arrays inside arrays; an array of plain values has depth 1. */
  readonly depth: number
  /** Elements of all arrays of one reply together. */
  readonly elements: number
  /** Bytes of one reply that is buffered as a whole. */
  readonly replyBytes: number
  /** Bytes of one value that is streamed. */
  readonly valueBytes: number
}

/** An error reply of the server. */
export class ReplyError extends Error {
  constructor(text: string) {
    super(text)
    this.name = 'ReplyError'
  }
}

/** The server has sent something that is not an acceptable reply; nothing after it can be parsed. */
export class ReplyRefused extends Error {
  constructor(found: string) {
    super(found)
    this.name = 'ReplyRefused'
  }
}

/** A reply: a status, a value, a number, null, an error, or an array of them. */
export type Reply = string | Buffer | number | null | ReplyError | readonly Reply[]

/** Receives a chunk of a value; a returned promise delays the next chunk. */
export type TakePiece = (piece: Buffer) => Promise<void> | void

const MAX_LINE_BYTES = 4096
const LF = 10
const CR = 13
const EMPTY = Buffer.alloc(0)

/** What the rest of a reply may still use. */
interface Budget {
  elements: number
  bytes: number
}

/** Reads replies one by one; see the top of this file. */
export class ReplyStream {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #limits: ReplyLimits
  #chunk: Buffer = EMPTY
  #at = 0
  /** Bytes of replies read so far. */
  readBytes = 0

  /** @param source a byte stream, such as a socket, that nobody else reads. */
  constructor(source: AsyncIterable<Buffer>, limits: ReplyLimits) {
    this.#chunks = source[Symbol.asyncIterator]()
    this.#limits = limits
  }

  /** The next reply; rejects with `ReplyRefused`, or with the error of the stream. */
  reply(): Promise<Reply> {
    return this.#element(0, { elements: this.#limits.elements, bytes: this.#limits.replyBytes })
  }

  /**
   * Streams the next reply, which must be a value or null: calls `onLength` with its length, then `take` with each chunk.
   * Resolves with false for null, and with the error if the server has answered one.
   */
  async value(onLength: (bytes: number) => void, take: TakePiece): Promise<boolean | ReplyError> {
    const line = await this.#line()
    if (line[0] === '-') return new ReplyError(line.slice(1))
    if (line[0] !== '$') throw new ReplyRefused(`a reply of type ${shown(line)} where a value belongs`)
    const bytes = this.#length(line, this.#limits.valueBytes, 'a value', 'bytes')
    if (bytes === null) return false
    onLength(bytes)
    await this.#stream(bytes, take)
    await this.#endOfValue()
    return true
  }

  async #element(depth: number, budget: Budget): Promise<Reply> {
    const line = await this.#line()
    switch (line[0]) {
      case '+':
        return line.slice(1)
      case '-':
        return new ReplyError(line.slice(1))
      case ':':
        return numberIn(line)
      case '$':
        return this.#buffered(line, budget)
      case '*':
        return this.#array(line, depth + 1, budget)
      default:
        throw new ReplyRefused(`a reply of type ${shown(line)}, which RESP2 does not have`)
    }
  }

  async #array(line: string, depth: number, budget: Budget): Promise<Reply> {
    if (depth > this.#limits.depth) throw new ReplyRefused(`arrays nested more than ${this.#limits.depth} deep`)
    const length = this.#length(line, budget.elements, 'a reply', 'elements')
    if (length === null) return null
    budget.elements -= length
    const elements: Reply[] = []
    for (let i = 0; i < length; i++) elements.push(await this.#element(depth, budget))
    return elements
  }

  async #buffered(line: string, budget: Budget): Promise<Buffer | null> {
    const bytes = this.#length(line, budget.bytes, 'a reply', 'bytes')
    if (bytes === null) return null
    budget.bytes -= bytes
    // Copied into one buffer: a list of chunks would cost a hundred times as much if they arrive byte by byte.
    const value = Buffer.allocUnsafe(bytes)
    let filled = 0
    await this.#stream(bytes, (piece) => {
      filled += piece.copy(value, filled)
    })
    await this.#endOfValue()
    return value
  }

  /** The length in a header; `null` for -1, which means null. */
  #length(line: string, most: number, what: string, unit: string): number | null {
    const length = numberIn(line)
    if (length === -1) return null
    if (length < 0) throw new ReplyRefused(`a length of ${length}`)
    if (length > most) throw new ReplyRefused(`${what} of ${length} ${unit}, where at most ${most} are taken`)
    return length
  }

  async #stream(bytes: number, take: TakePiece): Promise<void> {
    let left = bytes
    while (left > 0) {
      if (this.#at === this.#chunk.length) await this.#nextChunk()
      const piece = this.#chunk.subarray(this.#at, this.#at + left)
      this.#at += piece.length
      this.readBytes += piece.length
      left -= piece.length
      await take(piece)
    }
  }

  async #endOfValue(): Promise<void> {
    for (const expected of [CR, LF]) {
      if (this.#at === this.#chunk.length) await this.#nextChunk()
      if (this.#chunk[this.#at++] !== expected) throw new ReplyRefused('a value that is longer than its length says')
    }
    this.readBytes += 2
  }

  /** A line without its CRLF, of at most `MAX_LINE_BYTES`. */
  async #line(): Promise<string> {
    let text = ''
    for (;;) {
      if (this.#at === this.#chunk.length) await this.#nextChunk()
      const end = this.#chunk.indexOf(LF, this.#at)
      const stop = end < 0 ? this.#chunk.length : end
      if (text.length + stop - this.#at > MAX_LINE_BYTES) {
        throw new ReplyRefused(`a line of more than ${MAX_LINE_BYTES} bytes`)
      }
      text += this.#chunk.toString('latin1', this.#at, stop)
      this.readBytes += stop + (end < 0 ? 0 : 1) - this.#at
      this.#at = end < 0 ? stop : end + 1
      if (end >= 0) return text.endsWith('\r') ? text.slice(0, -1) : text
    }
  }

  async #nextChunk(): Promise<void> {
    do {
      const next = await this.#chunks.next()
      if (next.done) throw new Error('the connection was closed')
      this.#chunk = next.value
    } while (this.#chunk.length === 0)
    this.#at = 0
  }
}

/** The number after the first byte of a line. */
function numberIn(line: string): number {
  const text = line.slice(1)
  if (!/^-?\d{1,15}$/.test(text)) throw new ReplyRefused(`an invalid number (${shown(text.slice(0, 20))})`)
  return Number(text)
}

/** The first 20 printable characters of what was received, for an error message. */
function shown(text: string): string {
  return text === '' ? 'nothing' : JSON.stringify(text.slice(0, 20).replace(/[^\x20-\x7e]/g, '?'))
}
