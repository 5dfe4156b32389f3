import type { Clock } from '../../base/index.js'
import type { Store } from '../../store/index.js'
import { Backlog } from '../dispatcher/backlog.js'
import type { Load } from '../dispatcher/coverage.js'
import type { Entry } from '../dispatcher/entry.js'
import { FlowControl } from '../dispatcher/flow-control.js'
import type { BacklogLimits } from '../dispatcher/limits.js'
import { readDue } from '../dispatcher/read-due.js'
import { PlainKind } from '../plain-kind.js'
import * as flowKeys from '../transactions/flow-keys.js'
import type { PendingRow } from '../transactions/messages.js'
import * as messages from '../transactions/messages.js'
import type { DuePage } from '../transactions/messages-due.js'
import type { AttemptOutcome, DropSelector, MessageKind, Outbound, PendingMessage, Queue, Settled } from '../types.js'

/**
 * The dispatcher with its real backlog, round robin and flow control, run step by step: the test decides each next step.
 * Nothing runs by itself, and no request is sent.
 */

/** Small limits, so that lanes are parked, hosts are full and memory is short all the time. */
const LIMITS: BacklogLimits = {
  windowMs: 600_000,
  loadLimit: 6,
  maxPerHost: 8,
  flowLoadLimit: 2,
  maxPerFlowKey: 4,
  capacity: 24,
  inFlight: {
    maxTotal: 8,
    maxPerAccount: 7,
    maxPerHost: 5,
    slowAfterMs: 2_000,
    maxSlow: 10,
    maxSlowBytes: 2 ** 20,
    bytesPerPlace: 2 ** 20,
  },
}

/**
 * A request in flight: `open` until its destination has responded, `answered` until the dispatcher knows, `over` until
 * its outcome is committed.
 */
export interface Flight {
  readonly entry: Entry
  readonly message: PendingMessage
  readonly outbound: Outbound
  state: 'open' | 'answered' | 'over'
}

/** Builds the components of a simulated dispatcher: the real ones, or replacements. */
export interface DispatcherFactories {
  readonly flow: () => FlowControl
  readonly backlog: (limits: BacklogLimits, flow: FlowControl) => Backlog
}

/** Builds the real components of the dispatcher. */
export const REAL_FACTORIES: DispatcherFactories = {
  flow: () => new FlowControl(),
  backlog: (limits, flow) => new Backlog(limits, flow),
}

/** Requests of a simulated dispatcher have no signature. */
export const unsigned: Queue['signAhead'] = (_message, outbound) => outbound

/** What the simulated dispatcher is built from. */
export interface SimulatedDispatcherDeps {
  readonly store: Store
  readonly accountId: string
  readonly clock: Clock
  /** In addition to plain messages. */
  readonly kinds: readonly MessageKind[]
  /** Whether the page of a finished load is handed over now or later. */
  readonly takesLoadNow: () => boolean
  /** Called at the turn of a message, whether or not it still has something to send. */
  readonly taken: (message: PendingMessage) => void
  readonly factories: DispatcherFactories
}

/** A simulated dispatcher, from one start of the server to the next. */
export class SimulatedDispatcher {
  readonly flow: FlowControl
  readonly #deps: SimulatedDispatcherDeps
  readonly #backlog: Backlog
  readonly #flights = new Set<Flight>()
  #loading: { readonly load: Load; readonly page: DuePage } | undefined

  constructor(deps: SimulatedDispatcherDeps) {
    this.#deps = { ...deps, kinds: [new PlainKind(deps), ...deps.kinds] }
    this.flow = deps.factories.flow()
    this.#backlog = deps.factories.backlog(LIMITS, this.flow)
  }

