import { type Clock, pause, type Service, type Timer, unreachable } from '../../base/index.js'
import { HomeportError, isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import * as bulkBatch from '../transactions/bulk-batch.js'
import * as bulkDraft from '../transactions/bulk-draft.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { type BatchLimits, BatchSize, LIMITS } from './batch-size.js'
import { type Batch, Job, type Watcher, Watchers } from './job.js'
import { KINDS, type KindDeps } from './kinds.js'

type BulkActionRow = bulkAction.BulkActionRow

/** What the worker works with. */
export interface WorkerDeps extends KindDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * What the worker is doing.
 *
 *   new ──start──▶ idle ──a job──▶ working ──no job left──▶ idle
 *                                   │ ▲ │ ▲
 *               the store cannot    ▼ │ ▼ │   every job has to wait for its rate
 *                               resting  pacing
 *
 * A new job ends `pacing`; only time ends `resting`. `stop` leads from each of them to `stopped`, forever; a batch that
 * is under way is finished before. Jobs that come while it is `new` wait for the start, jobs that come when it is
 * `stopped` for the next life of the server.
 */
type State =
  | { readonly kind: 'new' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'idle' }
  | { readonly kind: 'working'; readonly ended: Promise<void> }
  | { readonly kind: 'backingOff' | 'throttled'; readonly timer: Timer }

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000
/** A start that finds the store away for longer fails. */
const START_PATIENCE_MS = 30_000

/**
 * Works on the running actions, batch by batch, each action in its turn: an action over a million runs does not keep one
 * over ten waiting. The next batches are asked for before the last one is decided, so that nothing idles between two; that
 * they wait their turn behind everybody else is up to the store. Nothing is lost when it stops at any point; what is decided is in the store.
 */
export class BulkWorker implements Service {
  readonly name = 'bulk worker'
  readonly #deps: WorkerDeps
  readonly #turns: Job[] = []
  readonly #jobs = new Map<number, Job>()
  readonly #watchers = new Watchers()
  readonly #limits: BatchLimits
  readonly #size: BatchSize
  readonly #inFlight = new Set<Promise<void>>()
  #state: State = { kind: 'new' }
  /** What was drafted earlier was drafted in an earlier life of the server. */
  readonly #madeAt: number
  #pauseMs = FIRST_PAUSE_MS

  constructor(deps: WorkerDeps) {
    this.#deps = deps
    this.#madeAt = deps.clock.now()
    this.#limits = LIMITS[deps.store.describe().kind]
    this.#size = new BatchSize(this.#limits)
  }

  /** Takes up every action that an earlier life has left running, and gives up those that it could not store. */
  async start(): Promise<void> {
    const rows = await this.#runningActions()
    if (this.#state.kind !== 'new') return
    for (const row of rows) this.#jobOf(row)
    if (rows.length > 0) this.#deps.logger.info({ actions: rows.length }, 'bulk actions are taken up again')
    this.#state = { kind: 'idle' }
    this.#wake()
  }

  /**
   * What an earlier life has left. The listeners serve already, and others are answered 503 while PostgreSQL is away:
   * that it goes away at this very moment must not end the server.
   */
  async #runningActions(): Promise<readonly BulkActionRow[]> {
    const { store, clock } = this.#deps
    const giveUpAt = clock.now() + START_PATIENCE_MS
    for (;;) {
      try {
        await store.run(bulkDraft.dropDrafts, { before: this.#madeAt })
        return await store.run(bulkRead.running, {})
      } catch (error) {
        const isAway = isError(error, 'store_unavailable') || isError(error, 'store_outcome_unknown')
        if (!isAway || clock.now() >= giveUpAt) throw error
        await pause(clock, FIRST_PAUSE_MS)
      }
    }
  }

  /** Lets the batches that are under way end. Callers who wait for an action are told that it goes on at the next start. */
  async stop(): Promise<void> {
    const before = this.#state
    this.#state = { kind: 'stopped' }
    if (before.kind === 'backingOff' || before.kind === 'throttled') before.timer.cancel()
    if (before.kind === 'working') await before.ended
    await Promise.all(this.#inFlight)
    for (const job of this.#jobs.values()) this.#interrupt(job, 'The server is stopping.')
    this.#jobs.clear()
    this.#turns.length = 0
    this.#watchers.stop()
  }

  /**
   * Works on an action that was just stored, and resolves with its row once it is no longer running.
   * @throws HomeportError `bulk_action_interrupted` when it cannot be finished now; it will be, later.
   */
  finish(action: BulkActionRow): Promise<BulkActionRow> {
    if (action.state !== 'running') return Promise.resolve(action)
    const job = this.#jobOf(action)
    const ended = job.ended()
    if (this.#state.kind === 'stopped') this.#interrupt(job, 'The server is stopping.')
    this.#wake()
    return ended
  }

  /** Takes notice of an action whose state or rate somebody has changed in the store. */
  changed(action: BulkActionRow): void {
    this.#jobs.get(action.seq)?.saw(action)
    if (action.state === 'running') this.#jobOf(action)
    else this.#end(action)
    this.#watchers.tell(action)
    this.#wake()
  }

  /** Calls `watcher` after each step of an action, until the returned function is called. */
  watch(seq: number, watcher: Watcher): () => void {
    return this.#watchers.watch(seq, watcher)
  }

  /** Whether nothing is worked on any more before the next life of the server. */
  get isStopped(): boolean {
    return this.#state.kind === 'stopped'
  }

  #jobOf(action: BulkActionRow): Job {
    const known = this.#jobs.get(action.seq)
    if (known) return known
    const job = new Job(this.#deps.store, action)
    if (this.#state.kind === 'stopped') return job
    this.#jobs.set(action.seq, job)
    this.#turns.push(job)
    return job
  }

  /** Gives up the turns of an action that is not running any more, and answers who waits for it. */
  #end(action: BulkActionRow): void {
    const job = this.#jobs.get(action.seq)
    if (!job) return
    this.#jobs.delete(action.seq)
    const turn = this.#turns.indexOf(job)
    if (turn >= 0) this.#turns.splice(turn, 1)
    job.answer((waiter) => waiter.resolve(action))
  }

  #wake(): void {
    if (this.#state.kind === 'throttled') {
      this.#state.timer.cancel()
      this.#state = { kind: 'idle' }
    }
    if (this.#state.kind === 'idle' && this.#turns.length > 0) this.#state = { kind: 'working', ended: this.#work() }
  }

  async #work(): Promise<void> {
    // The first turn comes after the state that belongs to it has been set.
    await Promise.resolve()
    while (this.#state.kind === 'working') {
      const job = this.#inFlight.size < this.#limits.ahead ? this.#takeTurn() : undefined
      if (job) await this.#turn(job)
      else if (this.#inFlight.size > 0) await Promise.race(this.#inFlight)
      else this.#waitForTurn()
    }
  }

  /** The first job that its rate lets go on. */
  #takeTurn(): Job | undefined {
    const now = this.#deps.clock.now()
    const turn = this.#turns.findIndex((job) => job.readyAt <= now)
    return turn < 0 ? undefined : this.#turns.splice(turn, 1)[0]
  }

  #waitForTurn(): void {
    if (this.#turns.length === 0) {
      this.#state = { kind: 'idle' }
      return
    }
    const { clock } = this.#deps
    const readyAt = Math.min(...this.#turns.map((job) => job.readyAt))
    const timer = clock.after(Math.ceil(readyAt - clock.now()), () => this.#resume())
    this.#state = { kind: 'throttled', timer }
  }

  /** Looks up the next batch of a job and begins it. */
  async #turn(job: Job): Promise<void> {
    try {
      const batch = await job.next(this.#size.items)
      if (batch) this.#beginOrKeep(job, batch)
      else this.#exhausted(job)
    } catch (error) {
      this.#queueAgain(job)
      this.#backOff(error)
    }
  }

  /** While the batch was looked up, the worker may have come to rest, or the action to its end. */
  #beginOrKeep(job: Job, batch: Batch): void {
    if (this.#state.kind === 'working' && this.#isGoing(job)) this.#begin(job, batch)
    else job.putBack(batch)
    this.#queueAgain(job)
  }

  /** A job whose last batches are under way has no further turn, unless one of them is put back. */
  #exhausted(job: Job): void {
    if (job.inFlight > 0 || !this.#isGoing(job)) return
    throw new Error(`bulk action ${job.action.action_id} is running and has no batch left`)
  }

  #isGoing(job: Job): boolean {
    return this.#jobs.get(job.action.seq) === job
  }

  #begin(job: Job, batch: Batch): void {
    job.begun(batch, this.#deps.clock.now())
    const over: Promise<void> = this.#carryOut(job, batch).finally(() => this.#inFlight.delete(over))
    this.#inFlight.add(over)
  }

  /** Unless it has ended, or waits for its turn already. */
  #queueAgain(job: Job): void {
    if (this.#isGoing(job) && !this.#turns.includes(job)) this.#turns.push(job)
  }

  async #carryOut(job: Job, batch: Batch): Promise<void> {
    try {
      const action = await this.#workOn(job, batch)
      this.#pauseMs = FIRST_PAUSE_MS
      job.over()
      this.#see(job, action)
    } catch (error) {
      job.over()
      job.putBack(batch)
      this.#queueAgain(job)
      this.#backOff(error)
    }
  }

  /** Takes notice of where a batch has left its action. The end is told once nothing of it is under way any more. */
  #see(job: Job, action: BulkActionRow | undefined): void {
    if (action) job.saw(action)
    if (job.action.state === 'running') this.#queueAgain(job)
    else if (job.inFlight === 0 && this.#isGoing(job)) this.#end(job.action)
    if (action) this.#watchers.tell(action)
  }

  /** What has become of the action; `undefined` when the batch was only made smaller. */
  async #workOn(job: Job, batch: Batch): Promise<BulkActionRow | undefined> {
    try {
      return await this.#decide(job, batch)
    } catch (error) {
      if (isFaultOfBatch(error)) return await this.#isolate(job, batch, error)
      throw error
    }
  }

  async #decide(job: Job, batch: Batch): Promise<BulkActionRow> {
    const asked = performance.now()
    const { action } = await KINDS[job.action.kind].decide(this.#deps, job.action, batch)
    this.#size.took(batch.to - batch.from, asked, performance.now())
    return action
  }

  /** One item that cannot be decided must not keep the others: the batch is halved until it stands alone. */
  async #isolate(job: Job, batch: Batch, error: unknown): Promise<BulkActionRow | undefined> {
    const { store, clock, logger } = this.#deps
    if (batch.to - batch.from > 1) {
      const middle = Math.floor((batch.from + batch.to) / 2)
      job.putBack({ ...batch, to: middle }, { ...batch, from: middle })
      return undefined
    }
    const { seq: actionSeq, action_id: actionId } = job.action
    logger.error({ actionId, ...batch, error }, 'an item of a bulk action could not be worked on')
    return (await store.run(bulkBatch.failBatch, { actionSeq, ...batch, at: clock.now() })).action
  }

  /** The store cannot: whoever waits is told, and all actions go on after a pause. */
  #backOff(error: unknown): void {
    const { clock, logger } = this.#deps
    const reason = error instanceof HomeportError ? error.message : 'The server has met a fault.'
    logger.warn({ error, pauseMs: this.#pauseMs }, 'bulk actions pause')
    for (const job of this.#jobs.values()) this.#interrupt(job, reason)
    // Another batch may have met the same before, or the worker has been stopped.
    if (this.#state.kind !== 'working') return
    const timer = clock.after(this.#pauseMs, () => this.#resume())
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    this.#state = { kind: 'backingOff', timer }
  }

  #resume(): void {
    switch (this.#state.kind) {
      case 'backingOff':
      case 'throttled':
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
    const { action_id: actionId } = job.action
    job.answer((waiter) => waiter.reject(new HomeportError('bulk_action_interrupted', { actionId, reason })))
  }
}

/** Errors of the catalogue tell of the store as a whole, but for damage; anything else comes from what the batch holds. */
function isFaultOfBatch(error: unknown): boolean {
  return !(error instanceof HomeportError) || isError(error, 'store_damaged')
}
