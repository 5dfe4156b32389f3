import { newId } from '../../../base/index.js'
import { ManualClock } from '../../../base/testing/manual-clock.js'
import { type Random, seeded } from '../../../base/testing/random.js'
import type { AttemptOutcome, DropSelector, PendingMessage } from '../../../queue/index.js'
import { HIGH_LIMITS, JumpingClock } from '../../../queue/testing/harness.js'
import {
  type DispatcherFactories,
  type Flight,
  REAL_FACTORIES,
  SimulatedDispatcher,
  unsigned,
} from '../../../queue/testing/simulated-dispatcher.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import { WorkflowMeter } from '../../../telemetry/index.js'
import { InFlightDeliveries } from '../../runs/in-flight.js'
import { RunIntake } from '../../runs/intake.js'
import { RecentLists } from '../../runs/recent-lists.js'
import { RefusedReturns } from '../../runs/refused-returns.js'
import { RunMessages } from '../../runs/run-messages.js'
import { type Census, checkNothingLeft, remains, retain, retainLast, runsOf, waitingMessages } from './census.js'
import { answer, type EndpointDeps } from './endpoint.js'
import { FlowWatch } from './flow-watch.js'
import { Knowledge } from './knowledge.js'
import { PlainTraffic } from './plain-traffic.js'
import { PROGRAM_URL, publisherOf, withoutCommitDelay } from './program.js'
import { RuledMessages } from './ruled-messages.js'
import { RunMoves } from './run-moves.js'
import { checkSelectors, failureText } from './selector-watch.js'
import { WorkflowPause } from './workflow-pause.js'

const LIMITS = { timeoutMs: 900_000 }
const MAX_ROUNDS = 5_000
/** Retention keeps what ended this recently. */
const RECENT_MS = 600_000
/** In half of the simulations, programs fetch lists that are larger than this. */
const INLINE_LIMIT_BYTES = 500

/** Longest time that passes while nothing happens, so that held due times differ from those that are kept. */
const MAX_PASSING_MS = 40_000

const bodyOf = (status: number, messageId: string): Uint8Array =>
  new TextEncoder().encode(status === 200 ? '' : failureText(messageId))

/** With random failures, or without. */
type Mode = 'faulty' | 'clean'

/**
 * A random but reproducible simulation of runs: the real intake, message kinds, backlog, flow control and store, with a
 * simulated dispatcher, clock and endpoint. It throws as soon as a guarantee is violated. `finish` lets everything end.
 */
export class Simulation {
  readonly #store: Store
  readonly #random: Random
  readonly #factories: DispatcherFactories
  readonly #steady = new ManualClock()
  readonly #clock = new JumpingClock(this.#steady)
  /** Messages that were due when the clock was set back. They may be sent early. */
  readonly #wasDue = new Set<string>()
  readonly #accountId: string
  readonly #known = new Knowledge()
  readonly #flow: FlowWatch
  readonly #plain: PlainTraffic
  readonly #ruled: RuledMessages
  readonly #workflowPause: WorkflowPause
  readonly #moves: RunMoves
  readonly #hasUndoAndPause: boolean
  #mode: Mode = 'faulty'
  /** Rows of earlier simulations in the store. */
  #before: Census | undefined
  #lists = new RecentLists()
  readonly #inFlight = new InFlightDeliveries(LIMITS.timeoutMs)
  #engine: SimulatedDispatcher
  #endpoint: EndpointDeps
  #inlineLimitBytes: number | undefined
  /** Requests from before a crash, and aborted ones; they may arrive late. */
  #late: Flight[] = []

