import { once } from 'node:events'
import { MessageChannel, type Worker } from 'node:worker_threads'
import { systemClock, type Timer } from '../../base/index.js'
import { type CheckpointLink, setGone, sharedMemory } from './paced-checkpoints.js'
import { startScript } from './start-thread.js'
import { type LogLength, logLength } from './write-ahead-log.js'

/** Delay before the log is measured, so that many writes cost one measurement. */
const MEASURE_AFTER_MS = 20
/** The same delay after a measurement that found a short log: measuring takes time of the main thread. */
const MEASURE_SHORT_AFTER_MS = 100
/** New pages (8 MB) after which the log is checkpointed. */
const CHECKPOINT_FRAMES = 2_000
/** Pages (48 MB) after which the log should restart from its beginning. */
const RESTART_FRAMES = 12_000
/** The thread ends after this idle time, to free its memory. */
const IDLE_MS = 60_000

/**
 * State of the thread. `none`: before the first long log, after a long idle time, and when it has failed, as for lack of
 * memory or descriptors: the next long log starts another one. `emptying`: the log will restart after this checkpoint, and
 * the writer's background batches wait for it. `over`: the store is closed.
 */
type State =
  | { readonly kind: 'none' }
  | { readonly kind: 'over' }
  | { readonly kind: 'checkpointing' | 'emptying'; readonly worker: Worker }
  | { readonly kind: 'idle'; readonly worker: Worker; readonly end: Timer }

/** The functions of the writer that the checkpointer needs. */
export interface CheckpointingWriter {
  /** Makes background batches wait until `checkpoint`; calls `onPaused` when none is running any more. */
  pauseBatches(onPaused: () => void): void
  /** Checkpoints the rest, which is little now, and lets background batches continue. */
  checkpoint(): void
  /** Gives the writer a link to the thread, for small checkpoints. */
  link(link: CheckpointLink): void
}

/**
 * Checkpoints the write-ahead log, that is, copies it into the database file, on its own thread and connection. If the
 * writer did it, one commit every few megabytes would take many times as long as the others, and delay all that wait
 * behind it. SQLite lets another connection checkpoint while the writer continues.
 *
 * SQLite restarts the log only if all of it has been copied between two commits, which never happens under load. So when
 * the log is long, the writer's background batches wait for a moment, in which next to nothing is added, and the writer
 * copies that rest itself. If the log gets very long all the same, the writer checkpoints all of it, so correctness does
 * not depend on this class.
 *
 * While the writer runs background batches, it requests smaller and more frequent checkpoints: see `PacedCheckpoints`.
 */
export class Checkpointer {
  readonly #path: string
  readonly #writer: CheckpointingWriter
  #state: State = { kind: 'none' }
  #measuring: Timer | undefined
  #measureAfterMs = MEASURE_AFTER_MS
  /** Memory shared with the current thread. */
  #shared = sharedMemory()
  /** Length of the log at the last checkpoint. */
  #checkpointed: LogLength = { generation: '', frames: 0 }
  readonly #meter: { checkpoints: number } | undefined

  /** @param path of the database file. */
  constructor(path: string, writer: CheckpointingWriter, meter?: { checkpoints: number }) {
    this.#path = path
    this.#meter = meter
    this.#writer = writer
  }

  /** Call on every write: the log may become long. */
  noteWrite(): void {
    if (this.#measuring || this.#state.kind === 'over') return
    this.#measuring = systemClock.after(this.#measureAfterMs, () => {
      this.#measuring = undefined
      if (this.#state.kind === 'none' || this.#state.kind === 'idle') this.#checkpointIfLong()
    })
  }

  #checkpointIfLong(): void {
    const length = logLength(this.#path)
    if (!length) return
    const before = length.generation === this.#checkpointed.generation ? this.#checkpointed.frames : 0
    const added = length.frames - before
    this.#measureAfterMs = added < CHECKPOINT_FRAMES / 4 ? MEASURE_SHORT_AFTER_MS : MEASURE_AFTER_MS
    if (added < CHECKPOINT_FRAMES) return
    this.#checkpointed = length
    const worker = this.#thread()
    if (!worker) return
    this.#state = { kind: 'checkpointing', worker }
    if (this.#meter) this.#meter.checkpoints++
    worker.postMessage('checkpoint')
  }

  #empty(worker: Worker): void {
    this.#state = { kind: 'emptying', worker }
    this.#writer.pauseBatches(() => {
      if (this.#state.kind === 'emptying') worker.postMessage('checkpoint')
    })
  }

  /** Undefined when the system has no thread left. */
  #thread(): Worker | undefined {
    if (this.#state.kind === 'idle') {
      this.#state.end.cancel()
      return this.#state.worker
    }
    const script = new URL(`./checkpoint-thread${import.meta.url.slice(-3)}`, import.meta.url)
    const { port1, port2 } = new MessageChannel()
    const shared = sharedMemory()
    const worker = started(() => startScript(script, { path: this.#path, link: { port: port1, shared } }, [port1]))
    if (!worker) return undefined
    this.#shared = shared
    this.#writer.link({ port: port2, shared })
    worker.on('message', () => this.#done(worker))
    worker.on('error', () => {
      setGone(shared)
      if (!('worker' in this.#state) || this.#state.worker !== worker) return
      if (this.#state.kind === 'emptying') this.#writer.checkpoint()
      if (this.#state.kind === 'idle') this.#state.end.cancel()
      this.#state = { kind: 'none' }
    })
    worker.unref()
    return worker
  }

  #done(worker: Worker): void {
    if (this.#state.kind === 'emptying') this.#writer.checkpoint()
    else if (this.#state.kind !== 'checkpointing') return
    else if (this.#checkpointed.frames >= RESTART_FRAMES) {
      this.#empty(worker)
      return
    }
    const end = systemClock.after(IDLE_MS, () => {
      this.#state = { kind: 'none' }
      this.#end(worker)
    })
    this.#state = { kind: 'idle', worker, end }
    this.noteWrite()
  }

  /** Ends the thread. The writer closes last and checkpoints the rest. */
  async close(): Promise<void> {
    const before = this.#state
    this.#state = { kind: 'over' }
    this.#measuring?.cancel()
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

function started(start: () => Worker): Worker | undefined {
  try {
    return start()
  } catch {
    return undefined
  }
}
