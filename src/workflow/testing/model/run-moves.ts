import { newId } from '../../../base/index.js'
import type { Random } from '../../../base/testing/random.js'
import type { DropSelector, Queue } from '../../../queue/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import { revivalOf } from '../../dead-letters/revival.js'
import { runLogs } from '../../logs/log-runs.js'
import type { Because } from '../../logs/reason.js'
import * as runsCallbacks from '../../transactions/runs-callbacks.js'
import * as runsCancel from '../../transactions/runs-cancel.js'
import * as runsLogs from '../../transactions/runs-logs.js'
import * as runsNotify from '../../transactions/runs-notify.js'
import * as runsPause from '../../transactions/runs-pause.js'
import * as runsRevive from '../../transactions/runs-revive.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import type { UndoClock } from '../../transactions/runs-undo.js'
import { BulkActions } from './bulk-actions.js'
import { runsOf } from './census.js'
import { checkReason } from './check-reason.js'
import type { EndpointDeps } from './endpoint.js'
import { someFlow } from './flow-watch.js'
import { checkAttempts, checkRun, type Knowledge, type KnownPause } from './knowledge.js'
import { randomProgram, triggerItem } from './program.js'
import { restartSome } from './restart-move.js'
import { RuleWatch, someRule } from './rule-watch.js'
import { checkParked, checkReleased, checkStanding, noteMoved, standingsOf, undone } from './standings.js'
import type { WorkflowPause } from './workflow-pause.js'

/** Collaborators of the actions on runs. */
export interface RunMovesDeps {
  readonly store: Store
  readonly random: Random
  readonly accountId: string
  readonly now: () => number
  /** Whether there are pauses, undos of cancels, and priorities. */
  readonly hasUndoAndPause: boolean
  readonly known: Knowledge
  /** The paused flow-control keys. */
  readonly paused: ReadonlySet<string>
  readonly flowHold: Queue['flowHold']
  readonly endpoint: () => EndpointDeps
  /** The paused workflows. */
  readonly pause: Pick<WorkflowPause, 'pass' | 'expected' | 'workflows'>
  readonly offer: (rows: readonly PendingRow[], isAgain?: boolean) => void
  readonly drop: (which: DropSelector) => void
}

const AUDIT = { actor: 'model@example.com', source: 'QUEUE_TOKEN', action: 'resume', details: '{}', ip: '::1' }

/** Random actions of callers on the runs of a simulation, and checks of the runs. */
export class RunMoves {
  readonly bulk: BulkActions
  readonly rules: RuleWatch
  readonly #deps: RunMovesDeps

  constructor(deps: RunMovesDeps) {
    this.#deps = deps
    const { store, random, accountId, now, offer, known } = deps
    this.rules = new RuleWatch((runId) => known.stateOf(runId) === 'RUN_STARTED')
    this.bulk = new BulkActions({
      store,
      random,
      offer,
      accountId,
      now,
      hasUndoAndPause: deps.hasUndoAndPause,
      rows: () => this.#rows(),
      cancelling: (runs) => this.#cancelling(runs),
      cancelled: (runs) => this.#cancelled(runs),
      broughtBack: (runs, clock, at) => this.#broughtBack(runs, clock, at),
      paused: (runs, pause) => this.#paused(runs, pause),
      resuming: (runs) => this.#resuming(runs),
      revived: (dead, revival) => known.revived(dead, revival),
      pause: deps.pause,
    })
  }

