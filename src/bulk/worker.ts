import { type Clock, type Service, type Timer, unreachable } from '../base/index.js'
import { HomeportError } from '../contract/errors.js'
import { operations, type Store } from '../store/index.js'
import type { Logger } from '../telemetry/index.js'
import { Job, type Part } from './job.js'
import { KINDS, type KindDeps } from './kinds.js'
import { PartSize } from './part-size.js'

type BulkActionRow = operations.bulk.BulkActionRow

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
 * A new job ends `pacing`; only time ends `resting`. `stop` leads from each of them to `stopped`, for ever; a part that
 * is under way is finished before. Jobs that come while it is `new` wait for the start, jobs that come when it is
 * `stopped` for the next life of the server.
 */
type State =
  | { readonly kind: 'new' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'idle' }
  | { readonly kind: 'working'; readonly ended: Promise<void> }
  | { readonly kind: 'resting' | 'pacing'; readonly timer: Timer }

const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 30_000

/** Told of an action after each of its steps; with `undefined` when the worker stops. */
export type Watcher = (action: BulkActionRow | undefined) => void

/**
 * Works on the running actions, one part of one action at a time, each action in its turn: an action over a million
 * runs does not keep one over ten waiting. Nothing is lost when it stops at any point; what is decided is in the store.
 */
export class BulkWorker implements Service {
  readonly name = 'bulk worker'
  readonly #deps: WorkerDeps
  readonly #turns: Job[] = []
  readonly #jobs = new Map<number, Job>()
  readonly #watchers = new Map<number, Set<Watcher>>()
  readonly #size = new PartSize()
  #state: State = { kind: 'new' }
  #pauseMs = FIRST_PAUSE_MS

  constructor(deps: WorkerDeps) {
    this.#deps = deps
  }

  /** Takes up every action that an earlier life has left running. */
  async start(): Promise<void> {
    const rows = await this.#deps.store.run(operations.bulkRead.running, {})
    if (this.#state.kind !== 'new') return
    for (const row of rows) this.#jobOf(row)
    if (rows.length > 0) this.#deps.logger.info({ actions: rows.length }, 'bulk actions are taken up again')
    this.#state = { kind: 'idle' }
    this.#wake()
  }

  /** Lets the part that is under way end. Callers who wait for an action are told that it goes on at the next start. */
  async stop(): Promise<void> {
    const before = this.#state
    this.#state = { kind: 'stopped' }
    if (before.kind === 'resting' || before.kind === 'pacing') before.timer.cancel()
    if (before.kind === 'working') await before.ended
    for (const job of this.#jobs.values()) this.#interrupt(job, 'The server is stopping.')
    this.#jobs.clear()
    this.#turns.length = 0
    for (const watchers of this.#watchers.values()) for (const watcher of [...watchers]) watcher(undefined)
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
    this.#tell(action)
    this.#wake()
  }

  /** Calls `watcher` after each step of an action, until the returned function is called. */
  watch(seq: number, watcher: Watcher): () => void {
    const watchers = this.#watchers.get(seq) ?? new Set()
    this.#watchers.set(seq, watchers.add(watcher))
    return () => {
      watchers.delete(watcher)
      if (watchers.size === 0) this.#watchers.delete(seq)
    }
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

  #tell(action: BulkActionRow): void {
    for (const watcher of [...(this.#watchers.get(action.seq) ?? [])]) watcher(action)
  }

  #wake(): void {
    if (this.#state.kind === 'pacing') {
      this.#state.timer.cancel()
      this.#state = { kind: 'idle' }
    }
    if (this.#state.kind === 'idle' && this.#turns.length > 0) this.#state = { kind: 'working', ended: this.#work() }
  }

  async #work(): Promise<void> {
    // The first turn comes after the state that belongs to it has been set.
    await Promise.resolve()
    while (this.#state.kind === 'working') {
      const job = this.#takeTurn()
      if (job) await this.#turn(job)
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
    this.#state = { kind: 'pacing', timer }
  }

  async #turn(job: Job): Promise<void> {
    try {
      const action = await this.#workOn(job)
      this.#pauseMs = FIRST_PAUSE_MS
      if (action) job.saw(action)
      if (!action || action.state === 'running') this.#queueAgain(job)
      else this.#end(action)
      if (action) this.#tell(action)
    } catch (error) {
      this.#queueAgain(job)
      this.#rest(error)
    }
  }

  /** Unless it has ended while its part was under way. */
  #queueAgain(job: Job): void {
    if (this.#jobs.get(job.action.seq) === job) this.#turns.push(job)
  }

  /** One part of an action; `undefined` when it was only made smaller. */
  async #workOn(job: Job): Promise<BulkActionRow | undefined> {
    const part = await job.next(this.#size.items)
    if (!part) throw new Error(`bulk action ${job.action.action_id} is running and has no part left`)
    try {
      return await this.#decide(job, part)
    } catch (error) {
      if (isFaultOfPart(error)) return await this.#isolate(job, part, error)
      job.putBack(part)
      throw error
    }
  }

  async #decide(job: Job, part: Part): Promise<BulkActionRow> {
    const started = performance.now()
    const { action } = await KINDS[job.action.kind].decide(this.#deps, job.action, part)
    this.#size.took(part.to - part.from, performance.now() - started)
    job.pace(part, this.#deps.clock.now())
    return action
  }

  /** One item that cannot be decided must not keep the others: the part is halved until it stands alone. */
  async #isolate(job: Job, part: Part, error: unknown): Promise<BulkActionRow | undefined> {
    const { store, clock, logger } = this.#deps
    if (part.to - part.from > 1) {
      const middle = Math.floor((part.from + part.to) / 2)
      job.putBack({ ...part, to: middle }, { ...part, from: middle })
      return undefined
    }
    const { seq: actionSeq, action_id: actionId } = job.action
    logger.error({ actionId, ...part, error }, 'an item of a bulk action could not be worked on')
    try {
      return (await store.run(operations.bulk.failPart, { actionSeq, ...part, at: clock.now() })).action
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
    for (const job of this.#jobs.values()) this.#interrupt(job, reason)
    if (this.#state.kind === 'stopped') return
    const timer = clock.after(this.#pauseMs, () => this.#resume())
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    this.#state = { kind: 'resting', timer }
  }

  #resume(): void {
    switch (this.#state.kind) {
      case 'resting':
      case 'pacing':
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

/** Errors of the catalogue tell of the store as a whole; anything else comes from what the part holds. */
function isFaultOfPart(error: unknown): boolean {
  return !(error instanceof HomeportError)
}
