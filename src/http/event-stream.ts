import { Readable } from 'node:stream'
import type { Clock, Timer } from '../base/index.js'
import { type Call, type Reply, reply } from './route.js'

/** Interval of comments, so that no proxy closes an idle connection, and of checks of the reader's credentials. */
const CHECK_EVERY_MS = 15_000
const COMMENT = ': still there\n\n'

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // nginx would buffer some kilobytes of events.
  'x-accel-buffering': 'no',
  // A stopping server must not wait for this connection.
  connection: 'close',
} as const

/** Whether a caller wants server-sent events. */
export const wantsEvents = ({ headers }: Pick<Call, 'headers'>): boolean =>
  headers.accept?.includes('text/event-stream') ?? false

/**
 * A response of server-sent events that stays open.
 *
 * The caller yields the events that are there and then waits with `next`. The stream ends when the reader has disconnected
 * or lost its access, after `end`, and when the caller's iterable ends.
 */
export class EventStream {
  readonly #clock: Clock
  readonly #call: Pick<Call, 'signal' | 'isStillAllowed'>
  #timer: Timer
  #wake: () => void = () => undefined
  #hasNews = false
  #isCheckDue = false
  #isEnded: boolean

  constructor(clock: Clock, call: Pick<Call, 'signal' | 'isStillAllowed'>) {
    this.#clock = clock
    this.#call = call
    this.#isEnded = call.signal.aborted
    this.#timer = this.#nextCheck()
  }

  /**
   * The response.
   * @param onClose called once, even if the stream is never read because earlier answers of its connection are unread.
   */
  reply(events: AsyncIterable<string>, onClose: () => void): Reply {
    const { signal } = this.#call
    const stream = Readable.from(events).once('close', () => {
      this.end()
      onClose()
    })
    const leave = (): void => {
      this.end()
      stream.destroy()
    }
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
    return reply(200, stream, HEADERS)
  }

  /** Wakes the stream: there may be something to send. */
  notify(): void {
    this.#hasNews = true
    this.#wake()
  }

  /** Ends the stream. Events that were yielded are still sent. */
  end(): void {
    this.#isEnded = true
    this.#timer.cancel()
    this.#wake()
  }

  /**
   * Waits until there may be something to send, and for `leastMs` at least.
   * @param mostMs limits the wait, for changes without a call of `notify`.
   * @returns text to send before the next events, which may be empty; `undefined` when the stream has ended.
   */
  async next(leastMs = 0, mostMs = Number.POSITIVE_INFINITY): Promise<string | undefined> {
    await this.#wait(leastMs, () => this.#isEnded)
    await this.#wait(mostMs, () => this.#isEnded || this.#hasNews || this.#isCheckDue)
    this.#hasNews = false
    const isCheck = this.#isCheckDue && !this.#isEnded
    if (isCheck && !(await this.#call.isStillAllowed())) this.end()
    if (this.#isEnded) return undefined
    if (!isCheck) return ''
    this.#isCheckDue = false
    this.#timer = this.#nextCheck()
    return COMMENT
  }

  #nextCheck(): Timer {
    return this.#clock.after(CHECK_EVERY_MS, () => {
      this.#isCheckDue = true
      this.#wake()
    })
  }

  async #wait(ms: number, isOver: () => boolean): Promise<void> {
    if (ms === 0 || isOver()) return
    await new Promise<void>((resolve) => {
      const timer = ms === Number.POSITIVE_INFINITY ? undefined : this.#clock.after(ms, resolve)
      this.#wake = () => {
        if (!isOver()) return
        timer?.cancel()
        resolve()
      }
    })
  }
}
