import type { MessagePort } from 'node:worker_threads'

/**
 * Small checkpoints, of a few hundred pages each, that the writer requests while it runs background batches. One runs while
 * the writer computes its next transaction, and the commit waits for it: if both used the disk at the same time, the
 * commit would take many times as long. The state is in shared memory, so the writer can wait without its event loop.
 */

/** The writer's link to a checkpoint thread. */
export interface CheckpointLink {
  /** Each message requests one checkpoint. */
  readonly port: MessagePort
  /** Accessed with `Atomics`, at the indexes below. */
  readonly shared: SharedArrayBuffer
}

/** Indexes in the shared memory: state of the thread, and length of the log at its last checkpoint, pages. */
const STATE = 0
const LOG_PAGES = 1
const SHARED_NUMBERS = 2

/** Values of `STATE`. `GONE`: the thread ends and answers no request. */
const IDLE = 0
const REQUESTED = 1
const GONE = 2

/** Target size of a checkpoint, pages: small enough to finish before the next transaction commits. */
const TARGET_PAGES = 300
/** Maximum number of transactions between two checkpoints. */
const MAX_COMMITS = 30
/** Pages (6 MB) after which the log should restart from its beginning, so that its file stays small. */
const LONG_LOG_PAGES = 1_500
/** Longest wait of a commit for a checkpoint: on a slow disk, waiting longer would not pay. */
const MAX_WAIT_MS = 5

/** Creates the shared memory of a link. */
export function sharedMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(SHARED_NUMBERS * Int32Array.BYTES_PER_ELEMENT)
}

/** Signals to the writer that the thread has ended. */
export function setGone(shared: SharedArrayBuffer): void {
  const numbers = new Int32Array(shared)
  Atomics.store(numbers, STATE, GONE)
  Atomics.notify(numbers, STATE)
}

/** Signals to the writer that the checkpoint is done; `logPages` is the length of the log. */
export function setDone(shared: SharedArrayBuffer, logPages: number): void {
  const numbers = new Int32Array(shared)
  Atomics.store(numbers, LOG_PAGES, logPages)
  Atomics.compareExchange(numbers, STATE, REQUESTED, IDLE)
  Atomics.notify(numbers, STATE)
}

/** The writer's side of a link. */
export class PacedCheckpoints {
  readonly #port: MessagePort
  readonly #shared: Int32Array
  /** Transactions since the last request, and between the last two requests. */
  #commits = 0
  #commitsBefore = 1
  /** Desired number of transactions between two requests. */
  #commitsApart = 1
  #logPages = 0

  constructor({ port, shared }: CheckpointLink) {
    this.#port = port
    this.#shared = new Int32Array(shared)
  }

  /**
   * Call before a background transaction. Requests a checkpoint if one is due; if the log is long, also waits for its end,
   * so that nothing is left to copy and the transaction restarts the log.
   */
  beforeTransaction(): void {
    if (this.#commits >= this.#commitsApart) this.#request()
    this.#commits++
  }

  #request(): void {
    if (Atomics.compareExchange(this.#shared, STATE, IDLE, REQUESTED) !== IDLE) return
    this.#adaptInterval()
    this.#port.postMessage('checkpoint')
    if (this.#logPages >= LONG_LOG_PAGES && this.awaitEnd() === IDLE) this.#noteRestart()
  }

  /** Waits some milliseconds for a running checkpoint; returns the value of `STATE`. */
  awaitEnd(): number {
    Atomics.wait(this.#shared, STATE, REQUESTED, MAX_WAIT_MS)
    return Atomics.load(this.#shared, STATE)
  }

  /** Computes from the log's growth between two checkpoints how many transactions make one of the target size. */
  #adaptInterval(): void {
    const logPages = Atomics.load(this.#shared, LOG_PAGES)
    const added = logPages > this.#logPages ? logPages - this.#logPages : logPages
    if (added > 0) this.#commitsApart = clamp(1, MAX_COMMITS, Math.round((TARGET_PAGES * this.#commitsBefore) / added))
    this.#logPages = logPages
    this.#commitsBefore = this.#commits
    this.#commits = 0
  }

  #noteRestart(): void {
    Atomics.store(this.#shared, LOG_PAGES, 0)
    this.#logPages = 0
  }

  /** Closes the link. */
  close(): void {
    this.#port.close()
  }
}

function clamp(min: number, max: number, value: number): number {
  return Math.min(Math.max(value, min), max)
}