  /** Triggers a run; sometimes with the id of another run, which must start nothing. */
  async trigger(): Promise<void> {
    const { random, known, now } = this.#deps
    if (this.#deps.hasUndoAndPause && random.chance(0.25)) return this.#triggerWithKey()
    const taken = random.chance(0.1) ? random.pick(known.runIds) : undefined
    const runId = taken ?? newId('wfr_', now())
    const delay: Record<string, string> = random.chance(0.1) ? { 'upstash-delay': '300s' } : {}
    const hasPriority = this.#deps.hasUndoAndPause && random.chance(0.3)
    const priority: Record<string, string> = hasPriority
      ? { 'homeport-priority': String(random.below(1_201) - 600) }
      : {}
    const reply = await this.#submit(runId, { ...delay, ...priority })
    if (taken !== undefined && reply.deduplicated !== true) throw new Error(`${runId} was started twice`)
    known.run(runId).accepted.add(reply.messageId)
    if (taken === undefined && delay['upstash-delay']) known.asleep.set(reply.messageId, now() + 300_000)
  }

  /** Triggers a run with a debounce or singleton key: it starts, replaces the run that holds the key, or starts nothing. */
  async #triggerWithKey(): Promise<void> {
    const { random, known, now } = this.#deps
    const [rule, runId] = [someRule(random), newId('wfr_', now())]
    const holder = this.rules.holder(rule)
    const older = (await this.#rows()).filter(({ run_id }) => run_id === holder)
    await this.#cancelling(older)
    const reply = await this.#submit(runId, rule.headers)
    if (!this.rules.triggered(runId, rule, holder, reply)) return
    for (const { run_id, seq } of older) {
      known.moveTo(run_id, 'RUN_CANCELED')
      known.cancelled.add(seq)
    }
    known.run(runId).accepted.add(reply.messageId)
    if (rule.delayMs > 0) known.asleep.set(reply.messageId, now() + rule.delayMs)
  }

  async #submit(runId: string, settings: Readonly<Record<string, string>>) {
    const { random } = this.#deps
    const { intake, publisher } = this.#deps.endpoint()
    const headers = { 'upstash-retries': String(random.below(3)), ...settings, ...someFlow(random) }
    const [reply] = await intake.submit(publisher, [triggerItem(runId, randomProgram(random), headers)])
    if (!reply || !('messageId' in reply)) throw new Error(`${runId} was triggered without a reply`)
    return reply
  }

  /** Does one random action of a caller. @param dice from 0 to 16. */
  some(dice: number): Promise<void> {
    if (dice < 5) return this.#cancel()
    if (dice < 11) return this.#notify()
    if (dice < 14) return this.#revive()
    return this.#changeCallback()
  }

  /** Does one random step of a bulk action. @param dice from 0 to 13. */
  workInBulk(dice: number): Promise<void> {
    if (dice < 4) return this.bulk.start()
    if (dice < 9) return this.bulk.work()
    return this.#deps.random.chance(0.3) ? this.bulk.abort() : this.bulk.pause()
  }

  /** Cancels some runs, active and ended: exactly the active ones must be cancelled. */
  async #cancel(): Promise<void> {
    const { random, store, now, offer } = this.#deps
    const chosen = (await this.#rows()).filter(() => random.chance(0.1))
    const expected = chosen.filter(({ state }) => state === 'RUN_STARTED').map(({ seq }) => seq)
    const args = { seqs: chosen.map(({ seq }) => seq), at: now() }
    await this.#cancelling(chosen)
    const { cancelled, offers } = await store.run(runsCancel.cancelRuns, args)
    const same = cancelled.length === expected.length && expected.every((seq) => cancelled.includes(seq))
    if (!same) throw new Error(`cancelled ${[...cancelled]} instead of ${expected}`)
    this.#cancelled(chosen.filter(({ seq }) => expected.includes(seq)))
    offer(offers)
  }

  /** Records the lists, messages and waits of active runs before a cancel. */
  async #cancelling(runs: readonly RunRow[]): Promise<void> {
    const active = runs.filter(({ state }) => state === 'RUN_STARTED')
    for (const [seq, standing] of await standingsOf(this.#deps.store, active)) this.#deps.known.stood.set(seq, standing)
  }

  async #broughtBack(runs: readonly RunRow[], clock: UndoClock, at: number): Promise<void> {
    const { store, known } = this.#deps
    const after = await standingsOf(store, runs)
    for (const run of runs) {
      const [stood, stands] = [known.stood.get(run.seq), after.get(run.seq)]
      if (!stood || !stands) throw new Error(`${run.run_id} was brought back, and nobody has cancelled it`)
      const pause = known.paused.get(run.run_id)
      const isHeld = pause?.clock === 'hold'
      const since = run.finished_at ?? 0
      const shift = { by: 'undo', clock: isHeld && clock === 'hold' ? 'original' : clock, since, at } as const
      if (pause?.ofWorkflow && !this.#deps.pause.expected) {
        // The resume of its workflow has skipped this cancelled run.
        known.paused.delete(run.run_id)
        checkStanding(run, undone(stood, shift), stands, { by: 'resume', ...pause, at })
        checkReleased(known, stands, at)
      } else checkStanding(this.#heldSince(run, at), stood, stands, shift)
      noteMoved(known, stood, stands)
      known.broughtBack(run)
    }
  }

  /** Records that a run that is brought back while its workflow is paused is paused from then on, unless it was before. */
  #heldSince(run: RunRow, at: number): RunRow {
    const { known, pause } = this.#deps
    if (!pause.expected || run.paused_at !== null) return run
    known.paused.set(run.run_id, { ...pause.expected, since: at })
    return { ...run, paused_at: at }
  }

