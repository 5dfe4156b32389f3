import { type Timer, TurnoverMap, unreachable } from '../../base/index.js'
import { isPassing } from '../../store/index.js'
import type { RequestSender, Sending } from '../sending/sender.js'
import { type Shortage, shortageOf } from '../sending/shortage.js'
import * as messages from '../transactions/messages.js'
import type { AttemptOutcome, MessageKind, PendingMessage, Settled } from '../types.js'
import type { Backlog } from './backlog.js'
import { countAttempt } from './count-attempt.js'
import { neverSentOutcome, PAUSE_AFTER_FAILURE_MS, pauseAfter, replacementOutcome } from './damage.js'
import { longBodyHash } from './delivery-headers.js'
import type { DispatcherDeps } from './dispatcher-deps.js'
import type { Entry } from './entry.js'
import type { Partitions } from './partitions.js'
import type { Pump } from './pump.js'
import type { RequestHeaders } from './request-headers.js'
import { TracedAttempt } from './traced-attempt.js'

const PORTS_REPORTED_EVERY_MS = 60_000

/** What attempts are built from. */
export interface AttemptsDeps
  extends Pick<DispatcherDeps, 'store' | 'clock' | 'logger' | 'meter' | 'timeoutMs' | 'tracer'> {
  readonly backlog: Backlog
  readonly partitions: Partitions
  readonly headers: RequestHeaders
  readonly sender: RequestSender
  readonly pump: Pump
  /** Called after the commit of an outcome, with its effects on other messages. */
  readonly onSettled: (settled: Omit<Settled, 'retry'>) => void
  /** Called when an attempt is over. */
  readonly onEnd: () => void
}

/**
 * Thrown when a request must not be sent now: this node may have been declared dead, no longer owns the message, or too much
 * memory is in use. The message is due again at `nextAt`.
 */
class NotNow extends Error {
  readonly nextAt: number

  constructor(nextAt: number) {
    super()
    this.nextAt = nextAt
  }
}

/**
 * Runs attempts, each from a taken message to its committed outcome:
 *
 *   body ─ prepare ─ request ─ outcome ─ place in flight is free ─ settled in one commit ─ next attempt, or forgotten
 *     └───────┴─────────┴─ failed here, or not now: put back
 *
 * A message whose attempt runs stays `pending` in the store, so it is sent again if the server dies
 * before the commit. Once the destination has answered, the commit of the outcome is retried until it
 * succeeds; until then the attempt is `settling`.
 */
