import { once } from 'node:events'
import { MessageChannel, type Worker } from 'node:worker_threads'
import { systemClock, type Timer } from '../../base/index.js'
import { type CheckpointLink, setGone, sharedMemory } from './paced-checkpoints.js'
import { startScript } from './start-thread.js'
import { type LogLength, logLength } from './write-ahead-log.js'

/** Many writes cost one look at the log. */
const LOOK_AFTER_MS = 20
/** The log is checkpointed from so many new pages on (8 MB): rarely enough to cost little. */
const LONG_FRAMES = 2_000
/** From so many pages on (48 MB) it is to begin anew. */
const FULL_FRAMES = 12_000
/** A thread that has had nothing to do for so long gives its memory back. */
const IDLE_MS = 60_000

/**
 * Where the thread stands: there is none until the log is long for the first time, and after it was idle for long.
 * `emptying` when the log is to begin anew after it, and the background of the writer waits for that. `over` when the
 * store is closed, or the thread has met an error.
 */
type State =
  | { readonly kind: 'none' }
  | { readonly kind: 'over' }
  | { readonly kind: 'checkpointing' | 'emptying'; readonly worker: Worker }
  | { readonly kind: 'idle'; readonly worker: Worker; readonly end: Timer }

/** What is asked of the writer. */
export interface CheckpointingWriter {
  /** Operations of the background have to wait until `checkpoint`; calls `held` when none is being worked on any more. */
  hold(held: () => void): void
  /** Checkpoints what is left, which is little now. */
  checkpoint(): void
  /** May ask the thread for small checkpoints by itself from now on. */
  lend(link: CheckpointLink): void
}

/**
 * Checkpoints the write-ahead log: copies it into the file, on a thread and a connection of its own. Were it left to the
 * writer, every few megabytes one commit would take many times as long as the others, and whatever waits behind it as
 * well: SQLite lets another connection do it while the writer goes on.
 *
 * The log begins anew only when all of it was copied between two commits, which would never happen while many are made.
 * So when it is long, the background of the writer has to wait for a moment, in which next to nothing is added; and the
 * writer itself copies that. It does all of it itself only when the log has become very long all the same; so nothing
 * depends on this one.
 *
 * While the writer works on its background, it asks the thread by itself, more often and for less: `PacedCheckpoints`.
 */
export class Checkpointer {
  readonly #path: string
  readonly #writer: CheckpointingWriter
  #state: State = { kind: 'none' }
  #look: Timer | undefined
  /** Of the present thread. */
  #shared = sharedMemory()
  /** As long as the log was when it was checkpointed last. */
  #checkpointed: LogLength = { life: '', frames: 0 }

  /** @param path of the database file. */
  constructor(path: string, writer: CheckpointingWriter) {
    this.#path = path
    this.#writer = writer
  }

  /** Something is being written: the log may become long. */
  notice(): void {
    if (this.#look || this.#state.kind === 'over') return
    this.#look = systemClock.after(LOOK_AFTER_MS, () => {
      this.#look = undefined
      if (this.#state.kind === 'none' || this.#state.kind === 'idle') this.#checkpointIfLong()
    })
  }

  #checkpointIfLong(): void {
    const length = logLength(this.#path)
    if (!length) return
    const before = length.life === this.#checkpointed.life ? this.#checkpointed.frames : 0
    if (length.frames - before < LONG_FRAMES) return
    this.#checkpointed = length
    const worker = this.#thread()
    this.#state = { kind: 'checkpointing', worker }
    worker.postMessage('checkpoint')
  }

  #empty(worker: Worker): void {
    this.#state = { kind: 'emptying', worker }
    this.#writer.hold(() => {
      if (this.#state.kind === 'emptying') worker.postMessage('checkpoint')
    })
  }

  #thread(): Worker {
    if (this.#state.kind === 'idle') {
      this.#state.end.cancel()
      return this.#state.worker
    }
    const script = new URL(`./checkpoint-thread${import.meta.url.slice(-3)}`, import.meta.url)
    const { port1, port2 } = new MessageChannel()
    const shared = sharedMemory()
    const worker = startScript(script, [], { path: this.#path, link: { port: port1, shared } }, [port1])
    this.#shared = shared
    this.#writer.lend({ port: port2, shared })
    worker.on('message', () => this.#done(worker))
    worker.on('error', () => {
      setGone(shared)
      if (this.#state.kind === 'emptying') this.#writer.checkpoint()
      this.#state = { kind: 'over' }
    })
    worker.unref()
    return worker
  }

  #done(worker: Worker): void {
    if (this.#state.kind === 'emptying') this.#writer.checkpoint()
    else if (this.#state.kind !== 'checkpointing') return
    else if (this.#checkpointed.frames >= FULL_FRAMES) {
      this.#empty(worker)
      return
    }
    const end = systemClock.after(IDLE_MS, () => {
      this.#state = { kind: 'none' }
      this.#end(worker)
    })
    this.#state = { kind: 'idle', worker, end }
    this.notice()
  }

  /** Lets the thread end; the writer, who leaves last, checkpoints what is left. */
  async close(): Promise<void> {
    const before = this.#state
    this.#state = { kind: 'over' }
    this.#look?.cancel()
    if (before.kind === 'none' || before.kind === 'over') return
    if (before.kind === 'idle') before.end.cancel()
    const ended = once(before.worker, 'exit')
    this.#end(before.worker)
    await ended
  }

  #end(worker: Worker): void {
    setGone(this.#shared)
    worker.postMessage('close')
  }
}
