import type { Service } from '../../base/index.js'
import { type RequestSender, Sender } from '../sending/sender.js'
import type { PendingRow } from '../transactions/messages.js'
import type { DropSelector, MessageKind, QueueLoad } from '../types.js'
import { Attempts } from './attempts.js'
import { Backlog } from './backlog.js'
import type { DispatcherDeps } from './dispatcher-deps.js'
import { DueSweep } from './due-sweep.js'
import { FlowControl } from './flow-control.js'
import { forgetDropsLater } from './forget-drops.js'
import { backlogLimits, maxLingering } from './limits.js'
import { Loader } from './loader.js'
import { Partitions } from './partitions.js'
import { Pump } from './pump.js'
import { RequestHeaders } from './request-headers.js'
import { StoredLimits } from './stored-limits.js'

/** How often a node that may not act checks whether it may act again. */
const UNTIL_MAY_ACT_MS = 250

/**
 * Sends messages when they are due and commits the outcomes.
 *
 *   offers ─┐
 *   loads ──┼─> backlog: what is in memory ── pump: takes what is due ──> attempts: request, outcome, commit ─┐
 *   sweep ──┘       ^      (the sweep finds what memory has missed)                                           │
 *                   └───────────────── next attempts, new messages of an outcome ─────────────────────────────┘
 *
 * Delivery is at least once: see `Attempts`. `stop` waits for requests in flight, up to a time limit.
 */
export class Dispatcher implements Service {
  readonly name = 'dispatcher'
  readonly #deps: DispatcherDeps
  /** Flow-control keys. Code that changes the stored limits of a key also calls `flow.set`. */
  readonly flow: FlowControl
  readonly limits: StoredLimits
  /** Makes the headers of requests. */
  readonly headers: RequestHeaders
  /** Decides which messages this node sends. */
  readonly partitions: Partitions
  readonly #backlog: Backlog
  readonly #sender: RequestSender
  readonly #attempts: Attempts
  readonly #pump: Pump
  readonly #sweep: DueSweep
  readonly #loader: Loader
  #isStopping = false

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    this.flow = new FlowControl(deps.meter)
    this.headers = new RequestHeaders(deps)
    this.limits = new StoredLimits(deps.store, this.flow)
    const limits = backlogLimits(deps.concurrency)
    this.#pump = new Pump(deps.clock, () => this.#look())
    this.partitions = new Partitions({
      ...deps,
      flow: this.flow,
      limits: this.limits,
      backlog: () => this.#backlog,
      unsettled: () => this.#attempts.unsettled(),
      onWork: () => this.#noteWork(),
    })
    this.#backlog = deps.cluster.isSingleNode
      ? new Backlog(limits, this.flow)
      : new Backlog(limits, this.flow, (partition) => this.partitions.sends(partition))
    this.#sender = deps.sender ?? new Sender({ ...deps, connectionsPerHost: limits.inFlight.maxPerHost })
    const shared = { ...deps, backlog: this.#backlog, limits: this.limits }
    const reading = { ...shared, partitions: () => this.partitions.open }
    this.#sweep = new DueSweep({ ...reading, onFound: () => this.#pump.atEndOfTick() })
    this.#loader = new Loader({
      ...reading,
      onStrays: (unread) => this.#sweep.straysLoaded(unread),
      onMessages: () => this.#sweep.noteActivity(),
      onOver: () => this.#pump.atEndOfTick(),
    })
    this.#attempts = new Attempts({
      ...shared,
      partitions: this.partitions,
      headers: this.headers,
      sender: this.#sender,
      pump: this.#pump,
      onSettled: ({ dropGroups = [], offers }) => {
        if (dropGroups.length > 0) this.drop({ groupKeys: dropGroups, mayBeOfferedAgain: true })
        if (offers.length > 0) this.offer(offers)
      },
      onEnd: () => this.#noteWork(),
    })
  }

  addKind(kind: MessageKind): void {
    this.#attempts.addKind(kind)
  }

  async start(): Promise<void> {
    this.#sweep.start()
    await this.limits.readAll()
    this.#pump.start()
  }

  async stop(graceMs = this.#deps.graceMs): Promise<void> {
    if (!this.#isStopping) {
      this.#isStopping = true
      this.#pump.stop()
      this.#loader.stop()
      this.partitions.stop()
      const sweepOver = this.#sweep.stop()
      await this.#attempts.stop(graceMs)
      await sweepOver
    }
    await this.#sender.close()
  }

  /** Takes committed messages; see `Queue.offer`. */
  offer(committed: readonly PendingRow[], isAgain = false): void {
    const rows = this.partitions.own(committed)
    // A message of a queue sets the limits of its flow-control key when it is published (`held`). It must not set them
    // again at its turn, because later messages may have set others since.
    for (const row of rows) if (row.queue === null || row.held) this.flow.note(row)
    this.#backlog.offer(rows, this.#deps.clock.now(), isAgain)
    this.#sweep.noteActivity()
    this.#pump.afterAnswers()
  }

  #noteWork(): void {
    this.#sweep.noteActivity()
    this.#pump.atEndOfTick()
  }

  /** Requests in flight, without slow ones, and their limit. */
  get parallelism(): { readonly sending: number; readonly most: number } {
    return { sending: this.#backlog.due.sending, most: this.#deps.concurrency }
  }

  /** See `Queue.load`. */
  get load(): QueueLoad {
    return { ...this.parallelism, held: this.#backlog.size }
  }

  /** Call it after the limits of a flow-control key have changed. */
  limitsChanged(): void {
    this.#pump.atEndOfTick()
  }

  /** See `Backlog.hold`. */
  hold(accountIds: ReadonlySet<string>): void {
    this.#backlog.hold(accountIds)
    this.#pump.atEndOfTick()
  }

  /** Call it after the store has changed due times. */
  rewind(): void {
    this.#backlog.rewind('held')
    this.#pump.atEndOfTick()
  }

  /** Forgets messages whose end is committed; see `Queue.drop`. */
  drop(which: DropSelector): void {
    for (const entry of this.#backlog.drop(which)) entry.abort?.()
    forgetDropsLater(this.#deps.store, this.#backlog.ended)
    this.#pump.atEndOfTick()
  }

  /** Whether nothing is being read, sent or committed. Messages that wait for their time or their flow key do not count. */
  get isIdle(): boolean {
    return !this.#pump.isDue && this.#attempts.isQuiet && !this.#backlog.isLoading
  }

  #look(): void {
    const { clock, cluster, concurrency } = this.#deps
    const now = clock.now()
    this.#backlog.due.advance(now)
    if (!cluster.mayAct()) this.#pump.pauseFor(UNTIL_MAY_ACT_MS)
    while (!this.#pump.isPaused && this.#attempts.settling < maxLingering(concurrency)) {
      const entry = this.#backlog.due.take(now)
      if (!entry) break
      void this.#attempts.make(entry)
    }
    this.#loader.next(now)
    // Due messages cannot be sent before the pause ends, so they must not wake the dispatcher until then.
    this.#pump.wakeAt(this.#pump.isPaused ? Number.POSITIVE_INFINITY : this.#backlog.wakeAt(now), now)
  }
}
