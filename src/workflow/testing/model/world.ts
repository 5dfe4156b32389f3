import { newId } from '../../../base/index.js'
import { ManualClock } from '../../../base/testing/manual-clock.js'
import type { AttemptOutcome, Outbound, PendingMessage, Settled } from '../../../queue/index.js'
import { toPending } from '../../../queue/index.js'
import { operations, type Store } from '../../../store/index.js'
import type { PendingRow } from '../../../store/operations/messages.js'
import type { Revival, RunRow } from '../../../store/operations/runs.js'
import type { RunState } from '../../../store/schema/runs.js'
import { Flights } from '../../flights.js'
import { RunIntake } from '../../intake.js'
import { RunMessages } from '../../kind.js'
import { runLogs } from '../../log-runs.js'
import { RecentLists } from '../../recent-lists.js'
import { revivalOf } from '../../revival.js'
import { BulkActions } from './bulk-actions.js'
import { checkAttempts, checkRun, type KnownRun } from './checks.js'
import { answer, type EndpointDeps, triggerItem } from './endpoint.js'
import { randomProgram } from './program.js'
import { type Random, seeded } from './random.js'
import { publisherOf, withoutPatience } from './stage.js'

interface Flight {
  readonly message: PendingMessage
  readonly outbound: Outbound
  answered: boolean
}

const LIMITS = { timeoutMs: 900_000 }
const MOST_ROUNDS = 5_000

/**
 * A world of runs that is played with a seed: the real intake, message kind and store; a simulated engine, clock and
 * endpoint. It throws as soon as something is not as promised, and `finish` lets everything come to its end.
 */
export class World {
  readonly #store: Store
  readonly #random: Random
  readonly #clock = new ManualClock()
  readonly #kind: RunMessages
  readonly #endpoint: EndpointDeps
  readonly #runs = new Map<string, KnownRun>()
  readonly #bulk: BulkActions
  readonly #flights = new Flights(LIMITS.timeoutMs)
  readonly #lists = new RecentLists()
  #memory = new Map<number, PendingMessage>()
  #inFlight = new Map<number, Flight>()
  #dead = 0
  /** By `runs.seq`, then by message. */
  readonly #failures = new Map<number, Map<string, number>>()
  /** Failure callbacks that were given up and not asked for again. */
  readonly #givenUp = new Set<string>()

  constructor(realStore: Store, seed: number) {
    const [clock, random] = [this.#clock, seeded(seed)]
    const store = withoutPatience(realStore)
    this.#store = store
    this.#random = random
    const offer = (rows: readonly PendingRow[]): void => this.#offer(rows)
    const [lists, limits] = [this.#lists, LIMITS]
    this.#kind = new RunMessages({ store, clock, lists, flights: this.#flights })
    const intake = new RunIntake({ store, queue: { offer, refuseForbidden: () => undefined }, clock, limits, lists })
    const publisher = publisherOf(newId('acc_', clock.now()))
    this.#endpoint = { store, intake, lists, publisher, random, offer, ...this.#witness() }
    this.#bulk = new BulkActions({
      ...{ store, random, offer },
      accountId: publisher.caller.accountId,
      now: () => clock.now(),
      rows: () => this.#rows(),
      canceled: (runs) => this.#canceled(runs),
      revived: (dead, revival) => this.#takenUp(dead, revival),
    })
  }

  /** Plays some moves at random. */
  async play(moves: number): Promise<void> {
    for (let move = 0; move < moves; move++) await this.#move()
  }

  /**
   * Lets everything come to its end, without further mishaps, and checks all of it. Runs that have died are taken up in
   * bulk before, because there are never as many of them again.
   */
  async finish(): Promise<void> {
    await this.#rest()
    for (let actions = 0; actions < 3; actions++) await this.#bulk.start()
    await this.#rest()
    await this.#checkReasons()
    for (const [runId, known] of await this.#allRuns()) await this.#check(runId, known)
  }

  async #rest(): Promise<void> {
    await this.#bulk.finish()
    for (let round = 0; this.#memory.size + this.#inFlight.size > 0; round++) {
      if (round > MOST_ROUNDS) throw new Error('the world does not come to rest')
      await this.#goOn()
    }
  }

