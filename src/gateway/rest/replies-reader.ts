import type { HomeportError } from '../../contract/errors/errors.js'
import type { LentBytes } from '../resp/lent-memory.js'

/** Receives a large bulk string while it arrives. */
export interface LargeReplySink {
  /** The next bytes. */
  take(bytes: LentBytes): void
  /** All of it has arrived. */
  end(): void
  /** The rest will never arrive. */
  breakOff(): void
}

/** Receives the replies to the commands of a request. */
export interface RepliesReader {
  /**
   * A large bulk string of `bytes` bytes has begun, behind `count` replies, which `before` joins. Returns its sink, and the
   * reader gets none of these replies again. Undefined: it is gathered like any other reply, as are those before it.
   */
  onLarge?(before: () => Buffer, count: number, bytes: number): LargeReplySink | undefined
  /** The bytes of all replies, or of those behind the last large one. */
  onReplies(replies: LentBytes): void
  /** The rest will never arrive: the engine is lost, the client gets no more, or the gateway has a defect. */
  onLost(error: unknown): void
}

/** The client that replies are for: how much may be held for it, and how fast it reads. */
export interface RepliesClient {
  /** Bytes of replies that may be held for it. */
  readonly maxUnreadBytes: number
  /** `bytes` more bytes have to be held until all replies have arrived. @returns why they must not be, if so */
  holdReplies(bytes: number): HomeportError | undefined
  /** Resolves when it has read enough to get more. Rejects with a `HomeportError` when it gets no more. */
  whenWanted(): Promise<void>
}
