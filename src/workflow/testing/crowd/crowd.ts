import { newId } from '../../../base/index.js'
import { ManualClock } from '../../../base/testing/manual-clock.js'
import { type Random, seeded } from '../../../base/testing/random.js'
import type { AttemptOutcome, DropSelector, Publisher } from '../../../queue/index.js'
import { HIGH_LIMITS } from '../../../queue/testing/harness.js'
import {
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
import { runsOf, waitingMessages } from '../model/census.js'
import { answer, type EndpointDeps } from '../model/endpoint.js'
import { Knowledge } from '../model/knowledge.js'
import { publisherOf, withoutCommitDelay } from '../model/program.js'
import { CrowdBulk } from './bulk.js'
import { CrowdMessages } from './messages.js'
import { CrowdRuns } from './runs.js'

const LIMITS = { timeoutMs: 900_000 }
const MAX_ROUNDS = 2_000

/**
 * Many concurrent callers and deliveries on the same few runs, messages, queues and actions: their transactions interleave
 * at random. The crowd records every result. After each round the store must have exactly these results: nothing lost,
 * nothing done twice, every counter correct.
 */
export class Crowd {
  readonly #random: Random
  readonly #clock = new ManualClock()
  readonly #store: Store
  readonly #accountId: string
  readonly #known = new Knowledge()
  #lists = new RecentLists()
  readonly #inFlight = new InFlightDeliveries(LIMITS.timeoutMs)
  #engine: SimulatedDispatcher
  #endpoint: EndpointDeps
  readonly #messages: CrowdMessages
  readonly #runs: CrowdRuns
  readonly #bulk: CrowdBulk
  #isFaulty = true
  /** The server was killed: its transactions may still commit, but their results are lost. */
  #isDead = false

  constructor(realStore: Store, seed: number) {
    const publisher = publisherOf(newId('acc_', this.#clock.now()))
    this.#store = withoutCommitDelay(realStore)
    this.#random = seeded(seed)
    this.#accountId = publisher.caller.accountId
    this.#engine = this.#newEngine()
    this.#endpoint = this.#newEndpoint(publisher)
    const shared = {
      store: this.#store,
      random: this.#random,
      accountId: this.#accountId,
      known: this.#known,
      endpoint: () => this.#endpoint,
      now: () => this.#clock.now(),
      offer: (rows: readonly PendingRow[]): void => this.#offer(rows),
      drop: (which: Parameters<SimulatedDispatcher['drop']>[0]): void => this.#drop(which),
      forget: (runSeq: number) => this.#lists.forget(runSeq),
    }
    this.#messages = new CrowdMessages(shared)
    this.#runs = new CrowdRuns(shared)
    this.#bulk = new CrowdBulk({
      ...shared,
      cancelled: (seqs) => this.#runs.cancelled(seqs),
      revived: (dead, revival) => this.#runs.revived(dead, revival),
      deletedDead: (seqs) => this.#runs.deletedDead(seqs),
      cancelledMessages: (seqs) => this.#messages.cancelled(seqs),
      leftDeadLetters: (seqs) => this.#messages.leftDeadLetters(seqs),
    })
  }

  #offer(rows: readonly PendingRow[]): void {
    if (!this.#isDead) this.#engine.offer(rows)
  }

  #drop(which: Parameters<SimulatedDispatcher['drop']>[0]): void {
    if (!this.#isDead) this.#engine.drop(which)
  }

  /** Performs rounds of concurrent random actions. */
  async play(rounds: number, atOnce: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      await this.#engine.pump()
      const isLast = this.#random.chance(0.1)
      await Promise.all([...Array.from({ length: atOnce }, () => this.#act()), ...(isLast ? [this.#kill()] : [])])
      if (isLast) await this.#restart()
      await this.#check()
      if (this.#random.chance(0.3)) this.#clock.advance(20_000)
    }
  }

  /** Lets everything end, and checks the results. */
  async finish(): Promise<void> {
    this.#isFaulty = false
    await this.#bulk.finish()
    await this.#messages.resumeAll()
    for (let round = 0; !(await this.#isDrained()); round++) {
      if (round > MAX_ROUNDS) throw new Error('the crowd does not end')
      await this.#messages.fire()
      if (await this.#deliverAll()) continue
      const wakeAt = Math.min(this.#engine.wakeAt, this.#messages.nextFireAt)
      if (Number.isFinite(wakeAt)) this.#clock.advance(Math.max(0, wakeAt - this.#clock.now()))
    }
    await this.#check()
    await this.#runs.checkEnds()
  }

  /** Kills the server at a random moment. */
  async #kill(): Promise<void> {
    for (let turns = this.#random.below(4); turns > 0; turns--) await runsOf(this.#store, this.#accountId)
    this.#isDead = true
  }

  /** Restarts the server: memory is lost. */
  async #restart(): Promise<void> {
    this.#lists = new RecentLists()
    this.#endpoint = this.#newEndpoint(this.#endpoint.publisher)
    this.#engine = this.#newEngine()
    await this.#engine.start()
    await this.#bulk.restart()
    this.#isDead = false
  }

  #newEngine(): SimulatedDispatcher {
    const [store, clock, lists] = [this.#store, this.#clock, this.#lists]
    const { queueBodyLimitBytes: bodyLimitBytes, responseKeepBytes } = HIGH_LIMITS
    const inFlight = this.#inFlight
    const refusedReturns = new RefusedReturns()
    const limits = { bodyLimitBytes, responseKeepBytes }
    const kinds = [
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
    ]
    const taken = (): void => undefined
    const ofAccount = { store, clock, accountId: this.#accountId, kinds }
    return new SimulatedDispatcher({
      ...ofAccount,
      takesLoadNow: () => this.#random.chance(0.6),
      taken,
      factories: REAL_FACTORIES,
    })
  }

  #newEndpoint(publisher: Publisher): EndpointDeps {
    const [store, clock, lists, random] = [this.#store, this.#clock, this.#lists, this.#random]
    const drop = (which: DropSelector): void => this.#drop(which)
    const drops = { drop, dropEverywhere: async (which: DropSelector): Promise<void> => drop(which) }
    const offer = (rows: readonly PendingRow[]): void => this.#offer(rows)
    const queue = { ...drops, offer, refuseForbidden: () => undefined, signAhead: unsigned }
    const intake = new RunIntake({
      store,
      queue,
      clock,
      limits: LIMITS,
      lists,
      inFlight: this.#inFlight,
      meter: new WorkflowMeter(),
    })
    const observer = this.#observer()
    return { store, intake, publisher, random, now: () => clock.now(), offer: queue.offer, observer }
  }

  #observer(): EndpointDeps['observer'] {
    const known = this.#known
    return {
      accepted: (runId, messageId) => void known.run(runId).accepted.add(messageId),
      asleep: () => undefined,
      waiting: (runId, wait) => known.waiting(runId, wait),
      delivered: (runId, messageId, list) => known.delivered(runId, { messageId, list }),
      finished: (runId, runSeq, results) => {
        this.#lists.forget(runSeq)
        known.moveTo(runId, 'RUN_SUCCESS')
        known.run(runId).results = results
      },
      cancelledItself: (runId) => this.#runs.cancelOne(runId),
      failed: (runId, payload) => {
        known.run(runId).reported = payload
      },
      unknown: async (runId) => this.#runs.missing(runId),
    }
  }

  #act(): Promise<void> {
    const dice = this.#random.below(100)
    if (dice < 45) return this.#deliver().then(() => undefined)
    if (dice < 65) return this.#runs.act()
    if (dice < 80) return this.#bulk.act()
    return this.#messages.act()
  }

  async #deliverAll(): Promise<boolean> {
    await this.#engine.pump()
    const sent = await Promise.all(Array.from({ length: 6 }, () => this.#deliver()))
    return sent.some(Boolean)
  }

  /** Makes one delivery, from the request to its settlement, unless it is dropped. */
  async #deliver(): Promise<boolean> {
    if (this.#isDead) return false
    const flight = await this.#engine.send()
    if (!flight) return false
    // A concurrent action may have cancelled the message.
    if (isDropped(flight)) return true
    this.#messages.sent(flight.message)
    this.#runs.sent(flight.message)
    const fails = this.#isFaulty && this.#random.chance(0.2)
    if (!fails) await this.#answer(flight)
    if (isDropped(flight) || this.#isDead) return true
    this.#engine.over(flight)
    await this.#settle(flight, fails ? 503 : 200)
    return true
  }

  /** A proxy may deliver a request twice at the same time. */
  async #answer({ message, outbound }: Flight): Promise<void> {
    const times = this.#isFaulty && this.#random.chance(0.1) ? 2 : 1
    await Promise.all(Array.from({ length: times }, () => answer(this.#endpoint, message, outbound)))
  }

  async #settle(flight: Flight, status: number): Promise<void> {
    const { offers, dropGroups = [] } = await this.#engine.settle(flight, this.#outcome(status))
    const runId = flight.outbound.headers['Upstash-Workflow-Runid']?.[0] ?? ''
    if (dropGroups.length > 0) this.#known.moveTo(runId, 'RUN_FAILED')
    this.#drop({ groupKeys: dropGroups, mayBeOfferedAgain: true })
    this.#offer(offers)
  }

  #outcome(status: number): AttemptOutcome {
    const at = this.#clock.now()
    const headers = { 'Upstash-Workflow-Sdk-Version': ['1'] }
    return {
      kind: 'answered',
      startedAt: at,
      finishedAt: at,
      response: { status, headers, body: new Uint8Array(), truncated: false },
    }
  }

  async #check(): Promise<void> {
    await this.#messages.check()
    await this.#runs.check()
    await this.#bulk.check()
  }

  async #isDrained(): Promise<boolean> {
    for (let calls = 0; calls < 2; calls++) await this.#engine.pump()
    if (!this.#engine.isEmpty || this.#messages.nextFireAt < Number.POSITIVE_INFINITY) return false
    const { messages, dueAt } = await waitingMessages(this.#store, this.#accountId)
    const isLost = dueAt <= this.#clock.now() && this.#engine.wakeAt > this.#clock.now()
    if (isLost) throw new Error(`${messages} messages wait in the store, and the dispatcher does not know them`)
    return messages === 0
  }
}

function isDropped({ entry }: Flight): boolean {
  return entry.state === 'dropped'
}
