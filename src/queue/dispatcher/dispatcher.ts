import { type Service, type Timer, TurnoverMap } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { PendingRow } from '../transactions/messages.js'
import * as messages from '../transactions/messages.js'
import type { AttemptOutcome, DropSelector, MessageKind, PendingMessage, QueueLoad, Settled } from '../types.js'
import { Backlog } from './backlog.js'
import { countAttempt } from './count-attempt.js'
import { damagedOutcome, insteadOf, isPassing, pauseAfter } from './damage.js'
import type { DispatcherDeps } from './dispatcher-deps.js'
import { DueSweep } from './due-sweep.js'
import type { Entry } from './entry.js'
import { FlowControl } from './flow-control.js'
import { forgetDropsLater } from './forget-drops.js'
import { backlogLimits, maxLingering } from './limits.js'
import { Loader } from './loader.js'
import { Partitions } from './partitions.js'
import { PumpTurn } from './pump-turn.js'
import { RequestHeaders } from './request-headers.js'
import { isOutOfDescriptors, type RequestSender, Sender, type Sending } from './sender.js'
import { StoredLimits } from './stored-limits.js'
import { TracedAttempt } from './traced-attempt.js'

/** Retry delay after a failure of the store or of a kind. */
const PAUSE_AFTER_FAILURE_MS = 1_000
/** How often a node that may not act looks whether it may again. */
const UNTIL_MAY_ACT_MS = 250

/**
 * Nothing was sent: this node may have been declared dead, or no longer owns the message, or too much memory is in use. The
 * message is taken again from this time on.
 */
class NotNow extends Error {
  readonly nextAt: number

  constructor(nextAt: number) {
    super()
    this.nextAt = nextAt
  }
}

/**
 * Sends messages when they are due and commits the outcomes.
 *
 * Phases: `idle` (before start), `running`, `stopping` (no new attempt starts, requests in flight may finish),
 * `stopped`. A message in flight stays `pending` in the store until its outcome is committed. If the server dies before
 * that, the message is sent again after the next start: at least once, never lost.
 */
