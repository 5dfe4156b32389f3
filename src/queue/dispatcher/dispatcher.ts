import { type Clock, type Service, type TargetPolicy, type Timer, TurnoverMap } from '../../base/index.js'
import { isError } from '../../contract/errors/errors.js'
import type { Store } from '../../store/index.js'
import type { Logger } from '../../telemetry/index.js'
import * as flowKeys from '../transactions/flow-keys.js'
import type { PendingRow } from '../transactions/messages.js'
import * as messages from '../transactions/messages.js'
import type { AttemptOutcome, DropSelector, MessageKind, PendingMessage, Settled } from '../types.js'
import { Backlog, type BacklogLimits } from './backlog.js'
import type { Load } from './coverage.js'
import { damagedOutcome, pauseAfter, Unread } from './damage.js'
import { deliveryHeaders, signDelivery } from './delivery-headers.js'
import type { Entry } from './entry.js'
import { FlowControl } from './flow-control.js'
import { DueReader } from './read-due.js'
import type { InFlightLimits } from './round-robin.js'
import { isOutOfDescriptors, Sender, type Sending } from './sender.js'

/** After the store or a kind has failed, the same is tried again this much later. */
const PAUSE_AFTER_FAILURE_MS = 1_000
/** Of slow requests, and of outcomes that wait for their commit, there are at most this many of each. */
const MOST_LINGERING = 5_000
/** So many of each there may be for each request that may be in flight. */
const LINGERING_PER_REQUEST = 10

const lingering = (concurrency: number): number => Math.min(MOST_LINGERING, concurrency * LINGERING_PER_REQUEST)

function backlogLimits(concurrency: number): BacklogLimits {
  return {
    windowMs: 60_000,
    loadLimit: 1_000,
    maxPerHost: 2_500,
    flowLoadLimit: 40,
    maxPerFlowKey: 100,
    // More than can be in flight and linger together, so that something can always leave.
    capacity: Math.max(20_000, 4 * concurrency),
    inFlight: inFlightLimits(concurrency),
  }
}

/** How the requests in flight are shared; see `RoundRobin`. */
function inFlightLimits(concurrency: number): InFlightLimits {
  return {
    most: concurrency,
    maxPerAccount: Math.ceil((concurrency * 3) / 4),
    // Half of all: one host that does not answer leaves the other half to the rest.
    maxPerHost: Math.ceil(concurrency / 2),
    slowAfterMs: 2_000,
    maxSlow: lingering(concurrency),
    maxSlowBytes: 256 * 2 ** 20,
  }
}

/** What the engine works with. */
export interface DispatcherDeps {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
  /** Requests in flight at once. */
  readonly concurrency: number
  /** No attempt may take longer. */
  readonly timeoutMs: number
  /** Of the body of an answer this much is kept. */
  readonly keepBytes: number
  /** How long `stop` waits for requests in flight. */
  readonly graceMs: number
  /** The current signing key of an account. */
  readonly signingKey: (accountId: string) => string
  /** Which destinations may be contacted. */
  readonly targets: TargetPolicy
  /** Sent as `Upstash-Region`. */
  readonly region: string
}

/**
 * Sends messages when they are due and commits the outcomes.
 *
 * Phases: `idle` (before start), `running`, `stopping` (nothing new starts, requests in flight may finish), `stopped`.
 * A message in flight is `pending` in the store until its outcome is committed, so whatever dies in between is sent
 * again after the next start: at least once, never lost.
 */