  /** Reads the flow-control keys. */
  async start(): Promise<void> {
    for (const key of await this.#deps.store.run(flowKeys.page, { after: flowKeys.FIRST_KEY, limit: 100_000 }))
      this.flow.set(key)
  }

  get flights(): readonly Flight[] {
    return [...this.#flights]
  }

  /** The numbers of the messages in memory that were not sent. */
  get unsentSeqs(): readonly number[] {
    return this.#backlog.unsentSeqs
  }

  /** Like `Dispatcher.offer`. */
  offer(rows: readonly PendingRow[], isAgain = false): void {
    for (const row of rows) if (row.queue === null || row.held) this.flow.note(row)
    this.#backlog.offer(rows, this.#deps.clock.now(), isAgain)
  }

  /** Like `Dispatcher.drop`. Returns the aborted requests. Their destinations may still have received them. */
  drop(which: DropSelector): readonly Flight[] {
    const dropped = new Set(this.#backlog.drop(which))
    const aborted = this.flights.filter(({ entry, state }) => dropped.has(entry) && state !== 'over')
    for (const flight of aborted) {
      this.#flights.delete(flight)
      this.#backlog.due.answered(flight.entry)
      this.#backlog.release(flight.entry)
    }
    return aborted
  }

  /** Advances to the current time and runs the next load. */
  async pump(): Promise<void> {
    const now = this.#deps.clock.now()
    if (this.#loading && this.#deps.takesLoadNow()) {
      this.#backlog.loaded(this.#loading.load, this.#loading.page, now)
      this.#loading = undefined
    }
    // All callers have made their offers by now.
    this.#backlog.ended.age()
    this.#backlog.ended.forgetAged()
    this.#backlog.due.advance(now)
    const load = this.#backlog.nextLoad(now)
    if (load) this.#loading = { load, page: await this.#read(load) }
  }

  /** Starts the next request; `undefined` if none may be sent, or if the message has nothing left to send. */
  async send(): Promise<Flight | undefined> {
    const entry = this.#backlog.due.take(this.#deps.clock.now())
    if (!entry) return undefined
    this.#deps.taken(entry.message)
    const message = entry.bodyInStore ? await this.#whole(entry) : entry.message
    const outbound = message && (await this.#kindOf(message).prepare(message, entry, () => undefined))
    // The message may have been dropped while it was prepared.
    if (message && outbound && this.#isTaken(entry)) {
      const flight: Flight = { entry, message, outbound, state: 'open' }
      // Set as in the real dispatcher: the backlog recognizes requests in flight by it.
      entry.abort = () => undefined
      this.#flights.add(flight)
      return flight
    }
    this.#backlog.due.unsent(entry)
    this.#backlog.release(entry)
    return undefined
  }

  #isTaken({ state }: Entry): boolean {
    return state === 'sending'
  }

  /** The request is over; its outcome is not committed yet. */
  over(flight: Flight): void {
    flight.state = 'over'
    flight.entry.abort = undefined
    this.#backlog.due.answered(flight.entry)
  }

  /** Commits an outcome. The caller handles its consequences, except the next attempt of the message itself. */
  async settle(flight: Flight, outcome: AttemptOutcome): Promise<Settled> {
    this.#flights.delete(flight)
    const settled = await this.#kindOf(flight.message).settle(flight.message, outcome)
    if (settled.retry) this.#backlog.reschedule(flight.entry, settled.retry, this.#deps.clock.now())
    else this.#backlog.release(flight.entry)
    return settled
  }

  /** Whether nothing is in memory or in flight. */
  get isEmpty(): boolean {
    return this.#flights.size === 0 && this.#backlog.size === 0 && this.#loading === undefined
  }

  /** When the next step becomes possible only because time passes, Unix milliseconds. */
  get wakeAt(): number {
    return this.#loading ? this.#deps.clock.now() : this.#backlog.wakeAt(this.#deps.clock.now())
  }

  #kindOf({ kind }: PendingMessage): MessageKind {
    const found = this.#deps.kinds.find(({ name }) => name === kind)
    if (!found) throw new Error(`nothing is registered for messages of kind ${kind}`)
    return found
  }

  async #whole({ message, seq }: Entry): Promise<PendingMessage | undefined> {
    const row = await this.#deps.store.run(messages.body, { seq })
    return row && { ...message, body: row.body ?? undefined }
  }

  async #read(load: Load): Promise<DuePage> {
    const page = await readDue(this.#deps.store, load)
    return { ...page, rows: page.rows.filter((row) => row.account_id === this.#deps.accountId) }
  }
}
