import { createConnection, type Socket } from 'node:net'

declare const LENT: unique symbol

/**
 * Bytes that may be *lent*: they are valid only during the call to which they are passed, because the next read overwrites
 * their memory. Code that needs them for longer takes them with `keep`. A view of lent bytes is lent too; the compiler
 * refuses to store either as `KeptBytes`.
 */
export interface LentBytes extends Buffer {
  readonly [LENT]?: true
  subarray(start?: number, end?: number): LentBytes
}

/** Bytes that stay unchanged: they have memory of their own, or a lent block that `keep` took over. */
export interface KeptBytes extends Buffer {
  readonly [LENT]?: never
  subarray(start?: number, end?: number): KeptBytes
}

/**
 * The kinds of lent blocks. Nearly all bytes that come from one socket are written to another one before the call returns.
 * So one block can be reused forever and stays in the processor's cache, while a block for every read would have to be
 * allocated, touched and collected.
 *
 * - `common`: one block for all clients, who are many and mostly silent.
 * - `replaceable`: one block for each connection to an engine. When its bytes are kept, the connection takes another block.
 * - `gathered`: memory for a client's command that is spread over several reads (`gather-memory.ts`).
 */
type Loan = 'common' | 'replaceable' | 'gathered'

/** Large enough that a pipeline of large values mostly arrives in one read: few commands are spread over two. */
const COMMON_BLOCK_BYTES = 262_144
/** Least: what an engine writes at a time while its replies are short. Most: what the system buffers for the connection. */
const MIN_REPLACEABLE_BYTES = 65_536
const MAX_REPLACEABLE_BYTES = 262_144
/** From this size on, replacing a block costs less than copying out of it. */
const COPY_LIMIT_BYTES = 16_384

const loans = new WeakMap<ArrayBufferLike, Loan>()

/** The block that the bytes of every client are read into. */
export const COMMON_BLOCK = newBlock('common', COMMON_BLOCK_BYTES)

/** The memory that one connection to an engine reads into. */
export class ReadMemory {
  #bytes = MIN_REPLACEABLE_BYTES
  #block = newBlock('replaceable', MIN_REPLACEABLE_BYTES)

  /** The memory for the next read. */
  get block(): Buffer {
    const isKept = !loans.has(this.#block.buffer)
    // A client that does not read may keep a whole block for a short reply, so the next block is small.
    if (isKept) this.#bytes = MIN_REPLACEABLE_BYTES
    if (isKept || this.#block.length < this.#bytes) this.#block = newBlock('replaceable', this.#bytes)
    return this.#block
  }

  /** The bytes of the last read. A read that fills the block makes the next block larger: long replies take fewer reads. */
  view(bytes: number): LentBytes {
    if (bytes === this.#bytes) this.#bytes = Math.min(2 * bytes, MAX_REPLACEABLE_BYTES)
    return this.#block.subarray(0, bytes)
  }
}

/** Connects to a socket and passes every chunk to `take`, lent. */
export function connectLent(path: string, take: (socket: Socket, chunk: LentBytes) => void): Socket {
  const memory = new ReadMemory()
  const callback = (bytes: number): boolean => {
    take(socket, memory.view(bytes))
    return true
  }
  const socket = createConnection({ path, onread: { buffer: () => memory.block, callback } })
  return socket
}

/** Whether the memory of these bytes will be read into again. */
export function isLent(bytes: LentBytes): boolean {
  return loans.has(bytes.buffer)
}

/** Whether these bytes stay unchanged. */
export function isKept(bytes: LentBytes): bytes is KeptBytes {
  return !loans.has(bytes.buffer)
}

/**
 * The same bytes in memory that stays unchanged. It copies lent bytes; for a large view of a replaceable block it takes the
 * block over instead.
 */
export function keep(bytes: LentBytes): KeptBytes {
  if (bytes.length >= COPY_LIMIT_BYTES && loans.get(bytes.buffer) === 'replaceable') loans.delete(bytes.buffer)
  return isKept(bytes) ? bytes : Buffer.from(bytes)
}

/**
 * Keeps bytes without a copy, because a system call already holds them. @throws Error for bytes of a client, whose block is
 * shared with other clients
 */
export function keepInPlace(bytes: LentBytes): void {
  const loan = loans.get(bytes.buffer)
  if (loan === 'common' || loan === 'gathered') throw new Error('bytes of a client can only be copied')
  if (loan === 'replaceable') loans.delete(bytes.buffer)
}

/** Whether these bytes lie in memory for gathering. */
export function isGathered(bytes: LentBytes): boolean {
  return loans.get(bytes.buffer) === 'gathered'
}

/** New memory that is lent from now on. */
export function newBlock(loan: Loan, bytes: number): Buffer {
  const block = Buffer.allocUnsafeSlow(bytes)
  loans.set(block.buffer, loan)
  return block
}

const EMPTY: KeptBytes = Buffer.alloc(0)

/** The chunks of a client that wait until earlier chunks are parsed. */
export class ChunkQueue {
  #chunks: LentBytes[] = []
  /** Index of the first chunk that is not used up. */
  #first = 0
  #bytes = 0

  /** Length of all chunks together. */
  get bytes(): number {
    return this.#bytes
  }

  /** The next chunk; empty when there is none. */
  get first(): LentBytes {
    return this.#chunks[this.#first] ?? EMPTY
  }

  /** Appends a chunk. Only the last one may be lent. */
  push(chunk: LentBytes): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** Removes `bytes` bytes of the first chunk, at most all of it. */
  take(bytes: number): void {
    const { first } = this
    this.#bytes -= bytes
    if (bytes < first.length) this.#chunks[this.#first] = first.subarray(bytes)
    else this.#dropFirst()
  }

  /** Keeps the last chunk, the only one that may be lent. */
  keepLast(): void {
    const last = this.#chunks.length - 1
    if (last >= 0) this.#chunks[last] = keep(this.#chunks[last] ?? EMPTY)
  }

  /** Drops all chunks. */
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
