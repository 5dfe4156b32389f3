import { newId } from '../../../base/index.js'
import type { DropSelector, Queue } from '../../../queue/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import { revivalOf } from '../../dead-letters/revival.js'
import type { Because } from '../../logs/because.js'
import { runLogs } from '../../logs/log-runs.js'
import * as runsCallbacks from '../../transactions/runs-callbacks.js'
import * as runsCancel from '../../transactions/runs-cancel.js'
import * as runsLogs from '../../transactions/runs-logs.js'
import * as runsNotify from '../../transactions/runs-notify.js'
import * as runsRevive from '../../transactions/runs-revive.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import { BulkActions } from './bulk-actions.js'
import { runsOf } from './census.js'
import type { EndpointDeps } from './endpoint.js'
import { someFlow } from './flow-watch.js'
import { checkAttempts, checkRun, type Knowledge } from './knowledge.js'
import { randomProgram, triggerItem } from './program.js'
import type { Random } from './random.js'

/** What moves with runs see and change of a world. */
export interface RunMovesDeps {
  readonly store: Store
  readonly random: Random
  readonly accountId: string
  readonly now: () => number
  readonly known: Knowledge
  /** The keys of flow control that are held. */
  readonly paused: ReadonlySet<string>
  readonly flowHold: Queue['flowHold']
  readonly endpoint: () => EndpointDeps
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly drop: (which: DropSelector) => void
}

/** What callers do to the runs of a world, and what must be true of them. */
export class RunMoves {
  readonly bulk: BulkActions
  readonly #deps: RunMovesDeps

  constructor(deps: RunMovesDeps) {
    this.#deps = deps
    const { store, random, accountId, now, offer, known } = deps
    this.bulk = new BulkActions({
      ...{ store, random, offer, accountId, now },
      rows: () => this.#rows(),
      cancelled: (runs) => this.#cancelled(runs),
      revived: (dead, revival) => known.takenUp(dead, revival),
    })
  }

  /** Now and then under the id of another run, which starts nothing. */
  async trigger(): Promise<void> {
    const { random, known, now } = this.#deps
    const { intake, publisher } = this.#deps.endpoint()
    const taken = random.chance(0.1) ? random.pick(known.runIds) : undefined
    const runId = taken ?? newId('wfr_', now())
    const delay: Record<string, string> = random.chance(0.1) ? { 'upstash-delay': '300s' } : {}
    const settings = { 'upstash-retries': String(random.below(3)), ...delay, ...someFlow(random) }
    const [reply] = await intake.submit(publisher, [triggerItem(runId, randomProgram(random), settings)])
    if (!reply || !('messageId' in reply)) throw new Error(`${runId} was triggered without an answer`)
    if (taken !== undefined && reply.deduplicated !== true) throw new Error(`${runId} was started twice`)
    known.run(runId).accepted.add(reply.messageId)
    if (taken === undefined && delay['upstash-delay']) known.asleep.set(reply.messageId, now() + 300_000)
  }

  /** One of what callers do. @param dice from 0 to 16. */
  some(dice: number): Promise<void> {
    if (dice < 5) return this.#cancel()
    if (dice < 11) return this.#notify()
    if (dice < 14) return this.#revive()
    return this.#changeCallback()
  }

  /** Something about actions in bulk. @param dice from 0 to 13. */
  workInBulk(dice: number): Promise<void> {
    if (dice < 4) return this.bulk.start()
    if (dice < 9) return this.bulk.work()
    return this.#deps.random.chance(0.3) ? this.bulk.abort() : this.bulk.pause()
  }

  /** Some runs at once, ended ones among them: exactly those that had not ended are cancelled. */
  async #cancel(): Promise<void> {
    const { random, store, now, offer } = this.#deps
    const chosen = (await this.#rows()).filter(() => random.chance(0.1))
    const expected = chosen.filter(({ state }) => state === 'RUN_STARTED').map(({ seq }) => seq)
    const args = { seqs: chosen.map(({ seq }) => seq), at: now() }
    const { cancelled, offers } = await store.run(runsCancel.cancelRuns, args)
    const same = cancelled.length === expected.length && expected.every((seq) => cancelled.includes(seq))
    if (!same) throw new Error(`cancelled ${[...cancelled]} instead of ${expected}`)
    this.#cancelled(chosen.filter(({ seq }) => expected.includes(seq)))
    offer(offers)
  }

