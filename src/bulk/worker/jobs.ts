import type { Store } from '../../store/index.js'
import type { BulkMeter } from '../../telemetry/index.js'
import type { BulkActionRow } from '../transactions/bulk-action.js'
import { Job } from './job.js'

/** The actions that a worker processes, and the order in which they get their next batches. */
export class Jobs {
  readonly #store: Store
  readonly #meter: BulkMeter
  readonly #bySeq = new Map<number, Job>()
  /** Jobs that may get a batch, each at most once. */
  readonly #queue: Job[] = []
  /** For each read that `noteEnds` waits for: the actions that have ended since it began. */
  readonly #noted = new Set<Set<number>>()

  constructor(store: Store, meter: BulkMeter) {
    this.#store = store
    this.#meter = meter
  }

  /** The job of an action; `undefined` when it has none. */
  get(seq: number): Job | undefined {
    return this.#bySeq.get(seq)
  }

  /** The job of an action. A new one is queued. */
  of(action: BulkActionRow): Job {
    const known = this.#bySeq.get(action.seq)
    if (known) return known
    const job = new Job(this.#store, action)
    this.#bySeq.set(action.seq, job)
    this.#meter.active = this.#bySeq.size
    this.#queue.push(job)
    return job
  }

  /** Whether a job has neither ended nor been replaced. */
  isActive(job: Job): boolean {
    return this.#bySeq.get(job.action.seq) === job
  }

  /** Queues a job again unless it has ended or is queued already. */
  requeue(job: Job): void {
    if (this.isActive(job) && !this.#queue.includes(job)) this.#queue.push(job)
  }

  /** Takes the first queued job whose rate limit allows a batch now. */
  takeReady(now: number): Job | undefined {
    const index = this.#queue.findIndex((job) => job.waitMs(now) === 0)
    return index < 0 ? undefined : this.#queue.splice(index, 1)[0]
  }

  get hasQueued(): boolean {
    return this.#queue.length > 0
  }

  /** Milliseconds until `takeReady` answers a job, if one is queued. */
  waitMs(now: number): number {
    return Math.min(...this.#queue.map((job) => job.waitMs(now)))
  }

  /** Removes an action that is not processed here any more, and gives it to the callers that wait for it. */
  end(action: BulkActionRow): void {
    for (const ended of this.#noted) ended.add(action.seq)
    const job = this.#bySeq.get(action.seq)
    if (!job) return
    this.#bySeq.delete(action.seq)
    this.#meter.active = this.#bySeq.size
    const index = this.#queue.indexOf(job)
    if (index >= 0) this.#queue.splice(index, 1)
    job.end(action)
  }

  /** Reads running actions. Leaves out actions that ended during the read, because their rows are outdated. */
  async noteEnds(read: () => Promise<readonly BulkActionRow[]>): Promise<readonly BulkActionRow[]> {
    const ended = new Set<number>()
    this.#noted.add(ended)
    try {
      return (await read()).filter(({ seq }) => !ended.has(seq))
    } finally {
      this.#noted.delete(ended)
    }
  }

  /** Rejects the waiters of all actions with an error that says why. */
  interrupt(reason: string): void {
    for (const job of this.#bySeq.values()) job.interrupt(reason)
  }

  /** Forgets all jobs. */
  clear(): void {
    this.#bySeq.clear()
    this.#queue.length = 0
  }
}
