import { type Clock, type Service, type Timer, unreachable } from '../base/index.js'
import { HomeportError } from '../contract/errors.js'
import type { Queue } from '../queue/index.js'
import { operations, type Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import { Job, type Part } from './job.js'

/** What the worker works with. */
export interface WorkerDeps {
  readonly store: Store
  readonly queue: Pick<Queue, 'drop' | 'offer'>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * What the worker is doing.
 *
 *   new ──start──▶ idle ──a job──▶ working ──no job left──▶ idle
 *                                    │  ▲
 *                 the store cannot   ▼  │ the pause is over
 *                                   resting
 *
 * `stop` leads from each of them to `stopped`, for ever; a part that is under way is finished before. Jobs that come
 * while it is `new` wait for the start, jobs that come when it is `stopped` for the next life of the server.
 */
type State =
  | { readonly kind: 'new' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'idle' }
  | { readonly kind: 'working'; readonly ended: Promise<void> }
  | { readonly kind: 'resting'; readonly timer: Timer }

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000

/**
 * Works on the running actions, one part of one action at a time, each action in its turn: an action over a million
 * runs does not keep one over ten waiting. Nothing is lost when it stops at any point; what is decided is in the store.
 */
export class BulkWorker implements Service {
  readonly name = 'bulk worker'
  readonly #deps: WorkerDeps
  readonly #turns: Job[] = []
  #state: State = { kind: 'new' }
  #pauseMs = FIRST_PAUSE_MS

  constructor(deps: WorkerDeps) {
    this.#deps = deps
  }

  /** Takes up every action that an earlier life has left running. */
  async start(): Promise<void> {
    const rows = await this.#deps.store.run(operations.bulkRead.running, {})
    if (this.#state.kind !== 'new') return
    const known = new Set(this.#turns.map((job) => job.seq))
    for (const row of rows) if (!known.has(row.seq)) this.#turns.push(new Job(this.#deps.store, row))
    if (rows.length > 0) this.#deps.logger.info({ actions: rows.length }, 'bulk actions are taken up again')
    this.#state = { kind: 'idle' }
    this.#wake()
  }

  /** Lets the part that is under way end. Callers who wait for an action are told that it goes on at the next start. */
  async stop(): Promise<void> {
    const before = this.#state
    this.#state = { kind: 'stopped' }
    if (before.kind === 'resting') before.timer.cancel()
    if (before.kind === 'working') await before.ended
    for (const job of this.#turns.splice(0)) this.#interrupt(job, 'The server is stopping.')
  }

  /**
   * Works on an action that has just been stored, and resolves with its row once it is finished.
   * @throws HomeportError `bulk_action_interrupted` when it cannot be finished now; it will be, later.
   */
  finish(action: operations.bulk.BulkActionRow): Promise<operations.bulk.BulkActionRow> {
    if (action.state === 'finished') return Promise.resolve(action)
    const job = new Job(this.#deps.store, action)
    const finished = job.finished()
    if (this.#state.kind === 'stopped') this.#interrupt(job, 'The server is stopping.')
    else this.#turns.push(job)
    this.#wake()
    return finished
  }

  #wake(): void {
    if (this.#state.kind === 'idle' && this.#turns.length > 0) this.#state = { kind: 'working', ended: this.#work() }
  }

  async #work(): Promise<void> {
    // The first turn comes after the state that belongs to it has been set.
    await Promise.resolve()
    while (this.#state.kind === 'working') {
      const job = this.#turns.shift()
      if (!job) {
        this.#state = { kind: 'idle' }
        return
      }
      await this.#turn(job)
    }
  }

  async #turn(job: Job): Promise<void> {
    try {
      const action = await this.#workOn(job)
      this.#pauseMs = FIRST_PAUSE_MS
      if (action === undefined || action.state === 'running') this.#turns.push(job)
      else job.answer((waiter) => waiter.resolve(action))
    } catch (error) {
      this.#turns.push(job)
      this.#rest(error)
    }
  }

  /** One part of an action; `undefined` when it was only made smaller. */
  async #workOn(job: Job): Promise<operations.bulk.BulkActionRow | undefined> {
    const part = await job.next()
    if (!part) throw new Error(`bulk action ${job.actionId} is running and has no part left`)
    try {
      return await this.#cancel(job, part)
    } catch (error) {
      if (isFaultOfPart(error)) return await this.#isolate(job, part, error)
      job.putBack(part)
      throw error
    }
  }

  async #cancel(job: Job, part: Part): Promise<operations.bulk.BulkActionRow> {
    const { store, queue, clock } = this.#deps
    const args = { actionSeq: job.seq, ...part, at: clock.now() }
    const decided = await store.run(operations.bulk.cancelPart, args)
    queue.drop({ groupKeys: decided.cancelled })
    queue.offer(decided.offers)
    return decided.action
  }

  /** One run that cannot be cancelled must not keep the others: the part is halved until it stands alone. */
  async #isolate(job: Job, part: Part, error: unknown): Promise<operations.bulk.BulkActionRow | undefined> {
    const { store, clock, logger } = this.#deps
    if (part.to - part.from > 1) {
      const middle = Math.floor((part.from + part.to) / 2)
      job.putBack({ ...part, to: middle }, { ...part, from: middle })
      return undefined
    }
    logger.error({ actionId: job.actionId, ...part, error }, 'a run of a bulk action could not be cancelled')
    try {
      return await store.run(operations.bulk.failPart, { actionSeq: job.seq, ...part, at: clock.now() })
    } catch (fault) {
      job.putBack(part)
      throw fault
    }
  }

  /** The store cannot: whoever waits is told, and all actions go on after a pause. */
  #rest(error: unknown): void {
    const { clock, logger } = this.#deps
    const reason = error instanceof HomeportError ? error.message : 'The server has met a fault.'
    logger.warn({ error, pauseMs: this.#pauseMs }, 'bulk actions pause')
    for (const job of this.#turns) this.#interrupt(job, reason)
    if (this.#state.kind === 'stopped') return
    const timer = clock.after(this.#pauseMs, () => this.#resume())
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    this.#state = { kind: 'resting', timer }
  }

  #resume(): void {
    switch (this.#state.kind) {
      case 'resting':
        this.#state = { kind: 'idle' }
        this.#wake()
        return
      case 'new':
      case 'stopped':
      case 'idle':
      case 'working':
        return
      default:
        unreachable(this.#state)
    }
  }

  #interrupt(job: Job, reason: string): void {
    job.answer((waiter) =>
      waiter.reject(new HomeportError('bulk_action_interrupted', { actionId: job.actionId, reason })),
    )
  }
}

/** Errors of the catalogue tell of the store as a whole; anything else comes from what the part holds. */
function isFaultOfPart(error: unknown): boolean {
  return !(error instanceof HomeportError)
}
