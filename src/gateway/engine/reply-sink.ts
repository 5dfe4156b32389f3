import type { HomeportError } from '../../contract/errors/errors.js'

/** What an engine may be doing for long that owes a reply: running a script, or waiting for something to happen. */
export type Awaited = 'script' | 'event'

/** Who waits for replies of an engine. */
export interface ReplySink {
  /** What the replies are awaited from, where that is no ordinary command. */
  readonly awaits?: Awaited | undefined
  /**
   * The bytes [start, end) of `chunk` are this sink's, in order; `completed` replies ended in them, and the last bytes
   * may be the beginning of one more. The chunk may be lent: who needs its bytes after the call takes them with `kept`
   * or `copied` (`lent-memory.ts`).
   */
  deliver(chunk: Buffer, start: number, end: number, completed: number): void
  /** `count` replies will never come; of the first of them the beginning was delivered when `partial`. */
  fail(count: number, error: HomeportError, partial: boolean): void
}

/** For commands whose replies interest nobody. */
export const DISCARD: ReplySink = { deliver: () => {}, fail: () => {} }
