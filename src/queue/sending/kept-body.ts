import { ChunkList } from '../../base/index.js'

/** Memory that all failing responses together may use beyond their own `keepBytes`. */
export const LARGE_RESPONSES_BYTES = 64 * 1024 * 1024

/** A budget of bytes that several users share. Each takes what it needs and gives it back. */
export class SharedBytes {
  #freeBytes: number

  constructor(bytes: number) {
    this.#freeBytes = bytes
  }

  /** Bytes that are free. */
  get freeBytes(): number {
    return this.#freeBytes
  }

  /** Takes bytes if that many are free. */
  take(bytes: number): boolean {
    if (bytes > this.#freeBytes) return false
    this.#freeBytes -= bytes
    return true
  }

  /** Gives taken bytes back. */
  give(bytes: number): void {
    this.#freeBytes += bytes
  }
}

/** How many bytes of a response body are kept. */
export interface KeepLimits {
  /** Of any response. */
  readonly keepBytes: number
  /** Of a response that is not 2xx, while shared memory is free. */
  readonly keepFailingBytes?: number | undefined
}

/** The kept part of a response body. `truncated`: there was more. */
export interface Kept {
  /** A copy, not a view of a connection's buffer. */
  readonly body: Uint8Array
  readonly truncated: boolean
}

/**
 * Collects the body of a response. It keeps all of a failing response, up to `keepFailingBytes` and while shared memory is
 * free. Of any other or larger response it keeps the first `keepBytes`.
 */
export class KeptBody {
  readonly #limits: KeepLimits
  readonly #shared: SharedBytes
  #maxBytes: number
  readonly #chunks = new ChunkList()
  #receivedBytes = 0
  #borrowedBytes = 0
  #isCut = false
  /** Bytes received and not kept. */
  discardedBytes = 0

  constructor(limits: KeepLimits, shared: SharedBytes) {
    this.#limits = limits
    this.#shared = shared
    this.#maxBytes = limits.keepBytes
  }

  /** A response with this status begins. */
  begin(status: number): void {
    const { keepBytes, keepFailingBytes = 0 } = this.#limits
    this.#maxBytes = status >= 200 && status < 300 ? keepBytes : Math.max(keepBytes, keepFailingBytes)
  }

  /** The next bytes of the body. */
  add(chunk: Buffer): void {
    if (this.#isCut) {
      this.discardedBytes += chunk.byteLength
      return
    }
    this.#receivedBytes += chunk.byteLength
    this.#chunks.add(chunk)
    if (!this.#fits()) this.#cut()
  }

  /** The body is complete. */
  finish(): Kept {
    const body = this.#joined(this.#receivedBytes)
    this.#chunks.clear()
    return { body, truncated: this.#isCut }
  }

  /** Gives back the shared memory when the body is no longer used. May be called at any time and more than once. */
  release(): void {
    this.#shared.give(this.#borrowedBytes)
    this.#borrowedBytes = 0
  }

  #fits(): boolean {
    const beyondBytes = this.#receivedBytes - this.#limits.keepBytes
    if (beyondBytes <= this.#borrowedBytes) return true
    if (this.#receivedBytes > this.#maxBytes || !this.#shared.take(beyondBytes - this.#borrowedBytes)) return false
    this.#borrowedBytes = beyondBytes
    return true
  }

  #cut(): void {
    this.#isCut = true
    this.discardedBytes = this.#receivedBytes - this.#limits.keepBytes
    this.#receivedBytes = this.#limits.keepBytes
    const kept = Buffer.from(this.#joined(this.#receivedBytes).buffer)
    this.#chunks.clear()
    this.#chunks.add(kept)
    this.release()
  }

  #joined(bytes: number): Uint8Array {
    const body = new Uint8Array(bytes)
    let at = 0
    for (const chunk of this.#chunks.chunks) {
      const slice = chunk.byteLength <= bytes - at ? chunk : chunk.subarray(0, bytes - at)
      body.set(slice, at)
      at += slice.byteLength
    }
    return body
  }
}