  #witness() {
    return {
      now: () => this.#clock.now(),
      accepted: (runId: string, messageId: string) => void this.#known(runId).accepted.add(messageId),
      waiting: (runId: string, messageId: string) => void this.#known(runId).waits.add(messageId),
      delivered: (runId: string, messageId: string, list: readonly string[]) =>
        void this.#known(runId).deliveries.push({ messageId, list }),
      finished: (runId: string, results: string) => {
        this.#moveTo(runId, 'RUN_SUCCESS')
        this.#known(runId).results = results
      },
      canceledItself: (runId: string) => this.#cancelItself(runId),
      failed: (runId: string, payload: string) => {
        const { state } = this.#known(runId)
        if (state !== 'RUN_FAILED') throw new Error(`the failure function of ${runId} was called, which is ${state}`)
        this.#known(runId).reported = payload
      },
    }
  }

  #known(runId: string): KnownRun {
    const known = this.#runs.get(runId) ?? {
      state: 'RUN_STARTED' as const,
      accepted: new Set<string>(),
      waits: new Set<string>(),
      deliveries: [],
      results: undefined,
      reported: undefined,
    }
    this.#runs.set(runId, known)
    return known
  }

  #moveTo(runId: string, state: RunState): void {
    const known = this.#known(runId)
    if (known.state !== 'RUN_STARTED') throw new Error(`${runId} went from ${known.state} to ${state}`)
    known.state = state
  }

  #offer(rows: readonly PendingRow[]): void {
    for (const row of rows) if (row.kind === 'workflow') this.#memory.set(row.seq, toPending(row))
  }

  async #move(): Promise<void> {
    const dice = this.#random.below(100)
    if (dice < 12) return this.#trigger()
    if (dice < 74) return this.#goOn({ mishaps: true })
    if (dice < 79) return this.#cancel()
    if (dice < 84) return this.#notify()
    if (dice < 85) return this.#revive()
    if (dice < 87) return this.#changeCallback()
    if (dice < 89) return this.#crash()
    if (dice < 92) return this.#bulk.start()
    if (dice < 96) return this.#bulk.work()
    if (dice < 99) return this.#controlBulk()
    if (this.#inFlight.size === 0) return this.#checkReasons()
    return undefined
  }

  #controlBulk(): Promise<void> {
    return this.#random.chance(0.3) ? this.#bulk.abort() : this.#bulk.pause()
  }

  /** Now and then under the id of another run, which starts nothing. */
  async #trigger(): Promise<void> {
    const taken = this.#random.chance(0.1) ? this.#random.pick([...this.#runs.keys()]) : undefined
    const runId = taken ?? newId('wfr_', this.#clock.now())
    const item = triggerItem(runId, randomProgram(this.#random), this.#random.below(3))
    const [reply] = await this.#endpoint.intake.submit(this.#endpoint.publisher, [item])
    if (!reply || !('messageId' in reply)) throw new Error(`${runId} was triggered without an answer`)
    if (taken !== undefined && reply.deduplicated !== true) throw new Error(`${runId} was started twice`)
    this.#known(runId).accepted.add(reply.messageId)
  }

  /** The next thing that happens to some message: it is sent, answered, or its outcome is settled. */
  async #goOn(how: { mishaps?: boolean } = {}): Promise<void> {
    const flight = this.#random.pick([...this.#inFlight.values()])
    if (flight && (this.#memory.size === 0 || this.#random.chance(0.6))) return this.#answerOrSettle(flight, how)
    const due = [...this.#memory.values()].filter(({ nextAt }) => nextAt <= this.#clock.now())
    const message = this.#random.pick(due)
    if (message) return this.#send(message)
    if (flight) return this.#answerOrSettle(flight, how)
    const next = Math.min(...[...this.#memory.values()].map(({ nextAt }) => nextAt))
    if (Number.isFinite(next)) this.#clock.advance(Math.max(0, next - this.#clock.now()))
  }

  async #send(message: PendingMessage): Promise<void> {
    this.#memory.delete(message.seq)
    const outbound = await this.#kind.prepare(message)
    if (!outbound) return
    const runId = outbound.headers['Upstash-Workflow-Runid']?.[0]
    if (runId !== undefined && this.#runs.get(runId)?.state === 'RUN_CANCELED') {
      throw new Error(`${runId} was canceled, and something of it was delivered`)
    }
    if (this.#givenUp.has(message.messageId)) throw new Error(`${message.messageId} was given up, and was delivered`)
    this.#inFlight.set(message.seq, { message, outbound, answered: false })
  }

  async #answerOrSettle(flight: Flight, { mishaps = false }: { mishaps?: boolean }): Promise<void> {
    const fails = mishaps && this.#random.chance(0.15)
    if (!flight.answered && !fails) {
      flight.answered = true
      await answer(this.#endpoint, flight.message, flight.outbound)
      // A proxy on the way may bring a request twice.
      if (mishaps && this.#random.chance(0.05)) await answer(this.#endpoint, flight.message, flight.outbound)
      return
    }
    this.#inFlight.delete(flight.message.seq)
    const settled = await this.#kind.settle(flight.message, this.#outcome(fails ? 503 : 200))
    await this.#follow(settled)
  }

  #outcome(status: number): AttemptOutcome {
    const at = this.#clock.now()
    const headers = { 'Upstash-Workflow-Sdk-Version': ['1'] }
    const response = { status, headers, body: new Uint8Array(), truncated: false }
    return { kind: 'answered', startedAt: at, finishedAt: at, response }
  }

  async #follow({ again, offers, dropGroups = [] }: Settled): Promise<void> {
    if (again) this.#failedOnce(again)
    for (const group of dropGroups) this.#drop(group)
    this.#offer(offers)
    for (const run of await this.#rows(dropGroups)) {
      this.#moveTo(run.run_id, run.state)
      this.#dead++
    }
  }

  #failedOnce(message: PendingMessage): void {
    this.#memory.set(message.seq, message)
    const ofRun = this.#failures.get(message.groupKey ?? 0) ?? new Map<string, number>()
    ofRun.set(message.messageId, (ofRun.get(message.messageId) ?? 0) + 1)
    this.#failures.set(message.groupKey ?? 0, ofRun)
  }

  #drop(group: number): void {
    for (const [seq, { groupKey }] of this.#memory) if (groupKey === group) this.#memory.delete(seq)
    for (const [seq, { message }] of this.#inFlight) if (message.groupKey === group) this.#inFlight.delete(seq)
  }

  /** Some runs at once, ended ones among them: exactly those that had not ended are canceled. */
  async #cancel(): Promise<void> {
    const all = await this.#rows()
    const chosen = all.filter(() => this.#random.chance(0.1))
    const expected = chosen.filter(({ state }) => state === 'RUN_STARTED').map(({ seq }) => seq)
    const args = { seqs: chosen.map(({ seq }) => seq), at: this.#clock.now() }
    const { canceled, offers } = await this.#store.run(operations.runs.cancelRuns, args)
    const same = canceled.length === expected.length && expected.every((seq) => canceled.includes(seq))
    if (!same) throw new Error(`canceled ${[...canceled]} instead of ${expected}`)
    this.#canceled(chosen.filter(({ seq }) => expected.includes(seq)))
    this.#offer(offers)
  }

  #canceled(runs: readonly RunRow[]): void {
    for (const { run_id, seq } of runs) {
      this.#moveTo(run_id, 'RUN_CANCELED')
      this.#drop(seq)
    }
  }

  /** As `context.cancel()` does. */
  async #cancelItself(runId: string): Promise<void> {
    const [run] = (await this.#rows()).filter(({ run_id }) => run_id === runId)
    if (!run) throw new Error(`${runId} is gone`)
    const args = { seqs: [run.seq], at: this.#clock.now() }
    const { canceled, offers } = await this.#store.run(operations.runs.cancelRuns, args)
    if (canceled.length > 0) this.#canceled([run])
    this.#offer(offers)
  }

  /** Gives up the call of a failure function that is going on, or asks for one again that has failed for good. */
  async #changeCallback(): Promise<void> {
    const dead = this.#random.pick((await this.#rows()).filter(({ dlq_id }) => dlq_id !== null))
    if (!dead) return
    const { accountId } = this.#endpoint.publisher.caller
    const args = { accountId, dlqId: dead.dlq_id ?? '', at: this.#clock.now() }
    const { callback } = JSON.parse(dead.failure ?? '{}') as { callback?: { messageId: string } }
    const isCalled = dead.failure_state === 'CALLBACK_INPROGRESS'
    const operation = isCalled ? operations.runs.cancelCallback : operations.runs.retryCallback
    const result = await this.#store.run(operation, args)
    const isPossible = isCalled || dead.failure_state === 'CALLBACK_FAIL'
    if ((result.kind === 'changed') !== isPossible) throw new Error(`the callback of ${dead.run_id} is ${result.kind}`)
    if (result.kind !== 'changed') return
    if (isCalled) {
      this.#drop(dead.seq)
      this.#givenUp.add(callback?.messageId ?? '')
    }
    this.#offer(result.offers)
  }

  #takenUp(dead: Pick<RunRow, 'run_id'>, revival: Revival): void {
    const { run_id: runId } = revival.run
    if (revival.kind === 'restart') this.#known(runId).accepted.add(revival.messageId)
    else this.#livesOn(dead.run_id, runId)
  }

  /** What was acknowledged for a dead run holds for the one that takes its place. */
  #livesOn(deadId: string, runId: string): void {
    const [before, known] = [this.#known(deadId), this.#known(runId)]
    for (const messageId of before.accepted) known.accepted.add(messageId)
    for (const messageId of before.waits) known.waits.add(messageId)
  }

  async #notify(): Promise<void> {
    const { accountId } = this.#endpoint.publisher.caller
    const [at, data] = [this.#clock.now(), new TextEncoder().encode('event')]
    const [named] = this.#random.chance(0.5) ? [this.#random.pick([...this.#runs.keys()])] : []
    const args = { accountId, eventId: `event-${this.#random.below(3)}`, data, at, ...(named && { runId: named }) }
    const { drop, offers } = await this.#store.run(operations.runs.notify, args)
    for (const seq of drop) this.#memory.delete(seq)
    this.#offer(offers)
  }

  /** Takes the oldest dead letter up again, in one of both ways. */
  async #revive(): Promise<void> {
    if (this.#dead === 0) return
    const { accountId } = this.#endpoint.publisher.caller
    const selector = { accountId, filter: {}, order: 'earliestFirst' as const, limit: 1 }
    const [dead] = (await this.#store.run(operations.runs.revivable, selector)).runs
    if (!dead) return
    const at = this.#clock.now()
    const overrides = { revision: { config: {}, headers: {} }, dueAt: at }
    const revival = revivalOf(this.#random.chance(0.7) ? 'resume' : 'restart', dead, overrides, at)
    const result = await this.#store.run(operations.runs.revive, { accountId, revivals: [revival], dueAt: at, at })
    this.#takenUp(dead, revival)
    this.#offer(result.offers)
  }

  /** What was in memory is gone; what was in flight may have been answered, but nobody knows. */
  async #crash(): Promise<void> {
    this.#memory = new Map()
    this.#inFlight = new Map()
    for (const { seq } of await this.#rows()) this.#lists.forget(seq)
    const { accountId } = this.#endpoint.publisher.caller
    const args = { after: { nextAt: Number.MIN_SAFE_INTEGER, seq: 0 }, until: Number.MAX_SAFE_INTEGER }
    const more = { limit: 100_000, largestBody: 1_000, exceptHosts: [] }
    const rows = await this.#store.run(operations.messages.pending, { ...args, ...more })
    this.#offer(rows.filter((row) => row.account_id === accountId))
  }

  async #page(filter: object = {}) {
    const { accountId } = this.#endpoint.publisher.caller
    return this.#store.run(operations.runs.logPage, {
      accountId,
      filter,
      before: Number.MAX_SAFE_INTEGER,
      limit: 10_000,
    })
  }

  async #rows(seqs?: readonly number[]): Promise<readonly RunRow[]> {
    if (seqs?.length === 0) return []
    const { runs } = await this.#page()
    return seqs ? runs.filter(({ seq }) => seqs.includes(seq)) : runs
  }

  async #allRuns(): Promise<[string, KnownRun][]> {
    return (await this.#rows()).map(({ run_id }) => [run_id, this.#known(run_id)])
  }

  /** With nothing in flight, every run that has not ended waits for something that will come. */
  async #checkReasons(): Promise<void> {
    const page = await this.#page({ states: ['RUN_STARTED'] })
    const view = { trimTo: 0, now: this.#clock.now(), inFlightSince: () => undefined, holdOf: () => undefined }
    for (const run of runLogs(page, view)) {
      const reasons = run.because as readonly { readonly kind: string }[]
      if (reasons.length === 0 || reasons.some(({ kind }) => kind === 'no-step' || kind === 'discarded-branch')) {
        throw new Error(`${run.workflowRunId} goes on, and nothing will ever happen to it`)
      }
    }
  }

  async #check(runId: string, known: KnownRun): Promise<void> {
    const page = await this.#page({ runIds: [runId] })
    const [run] = page.runs
    if (!run || run.state === 'RUN_STARTED') throw new Error(`${runId} has never ended`)
    if (run.state !== known.state) throw new Error(`${runId} is ${run.state}; it became ${known.state}`)
    checkRun(run, known, page.elements)
    checkAttempts(run, this.#failures.get(run.seq) ?? new Map(), page.elements, page.pastAttempts)
  }
}
