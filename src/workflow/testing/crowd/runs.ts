import { newId } from '../../../base/index.js'
import type { PendingMessage } from '../../../queue/index.js'
import * as messagesRetention from '../../../queue/transactions/messages-retention.js'
import { revivalOf } from '../../dead-letters/revival.js'
import { sweepRunKeys } from '../../runs/key-sweep.js'
import * as runsCancel from '../../transactions/runs-cancel.js'
import * as runsLogs from '../../transactions/runs-logs.js'
import * as runsNotify from '../../transactions/runs-notify.js'
import * as runsRetention from '../../transactions/runs-retention.js'
import type { DeadRun } from '../../transactions/runs-revive.js'
import * as runsRevive from '../../transactions/runs-revive.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import { runsOf } from '../model/census.js'
import { someFlow } from '../model/flow-watch.js'
import { checkRun } from '../model/knowledge.js'
import { randomProgram, triggerItem } from '../model/program.js'
import type { CrowdDeps } from './deps.js'

/** Actions of a crowd on runs, some of them by two callers at once, and checks of their results. */
export class CrowdRuns {
  readonly #deps: CrowdDeps
  /** Ids of all runs seen so far, by `runs.seq`. */
  readonly #ids = new Map<number, string>()
  /** Waits that an event ended. */
  readonly #released = new Set<string>()
  /** Dead letters that were revived or deleted. */
  readonly #revived = new Set<number>()
  /** Runs that the server did not know. */
  readonly #missing = new Set<string>()

  constructor(deps: CrowdDeps) {
    this.#deps = deps
  }

  /** Does one random action. */
  act(): Promise<void> {
    const dice = this.#deps.random.below(20)
    if (dice < 8) return this.#trigger()
    if (dice < 11) return this.#cancel()
    if (dice < 15) return this.#notify()
    if (dice < 18) return this.#revive()
    return this.#sweep()
  }

  /** A message is about to be sent. */
  sent({ messageId, groupKey = 0 }: PendingMessage): void {
    if (this.#deps.known.cancelled.has(groupKey)) throw new Error(`${messageId} was sent after its run was cancelled`)
  }

  missing(runId: string): void {
    this.#missing.add(runId)
  }

  /** A caller got the result that these runs were cancelled. */
  cancelled(seqs: readonly number[]): void {
    for (const seq of seqs) {
      this.#deps.forget(seq)
      if (this.#deps.known.cancelled.has(seq)) throw new Error(`run ${seq} was cancelled twice`)
      this.#deps.known.cancelled.add(seq)
    }
    this.#deps.drop({ groupKeys: seqs })
  }

  /** Like `context.cancel()`. */
  async cancelOne(runId: string): Promise<void> {
    const run = (await this.#rows()).find(({ run_id }) => run_id === runId)
    if (run) await this.#cancelAll([run.seq])
  }

  /** Sometimes two callers trigger a run with the same id: one is started. */
  async #trigger(): Promise<void> {
    const { random, known, now } = this.#deps
    const { intake, publisher } = this.#deps.endpoint()
    const runId = newId('wfr_', now())
    const settings = { 'upstash-retries': String(random.below(3)), ...someFlow(random) }
    const item = triggerItem(runId, randomProgram(random), settings)
    const times = random.chance(0.3) ? 2 : 1
    const submits = Array.from({ length: times }, () => intake.submit(publisher, [item]))
    const replies = (await Promise.all(submits)).map(([reply]) => reply)
    const started = replies.filter((reply) => reply && 'messageId' in reply && reply.deduplicated !== true)
    if (started.length !== 1) throw new Error(`${runId} was started ${started.length} times`)
    for (const reply of replies) if (reply && 'messageId' in reply) known.run(runId).accepted.add(reply.messageId)
  }

  async #cancel(): Promise<void> {
    const { random } = this.#deps
    const seqs = (await this.#rows()).map(({ seq }) => seq).filter(() => random.chance(0.1))
    await this.#cancelAll(seqs)
  }

  async #cancelAll(seqs: readonly number[]): Promise<void> {
    const { store, now, offer } = this.#deps
    const { cancelled, offers } = await store.run(runsCancel.cancelRuns, { seqs, at: now() })
    this.cancelled(cancelled)
    offer(offers)
  }

  async #notify(): Promise<void> {
    const { random, store, accountId, now, known, offer, drop } = this.#deps
    const data = new TextEncoder().encode('event')
    const [runId] = random.chance(0.5) ? [random.pick(known.runIds)] : []
    const args = { accountId, eventId: `event-${random.below(3)}`, data, at: now(), ...(runId && { runId }) }
    const { released, ...notified } = await store.run(runsNotify.notify, args)
    for (const { wait, runId: waiting } of released) {
      const name = `${waiting} ${wait.message_id}`
      if (this.#released.has(name)) throw new Error(`a wait of ${waiting} was ended by two events`)
      this.#released.add(name)
    }
    drop({ seqs: notified.drop, mayBeOfferedAgain: true })
    offer(notified.offers)
  }

  /** Two callers may revive the same dead letter: one succeeds. */
  async #revive(): Promise<void> {
    const { random, store, accountId, now, offer } = this.#deps
    const selector = { accountId, filter: {}, order: 'earliestFirst' as const, limit: 2 }
    const dead = random.pick((await store.run(runsRevive.revivable, selector)).runs)
    if (!dead) return
    const overrides = { revision: { config: {}, headers: {} }, dueAt: now() }
    const revival = revivalOf(random.chance(0.7) ? 'resume' : 'restart', dead, overrides, now())
    const args = { accountId, revivals: [revival], dueAt: now(), at: now() }
    const { revived, offers } = await store.run(runsRevive.revive, args)
    if (revived.length > 0) this.revived(dead, revival)
    offer(offers)
  }

