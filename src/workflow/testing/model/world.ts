import { newId } from '../../../base/index.js'
import { ManualClock } from '../../../base/testing/manual-clock.js'
import type { AttemptOutcome, PendingMessage } from '../../../queue/index.js'
import { JumpingClock, ROOMY } from '../../../queue/testing/harness.js'
import {
  type DispatcherFactories,
  type Flight,
  REAL_FACTORIES,
  SimulatedDispatcher,
} from '../../../queue/testing/simulated-dispatcher.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import { RunIntake } from '../../runs/intake.js'
import { RecentLists } from '../../runs/recent-lists.js'
import { InFlightDeliveries, RunMessages } from '../../runs/run-messages.js'
import { RefusedReturns } from '../../runs/run-routes.js'
import { type Census, checkNothingLeft, remains, retain, retainLast, waitingMessages } from './census.js'
import { answer, type EndpointDeps } from './endpoint.js'
import { FlowWatch } from './flow-watch.js'
import { Knowledge } from './knowledge.js'
import { PlainTraffic } from './plain-traffic.js'
import { PROGRAM_URL, publisherOf, withoutPatience } from './program.js'
import { type Random, seeded } from './random.js'
import { RunMoves } from './run-moves.js'

const LIMITS = { timeoutMs: 900_000 }
const MOST_ROUNDS = 5_000
/** What has ended this recently is not old yet. */
const RECENT_MS = 600_000
/** Lists of more bytes are fetched by their programs, in half of the worlds. */
const INLINE_LIMIT_BYTES = 500

/** How something goes on: with mishaps on the way, or as smoothly as it can. */
type Weather = 'rough' | 'calm'

/**
 * A world of runs that is played with a seed: the real intake, message kinds, backlog, flow control and store; a simulated
 * engine around them, clock and endpoint. It throws as soon as something is not as promised, and `finish` lets everything
 * come to its end.
 */
export class World {
  readonly #store: Store
  readonly #random: Random
  readonly #parts: DispatcherFactories
  readonly #steady = new ManualClock()
  readonly #clock = new JumpingClock(this.#steady)
  readonly #accountId: string
  readonly #known = new Knowledge()
  readonly #flow: FlowWatch
  readonly #plain: PlainTraffic
  readonly #moves: RunMoves
  #weather: Weather = 'rough'
  /** What earlier worlds have left in the store. */
  #before: Census | undefined
  #lists = new RecentLists()
  #engine: SimulatedDispatcher
  #endpoint: EndpointDeps
  /** Requests of earlier lives, and aborted ones, that may reach their destinations late. */
  #late: Flight[] = []

