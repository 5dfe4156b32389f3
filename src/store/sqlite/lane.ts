import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { HomeportError } from '../../contract/errors.js'
import { type Call, type FromThread, type Outcome, type ThreadSettings, type ToThread, toError } from './protocol.js'

/** A larger batch would make its first caller wait for its last. */
const LARGEST_BATCH = 1_000

interface Waiting {
  readonly call: Call
  readonly resolve: (value: unknown) => void
  readonly reject: (error: Error) => void
}

/**
 * The way to one store thread. Calls of one tick go together; calls that come while the thread works wait and then go
 * together, so the busier the store is, the more operations share one wait for the disk.
 *
 * States: `open` (a batch may or may not be under way) and `closed` (with the reason that callers get).
 */
export class Lane {
  readonly #worker: Worker
  readonly #onFailure: (error: Error) => void
  #waiting: Waiting[] = []
  #underWay: Waiting[] = []
  #flushPlanned = false
  #closed: Error | undefined

  private constructor(worker: Worker, onFailure: (error: Error) => void) {
    this.#worker = worker
    this.#onFailure = onFailure
    worker.on('message', (message: FromThread) => this.#receive(message))
    worker.on('error', (error: unknown) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    worker.on('exit', () => this.#fail(new Error('the store thread has ended')))
  }

  /** Starts a thread and resolves when it has opened the file and, for the writer, brought the schema up to date. */
  static async open(settings: ThreadSettings, onFailure: (error: Error) => void): Promise<Lane> {
    const worker = startThread(settings)
    await once(worker, 'message')
    return new Lane(worker, onFailure)
  }

  /** Runs one operation on the thread. */
  run(name: string, args: unknown): Promise<unknown> {
    if (this.#closed) return Promise.reject(this.#closed)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call: { name, args }, resolve, reject })
      this.#planFlush()
    })
  }

  /** Waits for what is under way and ends the thread. */
  async close(): Promise<void> {
    if (this.#closed) return
    while (this.#waiting.length > 0 || this.#underWay.length > 0) await new Promise((resolve) => setImmediate(resolve))
    this.#closed = new HomeportError('starting', {})
    const ended = once(this.#worker, 'exit')
    this.#tell({ kind: 'close' })
    await ended
  }

  #planFlush(): void {
    if (this.#flushPlanned || this.#underWay.length > 0) return
    this.#flushPlanned = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#flushPlanned = false
    if (this.#underWay.length > 0 || this.#waiting.length === 0) return
    this.#underWay = this.#waiting.splice(0, LARGEST_BATCH)
    this.#tell({ kind: 'run', calls: this.#underWay.map((waiting) => waiting.call) })
  }

  #tell(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #receive(message: FromThread): void {
    if (message.kind === 'ready') return
    const batch = this.#underWay
    this.#underWay = []
    this.#flush()
    batch.forEach((waiting, index) => settle(waiting, message.outcomes[index]))
  }

  #fail(error: Error): void {
    if (this.#closed) return
    this.#closed = new HomeportError('store_unavailable', {}, { cause: error })
    const lost = [...this.#underWay, ...this.#waiting]
    this.#underWay = []
    this.#waiting = []
    for (const waiting of lost) waiting.reject(this.#closed)
    this.#onFailure(error)
  }
}

/** Compiled code runs as it is; sources, in tests and while developing, through a loader that the thread must set up. */
function startThread(workerData: ThreadSettings): Worker {
  if (!import.meta.url.endsWith('.ts')) return new Worker(new URL('./thread.js', import.meta.url), { workerData })
  const thread = new URL('./thread.ts', import.meta.url).href
  const loading = `import('tsx/esm/api').then((tsx) => { tsx.register(); return import(${JSON.stringify(thread)}) })`
  return new Worker(loading, { workerData, eval: true })
}

function settle(waiting: Waiting, outcome: Outcome | undefined): void {
  if (!outcome) waiting.reject(new Error(`store operation ${waiting.call.name} got no outcome`))
  else if ('value' in outcome) waiting.resolve(outcome.value)
  else waiting.reject(toError(outcome.failure, waiting.call.name))
}