  /** A caller got the result that these dead letters were deleted. */
  deletedDead(seqs: readonly number[]): void {
    for (const seq of seqs) {
      if (this.#revived.has(seq)) throw new Error(`run ${seq} was deleted from the dead letters after it had left them`)
      this.#revived.add(seq)
    }
  }

  /** A dead letter was revived. */
  revived(dead: DeadRun, revival: ReturnType<typeof revivalOf>): void {
    if (this.#revived.has(dead.seq)) throw new Error(`${dead.run_id} was revived after it had left the dead letters`)
    this.#revived.add(dead.seq)
    this.#deps.known.revived(dead, revival)
  }

  /** Runs retention while everything else continues. */
  async #sweep(): Promise<void> {
    const { store, now } = this.#deps
    const args = { after: 0, finishedBefore: now() - 600_000, now: now(), limit: 50 }
    await sweepRunKeys(store, args.finishedBefore, () => true)
    await store.run(runsRetention.sweepRuns, args)
    await store.run(messagesRetention.sweep, args)
  }

  #rows(): Promise<readonly RunRow[]> {
    return runsOf(this.#deps.store, this.#deps.accountId)
  }

  /** Checks that every run is in its reported state, and that deleted runs had ended. */
  async check(): Promise<void> {
    const { known } = this.#deps
    const rows = await this.#rows()
    for (const { seq, run_id } of rows) this.#ids.set(seq, run_id)
    for (const [seq, runId] of this.#ids) {
      if (known.cancelled.has(seq) && known.stateOf(runId) === 'RUN_STARTED') known.moveTo(runId, 'RUN_CANCELED')
    }
    for (const { run_id: runId, state } of rows) {
      if (known.stateOf(runId) !== undefined && known.stateOf(runId) !== state)
        throw new Error(`${runId} is ${state}; it became ${known.stateOf(runId)}`)
    }
    const there = new Set(rows.map(({ run_id }) => run_id))
    for (const runId of [...known.runIds, ...this.#missing].filter((id) => !there.has(id))) {
      if (known.stateOf(runId) === 'RUN_STARTED') throw new Error(`${runId} was deleted while it was active`)
      known.forget(runId)
    }
    this.#missing.clear()
  }

  /** Checks that every run has ended correctly. */
  async checkEnds(): Promise<void> {
    const { store, accountId, known } = this.#deps
    const range = { before: Number.MAX_SAFE_INTEGER, limit: 10_000 }
    const { runs, elements } = await store.run(runsLogs.logPage, { accountId, filter: {}, ...range })
    for (const run of runs) {
      const own = elements.filter(({ run_seq }) => run_seq === run.seq)
      if (run.state === 'RUN_STARTED') throw new Error(`${run.run_id} has never ended`)
      checkPositions(run.run_id, own)
      checkRun(run, known.run(run.run_id), own)
    }
  }
}

/** Elements that were appended concurrently must have consecutive positions. */
function checkPositions(runId: string, elements: readonly { readonly position: number }[]): void {
  const positions = elements.map(({ position }) => position).toSorted((a, b) => a - b)
  if (positions.some((position, index) => position !== index))
    throw new Error(`the elements of ${runId} have the positions ${positions}`)
}
