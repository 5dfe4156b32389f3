import type { MessagePort } from 'node:worker_threads'

/**
 * Checkpoints that the writer asks for while it works on the background, each of a few hundred pages. One runs beside the
 * computing of the next transaction, whose commit waits for it: were both at the disk at once, the commit would take many
 * times as long, and with it everybody who waits for it. The answer is a number in memory that both threads see, so that
 * the writer can wait without a turn of its event loop.
 */

/** What the writer is lent of a checkpoint thread. */
export interface CheckpointLink {
  /** Each message asks for one checkpoint. */
  readonly port: MessagePort
  /** Read and written with `Atomics`, at the places below. */
  readonly shared: SharedArrayBuffer
}

/** Places in the shared memory: what the thread does, and how long the log was at its last checkpoint, in pages. */
const STATE = 0
const LOG_PAGES = 1
const PLACES = 2

/** What stands at `STATE`. `GONE`: the thread ends, and nothing that is asked will be answered. */
const IDLE = 0
const ASKED = 1
const GONE = 2

/** A checkpoint should move about so many pages: few enough to be over when the next transaction comes to its commit. */
const AIM_PAGES = 300
/** So many transactions lie between two checkpoints at most. */
const MOST_COMMITS = 30
/** From so many pages on (6 MB) the log is to begin anew, so that its file stays small. */
const LONG_LOG_PAGES = 1_500
/** A commit waits no longer than this: where the disk is slow, waiting would cost more than it brings. */
const LONGEST_WAIT_MS = 5

/** Memory for a link. */
export function sharedMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(PLACES * Int32Array.BYTES_PER_ELEMENT)
}

/** Tells the writer that the thread is there no more. */
export function setGone(shared: SharedArrayBuffer): void {
  const places = new Int32Array(shared)
  Atomics.store(places, STATE, GONE)
  Atomics.notify(places, STATE)
}

/** Tells the writer that what it has asked for is done; `logPages` is how long the log was. */
export function setDone(shared: SharedArrayBuffer, logPages: number): void {
  const places = new Int32Array(shared)
  Atomics.store(places, LOG_PAGES, logPages)
  Atomics.compareExchange(places, STATE, ASKED, IDLE)
  Atomics.notify(places, STATE)
}

/** The writer's side of a link. */
export class PacedCheckpoints {
  readonly #port: MessagePort
  readonly #places: Int32Array
  /** Transactions since the last checkpoint was asked for, and between that one and the one before. */
  #commits = 0
  #commitsBefore = 1
  /** So many are to lie between two. */
  #commitsApart = 1
  #logPages = 0

  constructor({ port, shared }: CheckpointLink) {
    this.#port = port
    this.#places = new Int32Array(shared)
  }

  /**
   * A transaction of the background is about to begin: asks for a checkpoint when one is due. When the log is long, waits
   * for its end, so that the transaction finds nothing left to move and begins the log anew.
   */
  beforeTransaction(): void {
    if (this.#commits >= this.#commitsApart) this.#ask()
    this.#commits++
  }

  #ask(): void {
    if (Atomics.compareExchange(this.#places, STATE, IDLE, ASKED) !== IDLE) return
    this.#learn()
    this.#port.postMessage('checkpoint')
    if (this.#logPages >= LONG_LOG_PAGES && this.awaitEnd() === IDLE) this.#begunAnew()
  }

  /** Waits for a checkpoint that is under way, for some milliseconds at most; answers what stands at `STATE` then. */
  awaitEnd(): number {
    Atomics.wait(this.#places, STATE, ASKED, LONGEST_WAIT_MS)
    return Atomics.load(this.#places, STATE)
  }

  /** By how much the log has grown from one checkpoint to the next tells how many transactions make the right size. */
  #learn(): void {
    const logPages = Atomics.load(this.#places, LOG_PAGES)
    const added = logPages > this.#logPages ? logPages - this.#logPages : logPages
    if (added > 0) this.#commitsApart = between(1, MOST_COMMITS, Math.round((AIM_PAGES * this.#commitsBefore) / added))
    this.#logPages = logPages
    this.#commitsBefore = this.#commits
    this.#commits = 0
  }

  #begunAnew(): void {
    Atomics.store(this.#places, LOG_PAGES, 0)
    this.#logPages = 0
  }

  /** Gives the link back. */
  close(): void {
    this.#port.close()
  }
}

function between(least: number, most: number, value: number): number {
  return Math.min(Math.max(value, least), most)
}