  constructor(realStore: Store, seed: number, parts: DispatcherFactories = REAL_FACTORIES) {
    const [store, random] = [withoutPatience(realStore), seeded(seed)]
    const publisher = publisherOf(newId('acc_', this.#clock.now()))
    this.#store = store
    this.#parts = parts
    this.#random = random
    this.#accountId = publisher.caller.accountId
    this.#endpoint = this.#newEndpoint(publisher)
    this.#engine = this.#newEngine()
    const shared = { store, random, accountId: this.#accountId, now: () => this.#clock.now() }
    const offer = (rows: readonly PendingRow[]): void => this.#engine.offer(rows)
    this.#flow = new FlowWatch({ ...shared, engine: () => this.#engine })
    this.#plain = new PlainTraffic({ ...shared, offer, drop: (seqs) => this.#drop({ seqs }) })
    this.#moves = new RunMoves({
      ...{ ...shared, offer, known: this.#known, paused: this.#flow.paused, endpoint: () => this.#endpoint },
      drop: (which) => this.#drop(which),
      flowHold: (accountId, flowKey) => this.#engine.flow.hold(accountId, flowKey, this.#clock.now()),
    })
  }

  /** Plays some moves at random. */
  async play(moves: number): Promise<void> {
    this.#before ??= await remains(this.#store)
    for (let move = 0; move < moves; move++) await this.#move()
  }

  /**
   * Lets everything come to its end, without further mishaps, and checks all of it. Runs that have died are taken up in
   * bulk before, because there are never as many of them again.
   */
  async finish(): Promise<void> {
    this.#weather = 'calm'
    await this.#rest()
    for (let actions = 0; actions < 3; actions++) await this.#moves.bulk.start()
    await this.#rest()
    await this.#moves.checkReasons()
    await this.#moves.checkEnds()
    this.#flow.checkEmpty()
    await this.#plain.removeAll()
    await retainLast(this.#store, this.#accountId, this.#clock.now())
    await checkNothingLeft(this.#store, this.#before ?? new Map())
  }

  async #rest(): Promise<void> {
    await this.#moves.bulk.finish()
    await this.#plain.resumeAll()
    await this.#flow.resumeAll()
    for (let round = 0; !(await this.#isAtRest()); round++) {
      if (round > MOST_ROUNDS) throw new Error('the world does not come to rest')
      await this.#goOn()
    }
  }

  async #isAtRest(): Promise<boolean> {
    if (!this.#engine.isEmpty || this.#plain.nextFireAt < Number.POSITIVE_INFINITY) return false
    // What has just left memory may have made room for what is in the store: one look reads it, the next takes it in.
    for (let looks = 0; looks < 2; looks++) await this.#engine.pump()
    if (!this.#engine.isEmpty) return false
    const { messages, dueAt } = await waitingMessages(this.#store, this.#accountId)
    const isLost = dueAt <= this.#clock.now() && this.#engine.wakeAt > this.#clock.now()
    if (isLost) throw new Error(`${messages} messages wait in the store, and the engine does not know of them`)
    return messages === 0
  }

  #newEndpoint(publisher: EndpointDeps['publisher']): EndpointDeps {
    const [store, clock, lists, random] = [this.#store, this.#clock, this.#lists, this.#random]
    const queue = { offer: (rows: readonly PendingRow[]) => this.#engine.offer(rows), refuseForbidden: () => undefined }
    const intake = new RunIntake({ store, queue, clock, limits: LIMITS, lists })
    return { store, intake, publisher, random, now: () => clock.now(), offer: queue.offer, witness: this.#witness() }
  }

  #newEngine(): SimulatedDispatcher {
    const [store, clock, lists] = [this.#store, this.#clock, this.#lists]
    const { queueBodyLimitBytes: bodyLimitBytes, responseKeepBytes } = ROOMY
    const inlineLimitBytes = this.#random.chance(0.5) ? INLINE_LIMIT_BYTES : undefined
    const inFlight = new InFlightDeliveries(LIMITS.timeoutMs)
    const refusedReturns = new RefusedReturns()
    const limits = { inlineLimitBytes, bodyLimitBytes, responseKeepBytes }
    return new SimulatedDispatcher({
      ...{ store, clock, accountId: this.#accountId },
      kinds: [new RunMessages({ store, clock, lists, inFlight, refusedReturns, ...limits })],
      takesLoadIn: () => this.#weather === 'calm' || this.#random.chance(0.6),
      taken: (message) => this.#taken(message),
      parts: this.#parts,
    })
  }

  #witness(): EndpointDeps['witness'] {
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
    const dice = this.#random.below(130)
    if (dice < 13) return this.#moves.trigger()
    if (dice < 74) return this.#goOn()
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

  /** The next thing that happens to some message: it is sent, answered, or its outcome is settled. */
  async #goOn(): Promise<void> {
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
    if (runId !== undefined && this.#known.stateOf(runId) === 'RUN_CANCELED')
      throw new Error(`${runId} was cancelled, and something of it was delivered`)
    if (this.#known.givenUp.has(message.messageId))
      throw new Error(`${message.messageId} was given up, and was delivered`)
    this.#flow.sent(message)
    this.#plain.sent(message)
  }

  /** The turn of a message has come: nothing of a cancelled run is in memory any more. */
  #taken({ messageId, groupKey }: PendingMessage): void {
    if (groupKey !== undefined && this.#known.cancelled.has(groupKey))
      throw new Error(`${messageId} of a run that was cancelled has come back to be delivered`)
  }

  async #proceed(flight: Flight): Promise<void> {
    const isRough = this.#weather === 'rough'
    const fails = isRough && this.#random.chance(0.15)
    switch (flight.state) {
      case 'open':
        if (fails) return this.#over(flight, 503)
        flight.state = 'answered'
        await this.#answer(flight)
        // A proxy on the way may bring a request twice.
        if (isRough && this.#random.chance(0.05)) await this.#answer(flight)
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

  /** What the requests that are over were answered. */
  readonly #statuses = new Map<Flight, number>()

  #outcome(status: number): AttemptOutcome {
    const at = this.#clock.now()
    const headers = { 'Upstash-Workflow-Sdk-Version': ['1'] }
    const response = { status, headers, body: new Uint8Array(), truncated: false }
    return { kind: 'answered', startedAt: at, finishedAt: at, response }
  }

  async #settle(flight: Flight): Promise<void> {
    const status = this.#statuses.get(flight) ?? 200
    this.#statuses.delete(flight)
    const settled = await this.#engine.settle(flight, this.#outcome(status))
    this.#plain.settled(flight.message, settled)
    const { retry, offers, dropGroups = [] } = settled
    if (retry && flight.message.kind !== 'http') this.#known.failedOnce(retry)
    if (!retry && status !== 200) this.#noteLateFailure(flight)
    this.#drop({ groupKeys: dropGroups, mayBeOfferedAgain: true })
    this.#engine.offer(offers)
    await this.#moves.noteEnds(dropGroups)
  }

  /** A delivery to a program that fails for good after its run has ended well: nothing follows, and the log tells of it. */
  #noteLateFailure({ message, outbound: { url, headers } }: Flight): void {
    const runId = headers['Upstash-Workflow-Runid']?.[0] ?? ''
    if (url === PROGRAM_URL && this.#known.stateOf(runId) === 'RUN_SUCCESS') this.#known.countFailure(message)
  }

  #drop(which: Parameters<SimulatedDispatcher['drop']>[0]): void {
    this.#late.push(...this.#engine.drop(which))
  }

  /** What was sent by an earlier life of the server, or given up on the way, arrives now. Nobody waits for the answer. */
  async #arriveLate(): Promise<void> {
    const flight = this.#random.pick(this.#late)
    if (!flight) return
    this.#late = this.#late.filter((other) => other !== flight)
    if (flight.state === 'open') await this.#answer(flight)
  }

  #jump(): void {
    const byMs = (this.#random.below(5) - 2) * 90_000
    this.#clock.jump(byMs)
    if (byMs < 0) this.#flow.clockWasSetBack()
  }

  async #retain(): Promise<void> {
    const now = this.#clock.now()
    const upTo = this.#random.chance(0.5) ? await this.#moves.someOldSeq() : undefined
    const old = upTo === undefined ? { endedBefore: now - RECENT_MS } : { upTo }
    await retain(this.#store, this.#accountId, old, now)
    await this.#moves.forgetSwept()
  }

  /** What was in memory is gone; what was in flight may still arrive. */
  async #crash(): Promise<void> {
    this.#late.push(...this.#engine.flights)
    this.#lists = new RecentLists()
    this.#endpoint = this.#newEndpoint(this.#endpoint.publisher)
    this.#engine = this.#newEngine()
    this.#flow.forgetPeriod()
    await this.#engine.start()
    await this.#moves.bulk.restart()
  }
}
