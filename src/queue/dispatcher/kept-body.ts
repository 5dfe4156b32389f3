/** Large failing answers use this much memory in total, beyond what is kept of every answer. */
export const LARGE_ANSWERS_BYTES = 64 * 1024 * 1024

/** Smaller chunks are copied into blocks: an answer in chunks of one byte each would take a hundred times its size. */
const SMALL_CHUNK_BYTES = 2_048
const BLOCK_BYTES = 16_384

/** Memory that several users share: each takes what it needs and gives it back. */
export class SharedBytes {
  #freeBytes: number

  constructor(bytes: number) {
    this.#freeBytes = bytes
  }

  /** Bytes that nobody has taken. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Takes bytes, unless there are not as many. */
  take(bytes: number): boolean {
    if (bytes > this.#freeBytes) return false
    this.#freeBytes -= bytes
    return true
  }

  /** Gives bytes back that were taken. */
  give(bytes: number): void {
    this.#freeBytes += bytes
  }
}

/** How much is kept of an answer. */
export interface KeepLimits {
  /** Of every answer. */
  readonly keepBytes: number
  /** Of an answer that is not 2xx, as long as there is shared memory for it. */
  readonly keepFailingBytes?: number | undefined
}

/** What was kept of an answer; `truncated` when there was more. */
export interface Kept {
  /** Bytes of their own, not a view into a connection's buffer. */
  readonly body: Uint8Array
  readonly truncated: boolean
}

interface Block {
  readonly buffer: Buffer
  used: number
}

/**
 * Collects the body of an answer. A failing answer is kept whole as far as `keepFailingBytes` and the shared memory go;
 * of any other answer, and of one that is larger, the first `keepBytes` are kept.
 */
export class KeptBody {
  readonly #limits: KeepLimits
  readonly #shared: SharedBytes
  #mostBytes: number
  #chunks: Buffer[] = []
  /** The block at the end of `#chunks`, as long as it has room for small chunks. */
  #block: Block | undefined
  #receivedBytes = 0
  #borrowedBytes = 0
  #isCut = false
  /** Bytes that have come and were not kept. */
  discardedBytes = 0

  constructor(limits: KeepLimits, shared: SharedBytes) {
    this.#limits = limits
    this.#shared = shared
    this.#mostBytes = limits.keepBytes
  }

  /** An answer with this status begins. */
  begin(status: number): void {
    const { keepBytes, keepFailingBytes = 0 } = this.#limits
    this.#mostBytes = status >= 200 && status < 300 ? keepBytes : Math.max(keepBytes, keepFailingBytes)
  }

  /** The next bytes of the body. */
  add(chunk: Buffer): void {
    if (this.#isCut) {
      this.discardedBytes += chunk.byteLength
      return
    }
    this.#receivedBytes += chunk.byteLength
    this.#append(chunk)
    if (!this.#fits()) this.#cut()
  }

  /** The body is complete. */
  finish(): Kept {
    const body = this.#joined(this.#receivedBytes)
    this.#chunks = []
    return { body, truncated: this.#isCut }
  }

  /** Gives back the shared memory: nobody uses the body any more. May be called at any time, and again. */
  release(): void {
    this.#shared.give(this.#borrowedBytes)
    this.#borrowedBytes = 0
  }

  #fits(): boolean {
    const beyondBytes = this.#receivedBytes - this.#limits.keepBytes
    if (beyondBytes <= this.#borrowedBytes) return true
    if (this.#receivedBytes > this.#mostBytes || !this.#shared.take(beyondBytes - this.#borrowedBytes)) return false
    this.#borrowedBytes = beyondBytes
    return true
  }

  #cut(): void {
    this.#isCut = true
    this.discardedBytes = this.#receivedBytes - this.#limits.keepBytes
    this.#receivedBytes = this.#limits.keepBytes
    this.#chunks = [Buffer.from(this.#joined(this.#receivedBytes).buffer)]
    this.#block = undefined
    this.release()
  }

  #append(chunk: Buffer): void {
    if (this.#chunks.length === 0 || chunk.byteLength > SMALL_CHUNK_BYTES) {
      this.#chunks.push(chunk)
      this.#block = undefined
      return
    }
    const block = this.#blockFor(chunk)
    block.used += chunk.copy(block.buffer, block.used)
    this.#chunks[this.#chunks.length - 1] = block.buffer.subarray(0, block.used)
  }

  #blockFor({ byteLength }: Buffer): Block {
    const current = this.#block
    if (current && current.used + byteLength <= BLOCK_BYTES) return current
    const next = { buffer: Buffer.allocUnsafeSlow(BLOCK_BYTES), used: 0 }
    this.#block = next
    this.#chunks.push(next.buffer)
    return next
  }

  #joined(bytes: number): Uint8Array {
    const body = new Uint8Array(bytes)
    let at = 0
    for (const chunk of this.#chunks) {
      const part = chunk.byteLength <= bytes - at ? chunk : chunk.subarray(0, bytes - at)
      body.set(part, at)
      at += part.byteLength
    }
    return body
  }
}
