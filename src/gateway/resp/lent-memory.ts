import { createConnection, type Socket } from 'node:net'

/**
 * Memory that connections read into, over and over. Views of it are *lent*: valid until the call returns that they were
 * passed to. Whoever needs the bytes for longer takes them with `copied` or `kept`.
 *
 * Nearly all bytes that come from one socket are with another one before the call returns, so a block that stays in the
 * processor's cache serves for good, where one made for every read would have to be allocated, touched and collected.
 *
 * - `common`: one block for all clients, who are many and of whom most are silent.
 * - `replaceable`: one block for each connection to an engine. When bytes of it are kept, the connection takes another.
 */
type Loan = 'common' | 'replaceable'

/** A pipeline of large values is mostly read at once, so that few of its commands are spread over two reads. */
const COMMON_BLOCK_BYTES = 262_144
/** As much as an engine writes at a time. */
const REPLACEABLE_BLOCK_BYTES = 65_536
/** From this size on, giving replaceable memory away costs less than copying out of it. */
const COPY_LIMIT_BYTES = 16_384

const loans = new WeakMap<ArrayBufferLike, Loan>()

/** What every client's bytes are read into. */
export const COMMON_BLOCK = newBlock('common', COMMON_BLOCK_BYTES)

/** The memory that one connection to an engine reads into. */
export class ReadMemory {
  #block = newBlock('replaceable', REPLACEABLE_BLOCK_BYTES)

  /** Where the next read goes. */
  get block(): Buffer {
    if (!loans.has(this.#block.buffer)) this.#block = newBlock('replaceable', REPLACEABLE_BLOCK_BYTES)
    return this.#block
  }

  /** What the last read brought, lent. */
  view(bytes: number): Buffer {
    return this.#block.subarray(0, bytes)
  }
}

/** Connects to a socket whose bytes are lent to `take` for the time of the call. */
export function connectLent(path: string, take: (socket: Socket, chunk: Buffer) => void): Socket {
  const memory = new ReadMemory()
  const callback = (bytes: number): boolean => {
    take(socket, memory.view(bytes))
    return true
  }
  const socket = createConnection({ path, onread: { buffer: () => memory.block, callback } })
  return socket
}

/** Whether the bytes are going to be written to. */
export function isLent(view: Buffer): boolean {
  return loans.has(view.buffer)
}

/** The bytes of `view` in memory that stays as it is: a copy, if they are lent. */
export function copied(view: Buffer): Buffer {
  return loans.has(view.buffer) ? Buffer.from(view) : view
}

/** The same, but a large view of replaceable memory is kept as it is. */
export function kept(view: Buffer): Buffer {
  if (view.length < COPY_LIMIT_BYTES || loans.get(view.buffer) !== 'replaceable') return copied(view)
  loans.delete(view.buffer)
  return view
}

/** Keeps a view of replaceable memory that somebody holds who cannot be given another. */
export function keep(view: Buffer): void {
  const loan = loans.get(view.buffer)
  if (loan === 'common') throw new Error('bytes of a client can only be copied')
  if (loan === 'replaceable') loans.delete(view.buffer)
}

function newBlock(loan: Loan, bytes: number): Buffer {
  const block = Buffer.allocUnsafeSlow(bytes)
  loans.set(block.buffer, loan)
  return block
}

const EMPTY = Buffer.alloc(0)

/** Bytes of a client in the pieces that they came in, which wait for those before them. */
export class ChunkQueue {
  #chunks: Buffer[] = []
  /** Those before it are used up. */
  #first = 0
  #bytes = 0

  /** Bytes of all chunks. */
  get bytes(): number {
    return this.#bytes
  }

  /** The chunk that is next. */
  get first(): Buffer {
    return this.#chunks[this.#first] ?? EMPTY
  }

  /** Adds a chunk behind the others; only the last one may be lent. */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** Removes so many bytes of the first chunk, at most all of it. */
  take(bytes: number): void {
    const { first } = this
    this.#bytes -= bytes
    if (bytes < first.length) this.#chunks[this.#first] = first.subarray(bytes)
    else this.#dropFirst()
  }

  /** Copies what is lent. */
  own(): void {
    const last = this.#chunks.length - 1
    if (last >= 0) this.#chunks[last] = copied(this.#chunks[last] ?? EMPTY)
  }

  /** Forgets everything. */
  clear(): void {
    this.#chunks = []
    this.#first = 0
    this.#bytes = 0
  }

  #dropFirst(): void {
    if (++this.#first < this.#chunks.length) this.#chunks[this.#first - 1] = EMPTY
    else this.clear()
  }
}
