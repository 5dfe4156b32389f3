import { type Clock, type Service, type Timer, unreachable } from '../../base/index.js'
import { isPassing, type Store } from '../../store/index.js'
import { BULK_OUTCOMES, BulkMeter, type Logger } from '../../telemetry/index.js'
import type * as bulkAction from '../transactions/bulk-action.js'
import * as bulkBatch from '../transactions/bulk-batch.js'
import * as bulkRead from '../transactions/bulk-read.js'
import { BatchSize, LIMITS } from './batch-size.js'
import { type Batch, Job, reasonOf, type Watcher, Watchers } from './job.js'
import { Jobs } from './jobs.js'
import { KINDS, type KindDeps } from './kinds.js'
import { TakeOver } from './take-over.js'

type BulkActionRow = bulkAction.BulkActionRow

/** The collaborators of the worker. */
export interface WorkerDeps extends KindDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  /** Counts what happens, for metrics. */
  readonly meter?: BulkMeter
}

/**
 * States of the worker.
 * ```
 * new ──start──▶ idle ──a job──▶ working ──no job left──▶ idle
 *                                 │ ▲ │ ▲
 *           the store fails       ▼ │ ▼ │   every job waits for its rate limit
 *                        backingOff  throttled
 * ```
 *
 * A new job ends `throttled`; only time ends `backingOff`. `stop` leads from every state to `stopped` for good, after
 * the batches in flight. Jobs that arrive in `new` wait for the start; jobs that arrive in `stopped` wait for the next
 * start of the server.
 */
type State =
  | { readonly kind: 'new' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'idle' }
  | { readonly kind: 'working'; readonly ended: Promise<void> }
  | { readonly kind: 'backingOff' | 'throttled'; readonly timer: Timer }

const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 30_000

/**
 * Processes running actions batch by batch, in turns, so an action over a million runs does not delay one over ten.
 * The next batches are requested before the last one is decided, so the store never idles between two; the store lets
 * other writers go first. The worker may stop at any point: every decision is in the store.
 */
export class BulkWorker implements Service {
  readonly name = 'bulk worker'
  readonly #deps: WorkerDeps
  readonly #jobs: Jobs
  readonly #watchers = new Watchers()
  readonly #size: BatchSize
  readonly #inFlight = new Map<Promise<void>, number>()
  #state: State = { kind: 'new' }
  readonly #meter: BulkMeter
  #pauseMs = FIRST_PAUSE_MS
  readonly #takeOver: TakeOver

