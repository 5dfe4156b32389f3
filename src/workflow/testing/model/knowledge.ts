import type { PendingMessage } from '../../../queue/index.js'
import type { RunState } from '../../../store/schema/runs.js'
import type { Revival } from '../../transactions/runs-revive.js'
import type { RunRow } from '../../transactions/runs-rows.js'
import type { KnownRun } from './checks.js'

/** What a program waits for. */
export interface KnownWait {
  readonly messageId: string
  readonly eventId: string
  /** Unix milliseconds. */
  readonly since: number
  readonly until: number
}

/** What the model knows of the runs of a world without asking the store. */
export class Knowledge {
  readonly #runs = new Map<string, KnownRun>()
  /** Runs that nobody remembers any more. */
  readonly #gone = new Set<string>()
  /** By message: the times before which it must not be delivered. */
  readonly asleep = new Map<string, number>()
  readonly waits = new Map<string, KnownWait>()
  /** Messages of waits that an event has ended: they are due from then on. */
  readonly released = new Set<string>()
  /** By message: its next attempt, after one that has failed. */
  readonly retries = new Map<string, Pick<PendingMessage, 'retried' | 'nextAt'>>()
  /** By `runs.seq`, then by message: how often deliveries have failed without failing their run. */
  readonly failures = new Map<number, Map<string, number>>()
  /** `runs.seq` of cancelled runs. */
  readonly cancelled = new Set<number>()
  /** Failure callbacks that were given up and not asked for again. */
  readonly givenUp = new Set<string>()

  get runIds(): string[] {
    return [...this.#runs.keys()]
  }

  stateOf(runId: string): RunState | undefined {
    return this.#runs.get(runId)?.state
  }

  run(runId: string): KnownRun {
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

  moveTo(runId: string, state: RunState): void {
    const known = this.run(runId)
    if (known.state !== 'RUN_STARTED') throw new Error(`${runId} went from ${known.state} to ${state}`)
    known.state = state
  }

  /** Nothing remembers the run any more: its id may name another one. */
  forget(runId: string): void {
    this.#runs.delete(runId)
    this.#gone.add(runId)
  }

  /** The list of a run came to its program, perhaps long after the run has ended. */
  delivered(runId: string, delivery: KnownRun['deliveries'][number]): void {
    if (!this.#gone.has(runId)) this.run(runId).deliveries.push(delivery)
  }

  waiting(runId: string, wait: KnownWait): void {
    this.run(runId).waits.add(wait.messageId)
    this.waits.set(wait.messageId, wait)
  }

  failed(runId: string, payload: string): void {
    const state = this.stateOf(runId)
    if (state !== undefined && state !== 'RUN_FAILED')
      throw new Error(`the failure function of ${runId} was called, which is ${state}`)
    if (state !== undefined) this.run(runId).reported = payload
  }

  /** A delivery has failed and is made again. */
  failedOnce(message: PendingMessage): void {
    const { messageId, retried, nextAt } = message
    this.countFailure(message)
    this.retries.set(messageId, { retried, nextAt })
  }

  /** A delivery has failed that did not fail its run. */
  countFailure({ groupKey = 0, messageId }: PendingMessage): void {
    const ofRun = this.failures.get(groupKey) ?? new Map<string, number>()
    ofRun.set(messageId, (ofRun.get(messageId) ?? 0) + 1)
    this.failures.set(groupKey, ofRun)
  }

  /** A dead run lives on: where it stood, or from its payload. */
  takenUp(dead: Pick<RunRow, 'run_id'>, revival: Revival): void {
    const { run_id: runId } = revival.run
    if (revival.kind === 'restart') this.run(runId).accepted.add(revival.messageId)
    else this.#livesOn(dead.run_id, runId)
  }

  /** What was acknowledged for a dead run holds for the one that takes its place; what it waits for begins anew. */
  #livesOn(deadId: string, runId: string): void {
    const [before, known] = [this.run(deadId), this.run(runId)]
    for (const messageId of before.accepted) known.accepted.add(messageId)
    for (const messageId of before.waits) known.waits.add(messageId)
    for (const messageId of [...before.accepted, ...before.waits]) {
      this.asleep.delete(messageId)
      this.waits.delete(messageId)
      this.released.delete(messageId)
      this.retries.delete(messageId)
    }
  }
}
