import { type BodyWatcher, joinPieces } from './body.js'

/** The body of a request that its handler reads by itself, once. */
export class ArrivingBody {
  readonly #read: (watch: BodyWatcher) => Promise<readonly Uint8Array[]>

  /** @param read the body, within its limits. */
  constructor(read: (watch: BodyWatcher) => Promise<readonly Uint8Array[]>) {
    this.#read = read
  }

  /**
   * Reads the body; `watch` is shown what comes of it. The pieces stay apart: to join megabytes takes as much memory again.
   * @throws HomeportError what is wrong with the body; to be thrown on.
   */
  async read(watch: BodyWatcher): Promise<PiecedBody> {
    return new PiecedBody(await this.#read(watch))
  }
}

/** A body in the pieces in which it has come. */
export class PiecedBody {
  readonly #pieces: readonly Uint8Array[]

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  /** All of it in one piece. */
  async whole(): Promise<Uint8Array> {
    return joinPieces(this.#pieces)
  }
}
