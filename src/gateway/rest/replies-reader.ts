import type { HomeportError } from '../../contract/errors/errors.js'
import type { LentBytes } from '../resp/lent-memory.js'

/** Receives a large bulk string while it arrives. */
export interface LargeReplySink {
  /** Takes the next bytes. */
  take(bytes: LentBytes): void
  /** Called when the whole string has arrived. */
  end(): void
  /** Called when the rest will never arrive. */
  abort(): void
}

/** Drops the rest of a large reply whose request is already answered. */
export const UNWANTED: LargeReplySink = { take: () => {}, end: () => {}, abort: () => {} }

/** Receives the replies to the commands of a request. */
export interface RepliesReader {
  /**
   * Called when a large bulk string of `bytes` bytes has begun, behind `count` replies, which `before` joins. Returns the
   * sink for the string; the reader does not get these replies again. Undefined: the string and the replies before it are
   * gathered like others.
   */
  onLarge?(before: () => Buffer, count: number, bytes: number): LargeReplySink | undefined
  /** Takes the bytes of all replies, or of the replies behind the last large one. */
  onReplies(replies: LentBytes): void
  /** Called when the rest will never arrive: the engine is lost, the client gets no more, or the gateway has a defect. */
  onLost(error: unknown): void
}

/** The client of the replies: says how much may be held for it, and when it has read. */
export interface RepliesClient {
  /** Bytes of replies that may be held for the client. */
  readonly maxUnreadBytes: number
  /** Counts `bytes` more bytes that are held until all replies have arrived. @returns the error if they must not be held */
  holdReplies(bytes: number): HomeportError | undefined
  /** Resolves when the client has read enough to get more. Rejects with a `HomeportError` when it gets no more. */
  whenWanted(): Promise<void>
}