export class Attempts {
  readonly #deps: AttemptsDeps
  readonly #kinds = new Map<string, MessageKind>()
  readonly #unsettled = new TurnoverMap<Entry, true>()
  #settling = 0
  #portsReportedAt = Number.NEGATIVE_INFINITY
  #onQuiet: (() => void) | undefined
  #isStopping = false
  #halt: () => void = () => undefined
  readonly #halted = new Promise<void>((resolve) => {
    this.#halt = resolve
  })

  constructor(deps: AttemptsDeps) {
    this.#deps = deps
  }

  addKind(kind: MessageKind): void {
    if (this.#kinds.has(kind.name)) throw new Error(`two message kinds are named ${kind.name}`)
    this.#kinds.set(kind.name, kind)
  }

  /** Messages that were taken and whose outcome is not committed. */
  unsettled(): Iterable<Entry> {
    return this.#unsettled.keys()
  }

  /** Whether no attempt runs. */
  get isQuiet(): boolean {
    return this.#unsettled.size === 0
  }

  /** Messages whose request is over and whose outcome is not committed yet. */
  get settling(): number {
    return this.#settling
  }

  /**
   * Waits for running attempts, and aborts their requests after `graceMs`. Failed
   * commits of outcomes are no longer retried.
   */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    this.#halt()
    await this.#whenQuiet(graceMs)
    for (const entry of this.#unsettled.keys()) entry.abort?.()
    await this.#whenQuiet(PAUSE_AFTER_FAILURE_MS)
  }

  /** Resolves when no attempt runs, or after a time limit. */
  #whenQuiet(mostMs: number): Promise<void> {
    if (this.isQuiet) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.#deps.clock.after(mostMs, resolve)
      this.#onQuiet = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  /** Makes an attempt of a taken message. Never rejects. */
  async make(entry: Entry): Promise<void> {
    this.#unsettled.set(entry, true)
    try {
      await this.#attempt(entry)
    } catch (error) {
      this.#putBack(entry, error)
    }
    this.#settling--
    this.#unsettled.delete(entry)
    this.#deps.partitions.noteSettled()
    if (this.isQuiet) this.#onQuiet?.()
    this.#deps.onEnd()
  }

  #putBack(entry: Entry, error: unknown): void {
    const { backlog, partitions, clock, logger } = this.#deps
    const shortage = shortageOf(error)
    if (shortage) this.#noteShortage(shortage, error)
    else if (!(error instanceof NotNow)) {
      logger.error('queue_attempt_failed', { error, messageId: entry.message.messageId })
    }
    const now = clock.now()
    const nextAt = error instanceof NotNow ? error.nextAt : now + PAUSE_AFTER_FAILURE_MS
    if (entry.state === 'sending' && partitions.sends(entry.partition))
      backlog.reschedule(entry, { ...entry.message, nextAt }, now)
    else backlog.release(entry)
  }

  #noteShortage(shortage: Shortage, error: unknown): void {
    const { pump, sender, clock, logger } = this.#deps
    switch (shortage) {
      case 'descriptors':
        // Without file descriptors, no message of any account can be sent.
        if (pump.isPaused) return
        sender.endWaiting()
        pump.pauseFor(PAUSE_AFTER_FAILURE_MS)
        logger.error('queue_out_of_descriptors', { error })
        return
      case 'ports': {
        // Local ports run out for each destination separately, so messages to other destinations can still be sent.
        const now = clock.now()
        if (Math.abs(now - this.#portsReportedAt) < PORTS_REPORTED_EVERY_MS) return
        this.#portsReportedAt = now
        logger.error('queue_out_of_ports', { error })
        return
      }
      default:
        unreachable(shortage)
    }
  }

  async #attempt(entry: Entry): Promise<void> {
    const { backlog, tracer, clock, meter, pump } = this.#deps
    const kind = this.#kinds.get(entry.message.kind)
    let outcome: AttemptOutcome | undefined
    let message: PendingMessage | undefined
    let sending: Sending | undefined
    let traced: TracedAttempt | undefined
    try {
      if (!kind) throw new Error(`nothing is registered for messages of kind ${entry.message.kind}`)
      message = await this.#withBody(entry)
      if (tracer && message) {
        traced = new TracedAttempt(tracer, kind, message)
        message = traced.message
      }
      sending = message && (await this.#send(entry, kind, message))
      outcome = await sending?.outcome
    } catch (error) {
      // A message that can never be sent, for example because its body is damaged, fails with the reason.
      outcome = neverSentOutcome(error, clock.now())
      if (!outcome) throw error
      message ??= entry.message
    } finally {
      if (outcome) traced?.answered()
      else traced?.dropped()
      this.#settling++
      // An aborted request was made, so it counts against the rate of its flow-control key.
      if (outcome || sending) backlog.due.answered(entry)
      else backlog.due.unsent(entry)
      entry.abort = undefined
      entry.isAnswered = outcome !== undefined
    }
    // The host may get its next request now, while this outcome is committed.
    pump.atEndOfTick()
    try {
      if (outcome && entry.state === 'dropped') meter.deliveries.cancelled++
      if (!kind || !message || !outcome || entry.state === 'dropped') backlog.release(entry)
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
    const { backlog, partitions, clock, timeoutMs, headers, sender } = this.#deps
    const prepared = kind.prepare(message, entry, (bytes) => {
      if (!backlog.due.claim(entry, bytes)) throw new NotNow(message.nextAt)
    })
    const outbound = prepared instanceof Promise ? await prepared : prepared
    const hashing = longBodyHash(outbound?.body)
    const bodyHash = hashing && (await hashing)
    if (!outbound || entry.state === 'dropped' || backlog.isHeld(message.accountId)) return undefined
    if (!partitions.mayStart(entry.partition)) throw new NotNow(clock.now() + PAUSE_AFTER_FAILURE_MS)
    const sending = sender.send({
      url: outbound.url,
      method: outbound.method,
      body: outbound.body,
      keepBytes: outbound.keepBytes,
      keepFailingBytes: outbound.keepFailingBytes,
      headers: headers.of(message, outbound, bodyHash),
      timeoutMs: Math.min(message.config.timeoutMs ?? timeoutMs, timeoutMs),
    })
    entry.abort = () => sending.abort()
    return sending
  }

  /**
   * Commits an outcome and retries until that succeeds or the message has ended, because the response of the destination
   * must not be lost. An outcome that can never be stored is replaced by a failure with the reason.
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
        return this.#apply(entry, traced ? traced.settled(outcome, settled) : settled)
      } catch (error) {
        if (this.#isStopping || entry.state === 'dropped') return this.#deps.backlog.release(entry)
        this.#deps.logger.error('queue_outcome_not_stored', { error, messageId: message.messageId })
        failures = isPassing(error) ? 0 : failures + 1
        outcome = replacementOutcome(outcome, error, failures) ?? outcome
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

  /** Applies a committed outcome to memory. */
  #apply(entry: Entry, settled: Settled): void {
    const { backlog, partitions, clock, onSettled } = this.#deps
    const { retry } = settled
    const isOwn = partitions.sends(entry.partition)
    if (retry && isOwn) backlog.reschedule(entry, retry, clock.now())
    else backlog.release(entry)
    if (retry && !isOwn) partitions.passOn(entry.partition, { nextAt: retry.nextAt, seq: entry.seq })
    onSettled(settled)
  }
}
