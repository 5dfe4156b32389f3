import type { Socket } from 'node:net'
import type { LentBytes } from '../resp/lent-memory.js'
import { CoalescingWriter } from './coalescing-writer.js'
import { WaitingSenders } from './waiting-senders.js'

/** From this size on, bytes are sent before the turn ends, so that the engine can work. Less would wake it too often. */
const EARLY_FLUSH_BYTES = 64 * 1024
/** Unsent bytes above which senders should wait for `onceWritable`. */
const CONGESTED_BYTES = 1024 * 1024

/**
 * Commands on their way to an engine. While the queue is connected, they go out once per turn of the event loop, or earlier
 * if they are many. They wait while the queue is not connected or is held.
 */
export class SendQueue {
  /** Number of replies to the commands that wait. */
  unsentReplies = 0
  readonly #writer = new CoalescingWriter()
  readonly #waiting = new WaitingSenders(() => this.isCongested)
  #socket: Socket | undefined
  #isHeld = false
  #flushScheduled = false

  /** Whether nothing waits. */
  get isEmpty(): boolean {
    return this.#writer.pendingBytes === 0
  }

  /** Whether the queue sends nothing until `proceed`. */
  get isHeld(): boolean {
    return this.#isHeld
  }

  /** Whether the engine does not keep up with what is sent. */
  get isCongested(): boolean {
    return (this.#socket?.writableLength ?? 0) + this.#writer.pendingBytes > CONGESTED_BYTES
  }

  /** Adds the bytes [start, end), which have `replies` replies. */
  add(bytes: LentBytes, start: number, end: number, replies: number): void {
    this.unsentReplies += replies
    this.#writer.append(bytes, start, end)
    this.#schedule()
  }

  /** Like `add`, for text. */
  addText(text: string, replies: number): void {
    this.unsentReplies += replies
    this.#writer.appendText(text)
    this.#schedule()
  }

  /** Calls back once the queue is no longer congested, or the connection is over. */
  onceWritable(callback: () => void): void {
    this.#waiting.add(callback)
  }

  /** Sends to this socket from now on. */
  connect(socket: Socket): void {
    this.#socket = socket
    socket.on('drain', () => this.#waiting.release())
    this.#schedule()
  }

  /** Sends nothing until the next `connect`. */
  disconnect(): void {
    this.#socket = undefined
    this.#isHeld = false
  }

  /** Sends the waiting commands, and nothing more until `proceed` or the next connection. */
  hold(): void {
    this.#flush()
    this.#isHeld = true
  }

  /** Sends the commands that have waited since `hold`. */
  proceed(): void {
    this.#isHeld = false
    this.#schedule()
  }

  /** Drops the waiting commands. */
  clear(): void {
    this.#writer.clear()
    this.unsentReplies = 0
  }

  /** Lets all waiting senders continue, because the connection is over. */
  releaseAll(): void {
    this.#waiting.releaseAll()
  }

  #schedule(): void {
    if (this.#socket === undefined) return
    if (this.#writer.pendingBytes >= EARLY_FLUSH_BYTES) this.#flush()
    else if (!this.#flushScheduled) {
      this.#flushScheduled = true
      setImmediate(this.#onTurnEnd)
    }
  }

  readonly #onTurnEnd = (): void => {
    this.#flushScheduled = false
    this.#flush()
  }

  #flush(): void {
    if (this.#socket === undefined || this.#isHeld) return
    this.unsentReplies = 0
    this.#writer.flush(this.#socket)
  }
}
