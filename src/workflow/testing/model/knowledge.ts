import type { PendingMessage } from '../../../queue/index.js'
import type { RunState } from '../../../store/schema/runs.js'
import type { PastAttempt } from '../../transactions/runs-logs.js'
import type { Revival } from '../../transactions/runs-revive.js'
import type { ElementRow, RunRow } from '../../transactions/runs-rows.js'
import { firstResults, type ListedStep } from './program.js'

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

/** What must be true of a run that has ended, by what the model knows of it. */

/** What the model knows of a run without asking the store. */
export interface KnownRun {
  state: RunState
  /** Messages whose elements the server has acknowledged, and those that stand for waits. */
  readonly accepted: Set<string>
  readonly waits: Set<string>
  readonly deliveries: { readonly messageId: string; readonly list: readonly string[] }[]
  results: string | undefined
  /** The payload that its failure function was called with. */
  reported: string | undefined
}

/** Throws when the list of a run, what was delivered of it or what it came to is not as promised. */
export function checkRun(run: RunRow, known: KnownRun, elements: readonly ElementRow[]): void {
  const { run_id: runId } = run
  checkList(runId, known, elements)
  checkOnce(runId, elements)
  for (const delivery of known.deliveries) checkPrefix(runId, delivery, elements)
  checkResults(runId, known, elements)
  checkFailure(run, known, elements)
}

/** Every acknowledged element is there once, and nothing is there that nobody sent. */
function checkList(runId: string, known: KnownRun, elements: readonly ElementRow[]): void {
  const counts = new Map<string, number>()
  for (const { message_id } of elements) counts.set(message_id, (counts.get(message_id) ?? 0) + 1)
  for (const messageId of known.accepted) {
    if (counts.get(messageId) !== 1)
      throw new Error(`${runId} has the acknowledged ${messageId} ${counts.get(messageId) ?? 0} times`)
  }
  for (const [messageId, times] of counts) if (times > 1) throw new Error(`${runId} has ${messageId} ${times} times`)
  for (const element of elements) {
    const isOurs = known.accepted.has(element.message_id) || known.waits.has(element.message_id)
    if (!isOurs && !isMadeByServer(element)) throw new Error(`${runId} has ${element.message_id}, which nobody sent`)
  }
}

/** What the server does for a step is done once, however often it was asked for: events must not be spent on repetitions. */
function checkOnce(runId: string, elements: readonly ElementRow[]): void {
  const seen = new Set<string>()
  for (const element of elements) {
    const what = workOf(element)
    if (what === undefined) continue
    if (seen.has(what)) throw new Error(`${runId} has done ${what} twice`)
    seen.add(what)
  }
}

function workOf({ kind, position, meta, body }: ElementRow): string | undefined {
  // Written by the intake from what the simulated endpoint asks for.
  if (kind === 'toCallback') return `the call of step ${callOf(meta)['upstash-forward-upstash-workflow-stepid']}`
  if (kind !== 'step' || position === 0) return undefined
  const { stepId, stepType, targetStep } = stepOf(body)
  const isOurs = (stepType === 'Wait' || stepType === 'Invoke') && targetStep === undefined
  return isOurs ? `the ${stepType} of step ${stepId}` : undefined
}

function callOf(meta: string | null): Readonly<Record<string, string>> {
  return (JSON.parse(meta ?? '{}') as { callback: { headers: Record<string, string> } }).callback.headers
}

function isMadeByServer({ kind, position, body }: ElementRow): boolean {
  if (kind !== 'step') return true
  return position === 0 || stepOf(body).stepType === 'Invoke'
}

/** A delivery carries the list up to its own element, as it is forever (reference workflow 4.5). */
function checkPrefix(
  runId: string,
  { messageId, list }: KnownRun['deliveries'][number],
  elements: readonly ElementRow[],
) {
  const steps = elements.filter(({ kind }) => kind === 'step').map(({ message_id }) => message_id)
  const same = list.every((id, index) => id === steps[index])
  if (!same || list.at(-1) !== messageId) throw new Error(`a delivery of ${runId} carried another list than its prefix`)
}

/** How often deliveries have failed without failing their run, by message. */
export type Failures = ReadonlyMap<string, number>

/**
 * What had failed before a delivery came through, was ended with its run or failed after that stays in the log. That of
 * the delivery which failed the run stands in the record of the failure, and so does that of the failure function.
 */
export function checkAttempts(
  { run_id: runId, failure }: RunRow,
  failures: Failures,
  elements: readonly ElementRow[],
  past: readonly PastAttempt[],
): void {
  const { messageId: fatal } = JSON.parse(failure ?? '{}') as { messageId?: string }
  const reports = new Set(elements.filter(({ kind }) => kind === 'failureCall').map(({ message_id }) => message_id))
  for (const [messageId, times] of failures) {
    if (messageId === fatal || reports.has(messageId)) continue
    const kept = past.filter(({ message_id }) => message_id === messageId).length
    if (kept !== times) throw new Error(`${runId} remembers ${kept} of ${times} failures of ${messageId}`)
  }
}

/** What the program returned is made of the first result of each step. */
function checkResults(runId: string, { state, results }: KnownRun, elements: readonly ElementRow[]): void {
  if (state !== 'RUN_SUCCESS') return
  const steps = elements.filter(({ kind, position }) => kind === 'step' && position > 0).map(({ body }) => stepOf(body))
  const first = firstResults(steps)
  const expected = [...first.keys()]
    .filter((id) => id > 0)
    .sort((a, b) => a - b)
    .map((id) => first.get(id) ?? null)
  if (results !== JSON.stringify(expected))
    throw new Error(`${runId} returned ${results} instead of ${JSON.stringify(expected)}`)
}

/** The failure function of a failed run was called with its payload unless that was given up or never got through. */
function checkFailure(
  { run_id, failure_state: state }: RunRow,
  known: KnownRun,
  elements: readonly ElementRow[],
): void {
  if (state === 'CALLBACK_INPROGRESS') throw new Error(`the failure function of ${run_id} is called forever`)
  if (state === 'CALLBACK_SUCCESS' && known.reported === undefined) throw new Error(`${run_id} was reported to nobody`)
  const payload = new TextDecoder().decode(elements.find(({ position }) => position === 0)?.body)
  if (known.reported !== undefined && known.reported !== payload)
    throw new Error(`${run_id} was reported as another one`)
}

function stepOf(body: Uint8Array): ListedStep {
  // Written by the simulated endpoint, or by the server from what that has sent.
  return JSON.parse(new TextDecoder().decode(body)) as ListedStep
}