  constructor(deps: WorkerDeps) {
    this.#deps = deps
    deps.cluster.onNodeGone(() => this.takeOver())
    this.#meter = deps.meter ?? new BulkMeter()
    const { store } = deps
    this.#jobs = new Jobs(store, this.#meter)
    this.#takeOver = new TakeOver(deps, {
      isStopped: () => this.isStopped,
      onRunning: (action) => {
        if (!this.isStopped) this.#jobOf(action)
        this.#wake()
      },
    })
    this.#size = new BatchSize(LIMITS[store.describe().kind], () => store.isUsedByOthers?.() ?? false)
  }

  /** Continues actions that an earlier incarnation or nodes that are gone left running, and deletes their drafts. */
  async start(): Promise<void> {
    const actions = await this.#takeOver.atStart()
    if (this.#state.kind !== 'new') return
    this.#state = { kind: 'idle' }
    this.#takeOver.continueActions(actions)
  }

  /** Continues the actions of nodes that are gone. */
  takeOver(): void {
    if (this.#state.kind !== 'new') void this.#takeOver.takeOverGone()
  }

  /** Continues actions that a lost commit has stored or resumed. Its caller did not hand them over. */
  async adoptRunning(): Promise<void> {
    const rows = await this.#jobs.noteEnds(() => this.#deps.store.run(bulkRead.running, {}))
    for (const row of rows) if (this.#isMine(row)) this.#jobOf(row).update(row)
    this.#wake()
  }

  /** Finishes the batches in flight. Callers that wait for an action get an error: it continues at the next start. */
  async stop(): Promise<void> {
    const before = this.#state
    this.#state = { kind: 'stopped' }
    if (before.kind === 'backingOff' || before.kind === 'throttled') before.timer.cancel()
    if (before.kind === 'working') await before.ended
    await Promise.all([...this.#inFlight.keys(), this.#takeOver.idle()])
    this.#jobs.interrupt('The server is stopping.')
    this.#jobs.clear()
    this.#watchers.stop()
  }

  /**
   * Processes an action that was just stored. Resolves with its row when it is no longer running.
   * @throws HomeportError `bulk_action_interrupted` when it cannot be finished now; it continues later.
   */
  finish(action: BulkActionRow): Promise<BulkActionRow> {
    if (action.state !== 'running') return Promise.resolve(action)
    const job = this.#jobOf(action)
    const ended = job.whenEnded()
    if (this.#state.kind === 'stopped') job.interrupt('The server is stopping.')
    this.#wake()
    return ended
  }

  /** Applies a change of state or rate that somebody stored. */
  changed(action: BulkActionRow): void {
    this.#jobs.get(action.seq)?.update(action)
    if (action.state !== 'running') this.#jobs.end(action)
    else if (this.#isMine(action)) this.#jobOf(action)
    else this.#lose(action)
    this.#watchers.notify(action)
    this.#wake()
  }

  /** Resolves when no batch of an action is in flight here. Then every node has dropped what these batches cancelled. */
  settled(seq: number): Promise<unknown> {
    return Promise.all([...this.#inFlight].map(([batch, action]) => action === seq && batch))
  }

  /** Drops on all nodes what an action has cancelled, for an action whose node is gone. Never rejects. */
  dropAgain(action: BulkActionRow): Promise<void> {
    return this.#takeOver.dropAgain(action)
  }

  /** Calls `watcher` after each step of an action until the returned function is called. */
  watch(seq: number, watcher: Watcher): () => void {
    return this.#watchers.watch(seq, watcher)
  }

  /** Whether the worker has stopped until the next start of the server. */
  get isStopped(): boolean {
    return this.#state.kind === 'stopped'
  }

  #isMine({ owner }: BulkActionRow): boolean {
    return owner === this.#deps.cluster.incarnation
  }

  /** Gives up an action that another node continues. */
  #lose(action: BulkActionRow): void {
    const job = this.#jobs.get(action.seq)
    if (!job) return
    job.interrupt('Another node continues it.')
    this.#jobs.end(action)
  }

  /** The job of an action. A worker that has stopped starts none. */
  #jobOf(action: BulkActionRow): Job {
    if (this.isStopped) return this.#jobs.get(action.seq) ?? new Job(this.#deps.store, action)
    return this.#jobs.of(action)
  }

  #wake(): void {
    if (this.#state.kind === 'throttled') {
      this.#state.timer.cancel()
      this.#state = { kind: 'idle' }
    }
    if (this.#state.kind === 'idle' && this.#jobs.hasQueued) this.#state = { kind: 'working', ended: this.#work() }
  }

  async #work(): Promise<void> {
    // Lets the caller set the state `working` first.
    await Promise.resolve()
    while (this.#state.kind === 'working') {
      const job = this.#inFlight.size < this.#size.inFlight ? this.#jobs.takeReady(this.#deps.clock.now()) : undefined
      if (job) await this.#takeTurn(job)
      else if (this.#inFlight.size > 0) await Promise.race(this.#inFlight.keys())
      else this.#waitForReady()
    }
    // During the lookup of a batch the worker may have backed off and become idle. The job of that lookup is queued again.
    if (this.#state.kind === 'idle') this.#wake()
  }

  #waitForReady(): void {
    if (!this.#jobs.hasQueued) {
      this.#state = { kind: 'idle' }
      return
    }
    const { clock } = this.#deps
    const timer = clock.after(Math.ceil(this.#jobs.waitMs(clock.now())), () => this.#resume())
    this.#state = { kind: 'throttled', timer }
  }

  /** Looks up the next batch of a job and starts it. */
  async #takeTurn(job: Job): Promise<void> {
    try {
      const batch = await job.next(this.#size.items)
      if (batch) this.#startOrPutBack(job, batch)
      else await this.#exhausted(job)
    } catch (error) {
      this.#jobs.requeue(job)
      this.#backOff(error)
    }
  }

  /** During the lookup the worker may have backed off, or the action may have ended. */
  #startOrPutBack(job: Job, batch: Batch): void {
    if (this.#state.kind === 'working' && this.#jobs.isActive(job)) this.#startBatch(job, batch)
    else job.putBack(batch)
    this.#jobs.requeue(job)
  }

  /**
   * Handles a job that has no next batch. A batch in flight may still be put back. Without one, the action should have
   * ended: the job was made of an outdated row.
   */
  async #exhausted(job: Job): Promise<void> {
    if (job.inFlight > 0 || !this.#jobs.isActive(job)) return
    const { account_id: accountId, action_id: actionId } = job.action
    const action = await this.#deps.store.run(bulkRead.action, { accountId, actionId })
    const isRunning = action?.state === 'running'
    if (isRunning && this.#isMine(action)) throw job.startOver()
    if (isRunning || !action) job.interrupt('This node no longer processes it.')
    this.#jobs.end(action ?? job.action)
  }

  #startBatch(job: Job, batch: Batch): void {
    job.started(batch, this.#deps.clock.now())
    const settled: Promise<void> = this.#process(job, batch).finally(() => this.#inFlight.delete(settled))
    this.#inFlight.set(settled, job.action.seq)
  }

  async #process(job: Job, batch: Batch): Promise<void> {
    try {
      const action = await this.#decideOrSplit(job, batch)
      this.#pauseMs = FIRST_PAUSE_MS
      job.settled()
      this.#applyResult(job, action)
    } catch (error) {
      if (!this.#jobs.isActive(job)) job.interrupt(reasonOf(error))
      job.settled()
      job.putBack(batch)
      this.#jobs.requeue(job)
      this.#backOff(error)
    }
  }

  /** Applies the result of a batch. The end is reported only when none of its batches is in flight. */
  #applyResult(job: Job, action: BulkActionRow | undefined): void {
    const before = job.action
    if (action) job.update(action)
    for (const outcome of BULK_OUTCOMES) this.#meter.items[outcome] += job.action[outcome] - before[outcome]
    if (!this.#isMine(job.action)) this.#lose(job.action)
    else if (job.action.state === 'running') this.#jobs.requeue(job)
    else if (job.inFlight === 0 && this.#jobs.isActive(job)) this.#jobs.end(job.action)
    if (action) this.#watchers.notify(action)
  }

  /** @returns the action after the batch; `undefined` when the batch was only split. */
  async #decideOrSplit(job: Job, batch: Batch): Promise<BulkActionRow | undefined> {
    try {
      return await this.#decide(job, batch)
    } catch (error) {
      if (isPassing(error)) throw error
      // Caused by what is in the batch.
      return await this.#isolate(job, batch, error)
    }
  }

  async #decide(job: Job, batch: Batch): Promise<BulkActionRow> {
    const requestedAt = performance.now()
    const { action } = await KINDS[job.action.kind].decide(this.#deps, job.action, batch)
    this.#size.took(batch.to - batch.from, requestedAt, performance.now())
    return action
  }

  /**
   * One item that cannot be decided must not block the others: the batch is halved until that item is alone, which then
   * fails.
   */
  async #isolate(job: Job, batch: Batch, error: unknown): Promise<BulkActionRow | undefined> {
    const { store, clock, logger, cluster } = this.#deps
    if (batch.to - batch.from > 1) {
      const middle = Math.floor((batch.from + batch.to) / 2)
      job.putBack({ ...batch, to: middle }, { ...batch, from: middle })
      return undefined
    }
    const { seq: actionSeq, action_id: actionId } = job.action
    logger.error('bulk_item_failed', { actionId, chunk: batch.chunk, firstItem: batch.from, endItem: batch.to, error })
    return (await store.run(bulkBatch.failBatch, { actionSeq, ...batch, at: clock.now(), owner: cluster.incarnation }))
      .action
  }

  /** The store fails: rejects all waiters, and pauses all actions for a while. */
  #backOff(error: unknown): void {
    const { clock, logger } = this.#deps
    logger.warn('bulk_paused', { error, pauseMs: this.#pauseMs })
    this.#jobs.interrupt(reasonOf(error))
    // Another batch in flight may have failed first, or the worker may have stopped.
    if (this.#state.kind !== 'working') return
    const timer = clock.after(this.#pauseMs, () => this.#resume())
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_PAUSE_MS)
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
}