  /** @param moves `basic`: without pauses, undos, restarts from a step, priorities, and messages with keys. */
  constructor(
    realStore: Store,
    seed: number,
    factories: DispatcherFactories = REAL_FACTORIES,
    moves: 'all' | 'basic' = 'all',
  ) {
    this.#hasUndoAndPause = moves === 'all'
    const [store, random] = [withoutCommitDelay(realStore), seeded(seed)]
    const publisher = publisherOf(newId('acc_', this.#clock.now()))
    this.#store = store
    this.#factories = factories
    this.#random = random
    this.#accountId = publisher.caller.accountId
    const shared = { store, random, accountId: this.#accountId, now: () => this.#clock.now() }
    const resumeRuns = () => this.#moves.resumeAll()
    this.#workflowPause = new WorkflowPause({ ...shared, known: this.#known, resumeRuns })
    this.#endpoint = this.#newEndpoint(publisher)
    this.#engine = this.#newEngine()
    const offer = (rows: readonly PendingRow[], isAgain?: boolean): void => this.#engine.offer(rows, isAgain)
    this.#flow = new FlowWatch({ ...shared, engine: () => this.#engine })
    const drop = (seqs: readonly number[]): void => this.#drop({ seqs })
    const asleep = (messageId: string, until: number): void => void this.#known.asleep.set(messageId, until)
    this.#ruled = new RuledMessages({ ...shared, offer, drop, asleep, unsent: () => this.#engine.unsentSeqs })
    this.#plain = new PlainTraffic({ ...shared, offer, drop, ruled: this.#ruled })
    this.#moves = new RunMoves({
      ...shared,
      offer,
      known: this.#known,
      hasUndoAndPause: moves === 'all',
      paused: this.#flow.paused,
      endpoint: () => this.#endpoint,
      pause: this.#workflowPause,
      drop: (which) => this.#drop(which),
      flowHold: (accountId, flowKey) => this.#engine.flow.hold(accountId, flowKey, this.#clock.now()),
    })
  }

  /** Performs random actions. */
  async play(moves: number): Promise<void> {
    this.#before ??= await remains(this.#store)
    for (let move = 0; move < moves; move++) await this.#move()
  }

  /**
   * Lets everything end, without further failures, and checks all results. Before that, bulk actions run once more: there
   * are never more dead runs than now.
   */
  async finish(): Promise<void> {
    this.#mode = 'clean'
    await this.#drain()
    for (let actions = 0; actions < 3; actions++) await this.#moves.bulk.start()
    await this.#drain()
    await this.#moves.checkReasons()
    await this.#moves.checkEnds()
    this.#flow.checkEmpty()
    await this.#plain.removeAll()
    await retainLast(this.#store, this.#accountId, this.#clock.now())
    await checkNothingLeft(this.#store, this.#before ?? new Map())
  }

  async #drain(): Promise<void> {
    await this.#workflowPause.end()
    await this.#moves.bulk.finish()
    await this.#moves.resumeAll()
    await this.#plain.resumeAll()
    await this.#flow.resumeAll()
    for (let round = 0; !(await this.#isDrained()); round++) {
      if (round > MAX_ROUNDS) throw new Error('the simulation does not end')
      await this.#advance()
    }
  }

  async #isDrained(): Promise<boolean> {
    if (!this.#engine.isEmpty || this.#plain.nextFireAt < Number.POSITIVE_INFINITY) return false
    // Evicted messages make space for stored ones: the first call reads them, the second one loads them.
    for (let calls = 0; calls < 2; calls++) await this.#engine.pump()
    if (!this.#engine.isEmpty) return false
    const { messages, dueAt } = await waitingMessages(this.#store, this.#accountId)
    const isLost = dueAt <= this.#clock.now() && this.#engine.wakeAt > this.#clock.now()
    if (isLost) throw new Error(`${messages} messages wait in the store, and the dispatcher does not know them`)
    return messages === 0
  }

  #newEndpoint(publisher: EndpointDeps['publisher']): EndpointDeps {
    const [store, clock, lists, random] = [this.#store, this.#clock, this.#lists, this.#random]
    const drop = (which: DropSelector): void => this.#drop(which)
    const drops = { drop, dropEverywhere: async (which: DropSelector): Promise<void> => drop(which) }
    const offer = (rows: readonly PendingRow[]): void => this.#engine.offer(rows)
    const queue = { ...drops, offer, refuseForbidden: () => undefined, signAhead: unsigned }
    this.#inlineLimitBytes = this.#random.chance(0.5) ? INLINE_LIMIT_BYTES : undefined
    const intake = new RunIntake({
      store,
      queue,
      clock,
      limits: LIMITS,
      lists,
      inFlight: this.#inFlight,
      meter: new WorkflowMeter(),
      inlineLimitBytes: this.#inlineLimitBytes,
    })
    intake.guard(this.#workflowPause)
    return { store, intake, publisher, random, now: () => clock.now(), offer: queue.offer, observer: this.#observer() }
  }

  #newEngine(): SimulatedDispatcher {
    const [store, clock, lists] = [this.#store, this.#clock, this.#lists]
    const { queueBodyLimitBytes: bodyLimitBytes, responseKeepBytes } = HIGH_LIMITS
    const inFlight = this.#inFlight
    const refusedReturns = new RefusedReturns()
    const limits = { inlineLimitBytes: this.#inlineLimitBytes, bodyLimitBytes, responseKeepBytes }
    return new SimulatedDispatcher({
      store,
      clock,
      accountId: this.#accountId,
      kinds: [
        new RunMessages({
          nodes: { ended: () => undefined },
          store,
          clock,
          lists,
          inFlight,
          refusedReturns,
          meter: new WorkflowMeter(),
          ...limits,
        }),
      ],
      takesLoadNow: () => this.#mode === 'clean' || this.#random.chance(0.6),
      taken: (message) => this.#taken(message),
      factories: this.#factories,
    })
  }

  #observer(): EndpointDeps['observer'] {
    const known = this.#known
    return {
      accepted: (runId, messageId) => void known.run(runId).accepted.add(messageId),
      asleep: (messageId, until) => void known.asleep.set(messageId, until),
      waiting: (runId, wait) => known.waiting(runId, wait),
      delivered: (runId, messageId, list) => known.delivered(runId, { messageId, list }),
      finished: (runId, runSeq, results) => {
        this.#lists.forget(runSeq)
        known.moveTo(runId, 'RUN_SUCCESS')
        known.run(runId).results = results
      },
      cancelledItself: (runId) => this.#moves.cancelItself(runId),
      failed: (runId, payload) => known.failed(runId, payload),
      unknown: (runId) => this.#moves.checkGone(runId),
    }
  }

  async #move(): Promise<void> {
    const dice = this.#random.below(this.#hasUndoAndPause ? 157 : 130)
    if (dice >= 154) return this.#checkSelectors()
    if (dice >= 150) return this.#workflowPause.change()
    if (dice >= 148) return this.#ruled.publishBurst()
    if (dice >= 144) return this.#ruled.publish()
    if (dice >= 142) return this.#plain.undo()
    if (dice >= 134) return void this.#steady.advance(this.#random.below(MAX_PASSING_MS))
    if (dice >= 130) return this.#moves.restart()
    if (dice < 13) return this.#moves.trigger()
    if (dice < 74) return this.#advance()
    if (dice < 91) return this.#moves.some(dice - 74)
    if (dice < 93) return this.#crash()
    if (dice < 107) return this.#moves.workInBulk(dice - 93)
    if (dice < 110) return this.#flow.change()
    if (dice < 115) return this.#plain.publish()
    if (dice < 117) return this.#plain.cancel()
    if (dice < 119) return this.#plain.changeQueue()
    if (dice < 121) return this.#plain.schedule()
    if (dice < 122) return this.#jump()
    if (dice < 123) return this.#retain()
    if (dice < 127) return this.#arriveLate()
    if (this.#engine.flights.length === 0) return this.#moves.checkReasons()
    return undefined
  }

  async #checkSelectors(): Promise<void> {
    const [store, random, { caller }] = [this.#store, this.#random, this.#endpoint.publisher]
    const isHeld = (runId: string): boolean => this.#known.isHeld(runId)
    const deps = { store, random, caller, isHeld, now: () => this.#clock.now() }
    await checkSelectors(deps, await runsOf(store, this.#accountId))
  }

  /** Advances a random message: sends it, answers it or settles it. */
  async #advance(): Promise<void> {
    await this.#plain.fire()
    await this.#engine.pump()
    this.#flow.checkPlaces()
    const flight = this.#random.pick(this.#engine.flights)
    if (flight && this.#random.chance(0.5)) return this.#proceed(flight)
    const sent = await this.#engine.send()
    if (sent) return this.#check(sent)
    if (flight) return this.#proceed(flight)
    const wakeAt = Math.min(this.#engine.wakeAt, this.#plain.nextFireAt)
    if (Number.isFinite(wakeAt)) this.#steady.advance(Math.max(0, wakeAt - this.#clock.now()))
  }

  #check({ message, outbound }: Flight): void {
    const runId = outbound.headers['Upstash-Workflow-Runid']?.[0]
    if (runId !== undefined) this.#moves.rules.sent(runId)
    if (runId !== undefined && this.#known.stateOf(runId) === 'RUN_CANCELED')
      throw new Error(`${runId} was cancelled, and one of its messages was delivered`)
    if (runId !== undefined && this.#known.isHeld(runId))
      throw new Error(`${runId} is paused, and ${message.messageId} of it was delivered`)
    const asleepUntil = this.#known.asleep.get(message.messageId) ?? 0
    if (asleepUntil > this.#clock.now() && !this.#wasDue.has(message.messageId))
      throw new Error(`${message.messageId} is due at ${asleepUntil}, and was delivered`)
    if (this.#known.cancelledCallbacks.has(message.messageId))
      throw new Error(`${message.messageId} was cancelled, and was delivered`)
    this.#flow.sent(message)
    this.#plain.sent(message)
  }

  /** A message is about to be delivered: messages of cancelled runs must be gone from memory. */
  #taken({ messageId, groupKey }: PendingMessage): void {
    if (groupKey !== undefined && this.#known.cancelled.has(groupKey))
      throw new Error(`${messageId} of a cancelled run is delivered again`)
  }

  async #proceed(flight: Flight): Promise<void> {
    const isFaulty = this.#mode === 'faulty'
    const fails = isFaulty && this.#random.chance(0.15)
    switch (flight.state) {
      case 'open':
        if (fails) return this.#over(flight, 503)
        flight.state = 'answered'
        await this.#answer(flight)
        // A proxy may deliver a request twice.
        if (isFaulty && this.#random.chance(0.05)) await this.#answer(flight)
        return
      case 'answered':
        return this.#over(flight, fails ? 503 : 200)
      case 'over':
        return this.#settle(flight)
    }
  }

  #over(flight: Flight, status: number): void {
    this.#statuses.set(flight, status)
    this.#engine.over(flight)
  }

  #answer({ message, outbound }: Flight): Promise<void> {
    return answer(this.#endpoint, message, outbound)
  }

  /** Statuses of finished requests. */
  readonly #statuses = new Map<Flight, number>()

  #outcome(status: number, messageId: string): AttemptOutcome {
    const at = this.#clock.now()
    const headers = { 'Upstash-Workflow-Sdk-Version': ['1'] }
    const response = { status, headers, body: bodyOf(status, messageId), truncated: false }
    return { kind: 'answered', startedAt: at, finishedAt: at, response }
  }

  async #settle(flight: Flight): Promise<void> {
    const status = this.#statuses.get(flight) ?? 200
    this.#statuses.delete(flight)
    const settled = await this.#engine.settle(flight, this.#outcome(status, flight.message.messageId))
    this.#plain.settled(flight.message, settled)
    const { retry, offers, dropGroups = [] } = settled
    if (retry && flight.message.kind !== 'http') this.#known.failedOnce(retry)
    if (!retry && status !== 200) this.#noteLateFailure(flight)
    this.#drop({ groupKeys: dropGroups, mayBeOfferedAgain: true })
    this.#engine.offer(offers)
    await this.#moves.noteEnds(dropGroups)
  }

  /** A delivery may fail for good after its run has succeeded: it has no effect, but appears in the log. */
  #noteLateFailure({ message, outbound: { url, headers } }: Flight): void {
    const runId = headers['Upstash-Workflow-Runid']?.[0] ?? ''
    if (url === PROGRAM_URL && this.#known.stateOf(runId) === 'RUN_SUCCESS') this.#known.countFailure(message)
  }

  #drop(which: Parameters<SimulatedDispatcher['drop']>[0]): void {
    this.#late.push(...this.#engine.drop(which))
  }

  /** A request from before a crash, or an aborted one, arrives now; its response is ignored. */
  async #arriveLate(): Promise<void> {
    const flight = this.#random.pick(this.#late)
    if (!flight) return
    this.#late = this.#late.filter((other) => other !== flight)
    if (flight.state === 'open') await this.#answer(flight)
  }

  #jump(): void {
    const byMs = (this.#random.below(5) - 2) * 90_000
    const before = this.#clock.now()
    this.#clock.jump(byMs)
    if (byMs >= 0) return
    for (const [messageId, until] of this.#known.asleep) if (until <= before) this.#wasDue.add(messageId)
    // After the clock was set back, messages that were due immediately are due later.
    this.#known.released.clear()
    this.#flow.clockWasSetBack()
  }

  async #retain(): Promise<void> {
    const now = this.#clock.now()
    const upTo = this.#random.chance(0.5) ? await this.#moves.someOldSeq() : undefined
    const old = upTo === undefined ? { endedBefore: now - RECENT_MS } : { upTo }
    await retain(this.#store, this.#accountId, old, now)
    await this.#moves.forgetSwept()
  }

  /** Restarts the server: memory is lost; requests in flight may still arrive. */
  async #crash(): Promise<void> {
    this.#late.push(...this.#engine.flights)
    this.#lists = new RecentLists()
    this.#endpoint = this.#newEndpoint(this.#endpoint.publisher)
    this.#engine = this.#newEngine()
    this.#flow.forgetPeriod()
    await this.#engine.start()
    await this.#workflowPause.restart()
    await this.#moves.bulk.restart()
  }
}