export class Dispatcher implements Service {
  readonly name = 'delivery engine'
  readonly #deps: DispatcherDeps
  readonly #kinds = new Map<string, MessageKind>()
  /** Flow-control keys; whoever changes what is stored of one tells it. */
  readonly flow = new FlowControl()
  readonly #backlog: Backlog
  readonly #sender: Sender
  readonly #unsettled = new TurnoverMap<Entry, true>()
  /** Messages whose request is over and whose outcome is not yet committed. */
  #settling = 0
  #phase: 'idle' | 'running' | 'stopping' | 'stopped' = 'idle'
  #wake: Timer | undefined
  #wakeAt = Number.POSITIVE_INFINITY
  #pumpPlanned = false
  /** Nothing is sent while this runs. */
  #pauseTimer: Timer | undefined
  #onQuiet: (() => void) | undefined
  readonly #due: DueReader
  /** No load begins while this runs. */
  #loadPause: Timer | undefined
  #loadFailures = 0
  readonly #unread: Unread
  #halt: () => void = () => undefined
  readonly #halted = new Promise<void>((resolve) => {
    this.#halt = resolve
  })

  constructor(deps: DispatcherDeps) {
    this.#deps = deps
    const limits = backlogLimits(deps.concurrency)
    this.#backlog = new Backlog(limits, this.flow)
    this.#unread = new Unread(deps, (from) => {
      this.#backlog.loadAgainFrom(from)
      this.#planPump()
    })
    this.#due = new DueReader(deps.store, (place) => this.#unread.add(place))
    this.#sender = new Sender({
      clock: deps.clock,
      connectionsPerHost: limits.inFlight.maxPerHost,
      keepBytes: deps.keepBytes,
      targets: deps.targets,
    })
  }

  addKind(kind: MessageKind): void {
    if (this.#kinds.has(kind.name)) throw new Error(`two message kinds are named ${kind.name}`)
    this.#kinds.set(kind.name, kind)
  }

  async start(): Promise<void> {
    for (const key of await this.#deps.store.run(flowKeys.everything, {})) this.flow.set(key)
    this.#phase = 'running'
    this.#planPump()
  }

  async stop(graceMs = this.#deps.graceMs): Promise<void> {
    if (this.#phase === 'running' || this.#phase === 'idle') {
      this.#phase = 'stopping'
      this.#wake?.cancel()
      this.#loadPause?.cancel()
      this.#unread.stop()
      this.#halt()
      await this.#quiet(graceMs)
      for (const entry of this.#unsettled.keys()) entry.abort?.()
      await this.#quiet(PAUSE_AFTER_FAILURE_MS)
    }
    this.#phase = 'stopped'
    await this.#sender.close()
  }

  /** Takes committed messages; see `Queue.offer`. */
  offer(rows: readonly PendingRow[]): void {
    // A turn in a queue comes later than the message that it is for: by then others may have had the last word.
    for (const row of rows) if (row.queue === null || row.held) this.flow.note(row)
    const free = rows.some((row) => row.held) ? rows.filter((row) => !row.held) : rows
    this.#backlog.offer(free, this.#deps.clock.now())
    this.#planPump()
  }

  /** Requests in flight, not counting slow ones, of at most `most`. */
  get parallelism(): { readonly sending: number; readonly most: number } {
    return { sending: this.#backlog.sending, most: this.#deps.concurrency }
  }

  /** Looks again at what waits; to be called after the limits of a flow-control key were changed. */
  limitsChanged(): void {
    this.#planPump()
  }

  /** The store has moved messages to other times. */
  rewind(): void {
    this.#backlog.rewind()
    this.#planPump()
  }

  /** Forgets messages whose end has been committed; see `Queue.drop`. */
  drop(which: DropSelector): void {
    for (const entry of this.#backlog.drop(which)) entry.abort?.()
    this.#planPump()
  }

  /** Resolves when nothing is unsettled, or after a while. */
  #quiet(mostMs: number): Promise<void> {
    if (this.#unsettled.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.#deps.clock.after(mostMs, resolve)
      this.#onQuiet = () => {
        timer.cancel()
        resolve()
      }
    })
  }

  /**
   * Many offers and outcomes of one tick are worth one look, at its end: by then those who wait for answers have them, and
   * take them in while requests are built.
   */
  #planPump(): void {
    if (this.#pumpPlanned || this.#phase !== 'running') return
    this.#pumpPlanned = true
    setImmediate(() => {
      this.#pumpPlanned = false
      if (this.#phase === 'running') this.#pump()
    })
  }

  #pump(): void {
    const now = this.#deps.clock.now()
    this.#backlog.advance(now)
    while (!this.#pauseTimer && this.#settling < lingering(this.#deps.concurrency)) {
      const entry = this.#backlog.take(now)
      if (!entry) break
      this.#unsettled.set(entry, true)
      void this.#deliver(entry)
    }
    const load = this.#loadPause ? undefined : this.#backlog.nextLoad(now)
    if (load) void this.#load(load)
    this.#setWake(this.#backlog.wakeAt(now), now)
  }

  #setWake(at: number, now: number): void {
    if (at === this.#wakeAt) return
    this.#wake?.cancel()
    this.#wakeAt = at
    this.#wake = undefined
    if (at === Number.POSITIVE_INFINITY) return
    this.#wake = this.#deps.clock.after(at - now, () => {
      this.#wakeAt = Number.POSITIVE_INFINITY
      this.#planPump()
    })
  }

  /** Never rejects. */
  async #load(load: Load): Promise<void> {
    try {
      const page = await this.#due.read(load)
      this.#loadFailures = 0
      this.#backlog.loaded(load, page, this.#deps.clock.now())
      this.#planPump()
    } catch (error) {
      this.#backlog.loadFailed(load)
      if (this.#phase !== 'running') return
      this.#deps.logger.error({ error }, 'due messages could not be read; trying again')
      this.#loadPause = this.#deps.clock.after(pauseAfter(error, ++this.#loadFailures), () => {
        this.#loadPause = undefined
        this.#planPump()
      })
    }
  }

  /** One attempt, from request to committed outcome. Never rejects. */
  async #deliver(entry: Entry): Promise<void> {
    try {
      await this.#attempt(entry)
    } catch (error) {
      if (isOutOfDescriptors(error)) this.#pause(error)
      else {
        this.#deps.logger.error(
          { error, messageId: entry.message.messageId },
          'an attempt could not be made; trying again',
        )
      }
      if (entry.state === 'sending') {
        const nextAt = this.#deps.clock.now() + PAUSE_AFTER_FAILURE_MS
        this.#backlog.again(entry, { ...entry.message, nextAt }, this.#deps.clock.now())
      }
    }
    this.#settling--
    this.#unsettled.delete(entry)
    if (this.#unsettled.size === 0) this.#onQuiet?.()
    this.#planPump()
  }

  /** Without a file descriptor no message of anybody can be sent. */
  #pause(error: unknown): void {
    if (this.#pauseTimer) return
    this.#pauseTimer = this.#deps.clock.after(PAUSE_AFTER_FAILURE_MS, () => {
      this.#pauseTimer = undefined
      this.#planPump()
    })
    this.#deps.logger.error(
      { error },
      'no file descriptor is left for deliveries; trying again. Raise the limit of open files (`ulimit -n`)',
    )
  }

  async #attempt(entry: Entry): Promise<void> {
    const kind = this.#kinds.get(entry.message.kind)
    let outcome: AttemptOutcome | undefined
    let message: PendingMessage | undefined
    let sending: Sending | undefined
    try {
      if (!kind) throw new Error(`nothing is registered for messages of kind ${entry.message.kind}`)
      message = await this.#whole(entry)
      sending = message && (await this.#send(entry, kind, message))
      outcome = await sending?.outcome
    } catch (error) {
      // Changed bytes must not be sent, and what cannot be read cannot be: this message fails, and says why.
      if (!isError(error, 'store_damaged')) throw error
      message ??= entry.message
      outcome = damagedOutcome(error, this.#deps.clock.now())
    } finally {
      this.#settling++
      if (outcome) this.#backlog.answered(entry)
      else this.#backlog.unsent(entry)
      entry.abort = undefined
    }
    // From here on the host may have its next request; the outcome is committed beside it.
    this.#planPump()
    try {
      if (!kind || !message || !outcome || entry.state === 'dropped') this.#backlog.release(entry)
      else await this.#settle(entry, kind, message, outcome)
    } finally {
      sending?.release()
    }
  }

  /** The message with its body; `undefined` when it is gone. */
  async #whole(entry: Entry): Promise<PendingMessage | undefined> {
    if (!entry.bodyInStore) return entry.message
    const row = await this.#deps.store.run(messages.body, { seq: entry.seq })
    return row && { ...entry.message, body: row.body ?? undefined }
  }

  async #send(entry: Entry, kind: MessageKind, message: PendingMessage): Promise<Sending | undefined> {
    const prepared = kind.prepare(message)
    const outbound = prepared instanceof Promise ? await prepared : prepared
    if (!outbound || entry.state === 'dropped') return undefined
    const { clock, region } = this.#deps
    const key = this.#deps.signingKey(message.accountId)
    const signature = signDelivery({ key, url: outbound.url, body: outbound.body, now: clock.now() })
    const headers = deliveryHeaders({ message, outbound, signature, region })
    const timeoutMs = Math.min(message.config.timeoutMs ?? this.#deps.timeoutMs, this.#deps.timeoutMs)
    const sending = this.#sender.send({
      url: outbound.url,
      method: outbound.method,
      body: outbound.body,
      ...(outbound.keepBytes !== undefined && { keepBytes: outbound.keepBytes }),
      ...(outbound.keepFailingBytes !== undefined && { keepFailingBytes: outbound.keepFailingBytes }),
      headers,
      timeoutMs,
    })
    entry.abort = () => sending.abort()
    return sending
  }

  /** Commits an outcome, however often that has to be tried: the answer of the destination must not get lost. */
  async #settle(entry: Entry, kind: MessageKind, message: PendingMessage, outcome: AttemptOutcome): Promise<void> {
    for (let failures = 1; ; failures++) {
      try {
        return this.#follow(entry, await kind.settle(message, outcome))
      } catch (error) {
        if (this.#phase !== 'running') return this.#backlog.release(entry)
        this.#deps.logger.error({ error, messageId: message.messageId }, 'an outcome could not be stored; trying again')
        await this.#pauseUnlessStopping(pauseAfter(error, failures))
      }
    }
  }

  /** Resolves after a while, or when the engine stops. */
  async #pauseUnlessStopping(ms: number): Promise<void> {
    let timer: Timer | undefined
    await Promise.race([this.#halted, new Promise<void>((resolve) => (timer = this.#deps.clock.after(ms, resolve)))])
    timer?.cancel()
  }

  #follow(entry: Entry, settled: Settled): void {
    const now = this.#deps.clock.now()
    if (settled.again && entry.state !== 'dropped') this.#backlog.again(entry, settled.again, now)
    else this.#backlog.release(entry)
    if (settled.dropGroups?.length) this.drop({ groupKeys: settled.dropGroups, comesBack: true })
    if (settled.offers.length > 0) this.offer(settled.offers)
  }
}