  #paused(runs: readonly RunRow[], pause: KnownPause): void {
    const { known, drop } = this.#deps
    for (const { run_id: runId } of runs) {
      // An invoked run may be paused before its first delivery.
      known.run(runId)
      known.paused.set(runId, pause)
    }
    drop({ groupKeys: runs.map(({ seq }) => seq), inFlight: 'ends' })
  }

  /** Reads the messages and waits of paused runs before their resume. @returns a function that checks them afterwards. */
  async #resuming(runs: readonly RunRow[]): Promise<(at: number) => Promise<void>> {
    const { store, known } = this.#deps
    const before = await standingsOf(store, runs)
    for (const run of runs) {
      const stood = before.get(run.seq)
      if (stood) checkParked(run, stood)
    }
    return async (at) => {
      const after = await standingsOf(store, runs)
      for (const run of runs) {
        const [stood, stands] = [before.get(run.seq), after.get(run.seq)]
        const pause = known.paused.get(run.run_id)
        if (!stood || !stands || !pause) throw new Error(`${run.run_id} was not paused`)
        known.paused.delete(run.run_id)
        checkStanding(run, stood, stands, { by: 'resume', ...pause, at })
        checkReleased(known, stands, at)
        noteMoved(known, stood, stands)
      }
    }
  }

  /** Resumes all paused runs. */
  async resumeAll(): Promise<void> {
    const { store, accountId, now, offer } = this.#deps
    const paused = (await this.#rows()).filter(({ state, paused_at }) => state === 'RUN_STARTED' && paused_at !== null)
    const check = await this.#resuming(paused)
    const at = now()
    for (const { run_id: runId } of paused) {
      const audit = { ...AUDIT, log_id: newId('log_', at), account_id: accountId, entity: runId, at }
      const result = await store.run(runsPause.resumeRun, { accountId, runId, audit, at })
      if (result.kind !== 'resumed') throw new Error(`${runId} could not be resumed: ${result.kind}`)
      offer(result.offers, true)
    }
    await check(at)
  }

  /** Restarts some run from one of its steps. */
  async restart(): Promise<void> {
    const { store, random, known, now, offer } = this.#deps
    const run = random.pick(await this.#rows())
    const { caller } = this.#deps.endpoint().publisher
    if (run) await restartSome({ store, random, caller, known, now, offer, gate: this.#deps.pause }, run)
  }

  #cancelled(runs: readonly RunRow[]): void {
    const { known } = this.#deps
    for (const { run_id, seq } of runs) {
      known.moveTo(run_id, 'RUN_CANCELED')
      known.cancelled.add(seq)
    }
    this.#deps.drop({ groupKeys: runs.map(({ seq }) => seq) })
  }

  /** Like `context.cancel()`. */
  async cancelItself(runId: string): Promise<void> {
    const { store, now, offer } = this.#deps
    const [run] = (await this.#rows()).filter(({ run_id }) => run_id === runId)
    if (!run) return this.checkGone(runId)
    await this.#cancelling([run])
    const { cancelled, offers } = await store.run(runsCancel.cancelRuns, { seqs: [run.seq], at: now() })
    if (cancelled.length > 0) this.#cancelled([run])
    offer(offers)
  }

  /** Cancels a pending failure callback, or retries a failed one. */
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
      known.cancelledCallbacks.add(callback?.messageId ?? '')
    }
    offer(result.offers)
  }

  async #notify(): Promise<void> {
    const { random, store, accountId, now, known, offer, drop } = this.#deps
    const data = new TextEncoder().encode('event')
    const [named] = random.chance(0.5) ? [random.pick(known.runIds)] : []
    const args = { accountId, eventId: `event-${random.below(3)}`, data, at: now(), ...(named && { runId: named }) }
    const notified = await store.run(runsNotify.notify, args)
    const rows = await this.#rows()
    for (const { wait } of notified.released) {
      known.released.add(wait.message_id)
      const isHeld = rows.some(({ seq, run_id: runId }) => seq === wait.run_seq && known.isHeld(runId))
      if (isHeld) known.releasedInPause.set(wait.message_id, now())
    }
    drop({ seqs: notified.drop, mayBeOfferedAgain: true })
    offer(notified.offers)
  }

  /** Resumes or restarts the oldest dead letter. */
  async #revive(): Promise<void> {
    const { random, store, accountId, now, known, offer } = this.#deps
    const selector = { accountId, filter: {}, order: 'earliestFirst' as const, limit: 1 }
    const [dead] = (await store.run(runsRevive.revivable, selector)).runs
    if (!dead) return
    const at = now()
    const overrides = { revision: { config: {}, headers: {} }, dueAt: at }
    const revival = revivalOf(random.chance(0.7) ? 'resume' : 'restart', dead, overrides, at)
    const args = { accountId, revivals: [revival], dueAt: at, at }
    const result = await this.#deps.pause.pass(accountId, [revival.run], at, (paused) =>
      store.run(runsRevive.revive, { ...args, paused }),
    )
    known.revived(dead, revival)
    offer(result.offers)
  }

  /** Records the end of runs whose messages were dropped with an outcome. */
  async noteEnds(seqs: readonly number[]): Promise<void> {
    if (seqs.length === 0) return
    const rows = (await this.#rows()).filter(({ seq }) => seqs.includes(seq))
    for (const { run_id, state } of rows) this.#deps.known.moveTo(run_id, state)
  }

  /** Throws unless a run that the server does not know had ended before. */
  async checkGone(runId: string): Promise<void> {
    const rows = await this.#rows()
    const state = this.#deps.known.stateOf(runId)
    if (state === 'RUN_STARTED' || rows.some(({ run_id }) => run_id === runId))
      throw new Error(`${runId} is ${state ?? 'there'}, but the server does not know it`)
  }

  /** `seq` of a random run of the oldest third. */
  async someOldSeq(): Promise<number> {
    const oldest = (await this.#rows()).map(({ seq }) => seq).toSorted((a, b) => a - b)
    return this.#deps.random.pick(oldest.slice(0, oldest.length / 3)) ?? 0
  }

  /** Checks that the runs that retention deleted had ended, and forgets them. */
  async forgetSwept(): Promise<void> {
    const { known } = this.#deps
    const left = new Set((await this.#rows()).map(({ run_id }) => run_id))
    for (const runId of known.runIds.filter((id) => !left.has(id))) {
      if (known.stateOf(runId) === 'RUN_STARTED') throw new Error(`${runId} was deleted while it was active`)
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

  /** With nothing in flight, every active run must have a correct reason to wait. */
  async checkReasons(): Promise<void> {
    const { known, now, paused, flowHold, accountId } = this.#deps
    const holdOf = (flowKey: string) => flowHold(accountId, flowKey)
    const page = await this.#page({ states: ['RUN_STARTED'] })
    for (const run of await runLogs(page, { trimTo: 0, now: now(), inFlightSince: () => undefined, holdOf })) {
      const reasons = run.because as readonly Because[]
      const runId = String(run.workflowRunId)
      if (reasons.length === 0) throw new Error(`${runId} is active, and nothing will ever happen to it`)
      const isPaused = reasons.some(({ kind }) => kind === 'paused')
      if (isPaused !== known.isHeld(runId)) throw new Error(`${runId} ${isPaused ? 'is' : 'is not'} paused`)
      for (const reason of reasons) checkReason(runId, reason, known, paused)
    }
  }

  /** Checks that every run has ended correctly. */
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