export class Dispatcher implements Service {
  readonly name = 'dispatcher'
  readonly #deps: DispatcherDeps
  readonly #kinds = new Map<string, MessageKind>()
  /** Flow-control keys. Code that changes the stored limits of a key also calls `flow.set`. */
  readonly flow: FlowControl
  readonly limits: StoredLimits
  readonly #backlog: Backlog
  readonly #sender: RequestSender
  /** Makes the headers of requests. */
  readonly headers: RequestHeaders
  readonly #unsettled = new TurnoverMap<Entry, true>()
  /** Messages whose request is over and whose outcome is not committed yet. */
  #settling = 0
  #phase: 'idle' | 'running' | 'stopping' | 'stopped' = 'idle'
  #wake: Timer | undefined
  #wakeAt = Number.POSITIVE_INFINITY
  readonly #turn = new PumpTurn(() => {
    if (this.#phase === 'running') this.#pump()
  })
  /** While it runs, nothing is sent. */
  #pauseTimer: Timer | undefined
  #onQuiet: (() => void) | undefined
  readonly #sweep: DueSweep
  readonly #loader: Loader
  /** Which messages are sent here. */
  readonly partitions: Partitions
  #halt: () => void = () => undefined
  readonly #halted = new Promise<void>((resolve) => {
    this.#halt = resolve
  })

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    this.flow = new FlowControl(deps.meter)
    this.headers = new RequestHeaders(deps)
    this.limits = new StoredLimits(deps.store, this.flow)
    const limits = backlogLimits(deps.concurrency)
    this.partitions = new Partitions({
      ...deps,
      flow: this.flow,
      limits: this.limits,
      backlog: () => this.#backlog,
      unsettled: () => this.#unsettled.keys(),
      onWork: () => this.#noteWork(),
    })
    this.#backlog = deps.cluster.isAlone
      ? new Backlog(limits, this.flow)
      : new Backlog(limits, this.flow, (partition) => this.partitions.sends(partition))
    const shared = { ...deps, backlog: this.#backlog, limits: this.limits, partitions: () => this.partitions.open }
    this.#sweep = new DueSweep({ ...shared, onFound: () => this.#schedulePump() })
    this.#loader = new Loader({
      ...shared,
      onStrays: (unread) => this.#sweep.straysLoaded(unread),
      onMessages: () => this.#sweep.noteActivity(),
      onOver: () => this.#schedulePump(),
    })
    this.#sender = deps.sender ?? new Sender({ ...deps, connectionsPerHost: limits.inFlight.maxPerHost })
  }

  addKind(kind: MessageKind): void {
    if (this.#kinds.has(kind.name)) throw new Error(`two message kinds are named ${kind.name}`)
    this.#kinds.set(kind.name, kind)
  }

  async start(): Promise<void> {
    this.#sweep.start()
    await this.limits.readAll()
    this.#phase = 'running'
    this.#schedulePump()
  }

  async stop(graceMs = this.#deps.graceMs): Promise<void> {
    if (this.#phase === 'running' || this.#phase === 'idle') {
      this.#phase = 'stopping'
      this.#wake?.cancel()
      this.#loader.stop()
      this.partitions.stop()
      const sweepOver = this.#sweep.stop()
      this.#halt()
      await this.#whenQuiet(graceMs)
      for (const entry of this.#unsettled.keys()) entry.abort?.()
      await this.#whenQuiet(PAUSE_AFTER_FAILURE_MS)
      await sweepOver
    }
    this.#phase = 'stopped'
    await this.#sender.close()
  }

  /** Takes committed messages; see `Queue.offer`. */
  offer(committed: readonly PendingRow[], isAgain = false): void {
    const rows = this.partitions.own(committed)
    // The message of a queue set the limits of its key when it was published (`held`). By the time of its turn, later
    // messages may have set others.
    for (const row of rows) if (row.queue === null || row.held) this.flow.note(row)
    this.#backlog.offer(rows, this.#deps.clock.now(), isAgain)
    this.#sweep.noteActivity()
    if (this.#phase === 'running') this.#turn.afterAnswers()
  }

  #noteWork(): void {
    this.#sweep.noteActivity()
    this.#schedulePump()
  }

  /** Requests in flight, without slow ones, and their limit. */
  get parallelism(): { readonly sending: number; readonly most: number } {
    return { sending: this.#backlog.sending, most: this.#deps.concurrency }
  }

  /** See `Queue.load`. */
  get load(): QueueLoad {
    return { ...this.parallelism, held: this.#backlog.size }
  }

  /** Call it after the limits of a flow-control key have changed. */
  limitsChanged(): void {
    this.#schedulePump()
  }

  /** See `Backlog.hold`. */
  hold(accountIds: ReadonlySet<string>): void {
    this.#backlog.hold(accountIds)
    this.#schedulePump()
  }

  /** Call it after the store has changed due times. */
  rewind(): void {
    this.#backlog.rewind()
    this.#schedulePump()
  }

  /** Forgets messages whose end is committed; see `Queue.drop`. */
  drop(which: DropSelector): void {
    for (const entry of this.#backlog.drop(which)) entry.abort?.()
    forgetDropsLater(this.#deps.store, this.#backlog.ended)
    this.#schedulePump()
  }

  /** Whether nothing is being read, sent or committed. Messages that wait for their time or their flow key do not count. */
  get isIdle(): boolean {
    return !this.#turn.isDue && this.#unsettled.size === 0 && !this.#backlog.isLoading
  }

  /** Resolves when no message is unsettled, or after a time limit. */
  #whenQuiet(mostMs: number): Promise<void> {
    if (this.#unsettled.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.#deps.clock.after(mostMs, resolve)
      this.#onQuiet = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  #schedulePump(): void {
    if (this.#phase === 'running') this.#turn.atEndOfTick()
  }

  #pump(): void {
    const now = this.#deps.clock.now()
    this.#backlog.advance(now)
    if (!this.#deps.cluster.mayAct()) this.#pauseFor(UNTIL_MAY_ACT_MS)
    while (!this.#pauseTimer && this.#settling < maxLingering(this.#deps.concurrency)) {
      const entry = this.#backlog.take(now)
      if (!entry) break
      this.#unsettled.set(entry, true)
      void this.#deliver(entry)
    }
    this.#loader.next(now)
    // What is due cannot be sent before the pause ends, so it must not wake the dispatcher until then.
    this.#setWake(this.#pauseTimer ? Number.POSITIVE_INFINITY : this.#backlog.wakeAt(now), now)
  }

  #setWake(at: number, now: number): void {
    if (at === this.#wakeAt) return
    this.#wake?.cancel()
    this.#wakeAt = at
    this.#wake = undefined
    if (at === Number.POSITIVE_INFINITY) return
    this.#wake = this.#deps.clock.after(at - now, () => {
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.#schedulePump()
    })
  }

  /** One attempt, from the request to the committed outcome. Never rejects. */
  async #deliver(entry: Entry): Promise<void> {
    try {
      await this.#attempt(entry)
    } catch (error) {
      if (isOutOfDescriptors(error)) this.#pause(error)
      else if (!(error instanceof NotNow)) {
        this.#deps.logger.error('queue_attempt_failed', { error, messageId: entry.message.messageId })
      }
      const nextAt = error instanceof NotNow ? error.nextAt : this.#deps.clock.now() + PAUSE_AFTER_FAILURE_MS
      if (entry.state === 'sending' && this.partitions.sends(entry.partition))
        this.#backlog.reschedule(entry, { ...entry.message, nextAt }, this.#deps.clock.now())
      else this.#backlog.release(entry)
    }
    this.#settling--
    this.#unsettled.delete(entry)
    this.partitions.noteSettled()
    if (this.#unsettled.size === 0) this.#onQuiet?.()
    this.#noteWork()
  }

  /** Without a file descriptor no message can be sent of any account. */
  #pause(error: unknown): void {
    if (this.#pauseTimer) return
    this.#pauseFor(PAUSE_AFTER_FAILURE_MS)
    this.#deps.logger.error('queue_out_of_descriptors', { error })
  }

  #pauseFor(ms: number): void {
    this.#pauseTimer ??= this.#deps.clock.after(ms, () => {
      this.#pauseTimer = undefined
      this.#schedulePump()
    })
  }

  async #attempt(entry: Entry): Promise<void> {
    const kind = this.#kinds.get(entry.message.kind)
    let outcome: AttemptOutcome | undefined
    let message: PendingMessage | undefined
    let sending: Sending | undefined
    let traced: TracedAttempt | undefined
    try {
      if (!kind) throw new Error(`nothing is registered for messages of kind ${entry.message.kind}`)
      message = await this.#withBody(entry)
      if (this.#deps.tracer && message) {
        traced = new TracedAttempt(this.#deps.tracer, kind, message)
        message = traced.message
      }
      sending = message && (await this.#send(entry, kind, message))
      outcome = await sending?.outcome
    } catch (error) {
      // Damaged bytes must not be sent and cannot be read again. This message fails with the reason.
      if (!isError(error, 'store_damaged')) throw error
      message ??= entry.message
      outcome = damagedOutcome(error, this.#deps.clock.now())
    } finally {
      if (outcome) traced?.answered()
      else traced?.dropped()
      this.#settling++
      // An aborted request was made: its key counts it.
      if (outcome || sending) this.#backlog.answered(entry)
      else this.#backlog.unsent(entry)
      entry.abort = undefined
    }
    // The host may get its next request now, while this outcome is committed.
    this.#schedulePump()
    try {
      if (outcome && entry.state === 'dropped') this.#deps.meter.deliveries.cancelled++
      if (!kind || !message || !outcome || entry.state === 'dropped') this.#backlog.release(entry)
      else await this.#settle(entry, kind, message, outcome, traced)
    } finally {
      traced?.dropped()
      sending?.release()
    }
  }

  /** The message with its body; `undefined` if it is gone. */
  async #withBody(entry: Entry): Promise<PendingMessage | undefined> {
    if (!entry.bodyInStore) return entry.message
    const row = await this.#deps.store.run(messages.body, { seq: entry.seq })
    return row && { ...entry.message, body: row.body ?? undefined }
  }

  async #send(entry: Entry, kind: MessageKind, message: PendingMessage): Promise<Sending | undefined> {
    const prepared = kind.prepare(message, entry, (bytes) => {
      if (!this.#backlog.claim(entry, bytes)) throw new NotNow(message.nextAt)
    })
    const outbound = prepared instanceof Promise ? await prepared : prepared
    if (!outbound || entry.state === 'dropped' || this.#backlog.isHeld(message.accountId)) return undefined
    if (!this.partitions.mayStart(entry.partition)) throw new NotNow(this.#deps.clock.now() + PAUSE_AFTER_FAILURE_MS)
    const timeoutMs = Math.min(message.config.timeoutMs ?? this.#deps.timeoutMs, this.#deps.timeoutMs)
    const sending = this.#sender.send({
      url: outbound.url,
      method: outbound.method,
      body: outbound.body,
      keepBytes: outbound.keepBytes,
      keepFailingBytes: outbound.keepFailingBytes,
      headers: this.headers.of(message, outbound),
      timeoutMs,
    })
    entry.abort = () => sending.abort()
    return sending
  }

  /**
   * Commits an outcome and retries until that succeeds or the message has ended, because the response of the destination must
   * not be lost. One that can never be stored is replaced by a failure that says so.
   */
  async #settle(
    entry: Entry,
    kind: MessageKind,
    message: PendingMessage,
    answered: AttemptOutcome,
    traced: TracedAttempt | undefined,
  ): Promise<void> {
    let outcome = answered
    for (let failures = 0; ; ) {
      try {
        const settled = await kind.settle(message, outcome)
        countAttempt(this.#deps.meter, message, outcome, settled, entry.host)
        return this.#applySettled(entry, traced ? traced.settled(outcome, settled) : settled)
      } catch (error) {
        if (this.#phase !== 'running' || entry.state === 'dropped') return this.#backlog.release(entry)
        this.#deps.logger.error('queue_outcome_not_stored', { error, messageId: message.messageId })
        failures = isPassing(error) ? 0 : failures + 1
        outcome = insteadOf(outcome, error, failures) ?? outcome
        await this.#pauseUnlessStopping(pauseAfter(failures))
      }
    }
  }

  /** Resolves after a while, or when the dispatcher stops. */
  async #pauseUnlessStopping(ms: number): Promise<void> {
    let timer: Timer | undefined
    await Promise.race([this.#halted, new Promise<void>((resolve) => (timer = this.#deps.clock.after(ms, resolve)))])
    timer?.cancel()
  }

  #applySettled(entry: Entry, settled: Settled): void {
    const now = this.#deps.clock.now()
    const retry = entry.state === 'dropped' ? undefined : settled.retry
    const isOwn = this.partitions.sends(entry.partition)
    if (retry && isOwn) this.#backlog.reschedule(entry, retry, now)
    else this.#backlog.release(entry)
    if (retry && !isOwn) this.partitions.passOn(entry.partition, { nextAt: retry.nextAt, seq: entry.seq })
    if (settled.dropGroups?.length) this.drop({ groupKeys: settled.dropGroups, mayBeOfferedAgain: true })
    if (settled.offers.length > 0) this.offer(settled.offers)
  }
}
