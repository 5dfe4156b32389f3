/**
 * Commands of one client that may be pending: at first, and at most. The window starts small, so that few huge replies are
 * pending before their size is known.
 */
const FIRST_WINDOW = 32
const MAX_WINDOW = 256
/** With a window of one, a command that is sent in pieces would wait for its own reply. */
const SMALLEST_WINDOW = 2
/** Pending replies, if as long as the latest ones, may take this share of the bytes that the client may leave unread. */
const SHARE_OF_PENDING = 1 / 4

/**
 * How many commands of one client may be pending in the engine. Fewer where replies are long: an engine builds all of them
 * at once, and a shared lane delivers them whether the client reads or not.
 */
export class ReplyWindow {
  readonly #maxUnreadBytes: number
  #size: number
  /** Length of the latest replies, bytes, at least half of the previous value: pending replies may be as long as before. */
  #replyBytes = 0

  /** The client may leave `maxUnreadBytes` unread, and no reply is longer than `maxReplyBytes`. */
  constructor(maxUnreadBytes: number, maxReplyBytes: number) {
    this.#maxUnreadBytes = maxUnreadBytes
    this.#size = windowOf(FIRST_WINDOW, maxUnreadBytes, maxReplyBytes)
  }

  /** Commands that may be pending. */
  get size(): number {
    return this.#size
  }

  /** Records that `count` replies of `bytes` bytes in total have arrived. */
  answered(count: number, bytes: number): void {
    this.#replyBytes = Math.max(bytes / count, this.#replyBytes / 2)
    this.#resize(this.#size)
  }

  /** Doubles the window after it was full, as far as the length of the replies allows. */
  widen(): void {
    this.#resize(Math.min(2 * this.#size, MAX_WINDOW))
  }

  #resize(size: number): void {
    this.#size = windowOf(size, this.#maxUnreadBytes * SHARE_OF_PENDING, this.#replyBytes)
  }
}

/** Number of replies of `replyBytes` bytes that fit into `bytes`: at most `most`, at least `SMALLEST_WINDOW`. */
function windowOf(most: number, bytes: number, replyBytes: number): number {
  return Math.max(SMALLEST_WINDOW, Math.min(most, Math.floor(bytes / replyBytes)))
}