  #cancelled(runs: readonly RunRow[]): void {
    const { known } = this.#deps
    for (const { run_id, seq } of runs) {
      known.moveTo(run_id, 'RUN_CANCELED')
      known.cancelled.add(seq)
    }
    this.#deps.drop({ groupKeys: runs.map(({ seq }) => seq) })
  }

  /** As `context.cancel()` does. */
  async cancelItself(runId: string): Promise<void> {
    const { store, now, offer } = this.#deps
    const [run] = (await this.#rows()).filter(({ run_id }) => run_id === runId)
    if (!run) return this.checkGone(runId)
    const { cancelled, offers } = await store.run(runsCancel.cancelRuns, { seqs: [run.seq], at: now() })
    if (cancelled.length > 0) this.#cancelled([run])
    offer(offers)
  }

  /** Gives up the call of a failure function that is going on, or asks for one again that has failed for good. */
  async #changeCallback(): Promise<void> {
    const { random, store, accountId, now, known, offer } = this.#deps
    const dead = random.pick((await this.#rows()).filter(({ dlq_id }) => dlq_id !== null))
    if (!dead) return
    const args = { accountId, dlqId: dead.dlq_id ?? '', at: now() }
    const { callback } = JSON.parse(dead.failure ?? '{}') as { callback?: { messageId: string } }
    const isCalled = dead.failure_state === 'CALLBACK_INPROGRESS'
    const operation = isCalled ? runsCallbacks.cancelCallback : runsCallbacks.retryCallback
    const result = await store.run(operation, args)
    const isPossible = isCalled || dead.failure_state === 'CALLBACK_FAIL'
    if ((result.kind === 'changed') !== isPossible) throw new Error(`the callback of ${dead.run_id} is ${result.kind}`)
    if (result.kind !== 'changed') return
    if (isCalled) {
      this.#deps.drop({ groupKeys: [dead.seq] })
      known.givenUp.add(callback?.messageId ?? '')
    }
    offer(result.offers)
  }

  async #notify(): Promise<void> {
    const { random, store, accountId, now, known, offer, drop } = this.#deps
    const data = new TextEncoder().encode('event')
    const [named] = random.chance(0.5) ? [random.pick(known.runIds)] : []
    const args = { accountId, eventId: `event-${random.below(3)}`, data, at: now(), ...(named && { runId: named }) }
    const notified = await store.run(runsNotify.notify, args)
    for (const { wait } of notified.released) known.released.add(wait.message_id)
    drop({ seqs: notified.drop, mayBeOfferedAgain: true })
    offer(notified.offers)
  }

  /** Takes the oldest dead letter up again, in one of both ways. */
  async #revive(): Promise<void> {
    const { random, store, accountId, now, known, offer } = this.#deps
    const selector = { accountId, filter: {}, order: 'earliestFirst' as const, limit: 1 }
    const [dead] = (await store.run(runsRevive.revivable, selector)).runs
    if (!dead) return
    const at = now()
    const overrides = { revision: { config: {}, headers: {} }, dueAt: at }
    const revival = revivalOf(random.chance(0.7) ? 'resume' : 'restart', dead, overrides, at)
    const result = await store.run(runsRevive.revive, { accountId, revivals: [revival], dueAt: at, at })
    known.takenUp(dead, revival)
    offer(result.offers)
  }

  /** Runs whose messages an outcome has ended: they have ended with it. */
  async noteEnds(seqs: readonly number[]): Promise<void> {
    if (seqs.length === 0) return
    const rows = (await this.#rows()).filter(({ seq }) => seqs.includes(seq))
    for (const { run_id, state } of rows) this.#deps.known.moveTo(run_id, state)
  }

  /** Throws unless a run that nobody knows had ended before. */
  async checkGone(runId: string): Promise<void> {
    const rows = await this.#rows()
    const state = this.#deps.known.stateOf(runId)
    if (state === 'RUN_STARTED' || rows.some(({ run_id }) => run_id === runId))
      throw new Error(`${runId} is ${state ?? 'there'}, and the server does not know it`)
  }

  /** Of all runs that there are, one of the older ones. */
  async someOldSeq(): Promise<number> {
    const oldest = (await this.#rows()).map(({ seq }) => seq).toSorted((a, b) => a - b)
    return this.#deps.random.pick(oldest.slice(0, oldest.length / 3)) ?? 0
  }

  /** Runs that retention has deleted had ended; nothing is expected of them any more. */
  async forgetSwept(): Promise<void> {
    const { known } = this.#deps
    const left = new Set((await this.#rows()).map(({ run_id }) => run_id))
    for (const runId of known.runIds.filter((id) => !left.has(id))) {
      if (known.stateOf(runId) === 'RUN_STARTED') throw new Error(`${runId} goes on, and was deleted`)
      known.forget(runId)
    }
  }

  async #page(filter: object = {}) {
    const { store, accountId } = this.#deps
    const range = { before: Number.MAX_SAFE_INTEGER, limit: 10_000 }
    return store.run(runsLogs.logPage, { accountId, filter, ...range })
  }

  #rows(): Promise<readonly RunRow[]> {
    return runsOf(this.#deps.store, this.#deps.accountId)
  }

  /** With nothing in flight, every run that has not ended waits for something that will come, and says what that is. */
  async checkReasons(): Promise<void> {
    const { known, now, paused, flowHold, accountId } = this.#deps
    const holdOf = (flowKey: string) => flowHold(accountId, flowKey)
    const page = await this.#page({ states: ['RUN_STARTED'] })
    for (const run of runLogs(page, { trimTo: 0, now: now(), inFlightSince: () => undefined, holdOf })) {
      const reasons = run.because as readonly Because[]
      const runId = String(run.workflowRunId)
      if (reasons.length === 0) throw new Error(`${runId} goes on, and nothing will ever happen to it`)
      for (const reason of reasons) checkReason(runId, reason, known, paused)
    }
  }

  /** Every run has ended as it should have. */
  async checkEnds(): Promise<void> {
    const { known } = this.#deps
    const rows = await this.#rows()
    const { runs, elements, pastAttempts } = await this.#page()
    if (runs.length < rows.length) throw new Error(`the log shows ${runs.length} of ${rows.length} runs`)
    for (const run of runs) {
      const { run_id: runId, seq } = run
      if (run.state === 'RUN_STARTED') throw new Error(`${runId} has never ended`)
      const { state } = known.run(runId)
      if (run.state !== state) throw new Error(`${runId} is ${run.state}; it became ${state}`)
      const own = elements.filter(({ run_seq }) => run_seq === seq)
      checkRun(run, known.run(runId), own)
      const past = pastAttempts.filter(({ run_seq }) => run_seq === seq)
      checkAttempts(run, known.failures.get(seq) ?? new Map(), own, past)
    }
  }
}

/** Whether the reasons that a run gives for waiting are those that the model knows. */

/** Throws when a reason says something that is not so. `paused`: the keys of flow control that are held. */
export function checkReason(runId: string, reason: Because, known: Knowledge, paused: ReadonlySet<string>): void {
  const expect = (what: string, said: unknown, truth: unknown): void => {
    if (said !== truth) throw new Error(`${runId} says of its ${reason.kind} that ${what} is ${said}; it is ${truth}`)
  }
  switch (reason.kind) {
    case 'sleeping':
    case 'delayed':
      // Those of runs that were taken up again have begun anew.
      if (known.asleep.has(reason.messageId)) expect('the end', reason.until, known.asleep.get(reason.messageId))
      if (known.released.has(reason.messageId)) expect('something that an event has ended', true, false)
      return
    case 'retry': {
      const next = known.retries.get(reason.messageId)
      if (next) expect('its number', reason.retry, next.retried)
      if (next) expect('its time', reason.at, next.nextAt)
      return
    }
    case 'event': {
      const waits = [...known.waits.values()].filter(({ messageId }) => known.run(runId).waits.has(messageId))
      const same = waits.filter(({ eventId }) => eventId === reason.eventId)
      const isTrue =
        same.length === 0 || same.some(({ since, until }) => since === reason.since && until === reason.until)
      expect('when it began and ends', isTrue, true)
      return
    }
    case 'invoked-run':
      // One that has not been delivered yet is not known.
      expect('the state of that run', 'RUN_STARTED', known.stateOf(reason.workflowRunId) ?? 'RUN_STARTED')
      return
    case 'flow-control':
      expect('whether the key is paused', reason.paused, paused.has(reason.flowControlKey))
      return
    case 'bulk-cancel':
    case 'webhook':
    case 'in-flight':
    case 'queued':
      return
    case 'no-step':
    case 'discarded-branch':
      throw new Error(`${runId} goes on, and nothing will ever happen to it`)
  }
}
