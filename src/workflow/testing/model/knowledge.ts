import type { PendingMessage } from '../../../queue/index.js'
import type { RunState } from '../../../store/schema/runs.js'
import type { PastAttempt } from '../../transactions/runs-logs.js'
import type { PauseClock } from '../../transactions/runs-pause.js'
import type { Revival } from '../../transactions/runs-revive.js'
import type { ElementRow, RunRow } from '../../transactions/runs-rows.js'
import type { StandingRows } from './census.js'
import { firstResults, type ListedStep } from './program.js'

/** A wait of a program. */
export interface KnownWait {
  readonly messageId: string
  readonly eventId: string
  /** Unix milliseconds. */
  readonly since: number
  readonly until: number
}

/** A pause of a run. */
export interface KnownPause {
  readonly clock: PauseClock
  /** Unix milliseconds. */
  readonly since: number
  /** Only its workflow was paused. */
  readonly ofWorkflow?: true
}

/** Expected state of the runs of a simulation, tracked without reading the store. */
export class Knowledge {
  readonly #runs = new Map<string, KnownRun>()
  /** Runs that retention has deleted. */
  readonly #gone = new Set<string>()
  /** The time before which a message must not be delivered, by message. */
  readonly asleep = new Map<string, number>()
  readonly waits = new Map<string, KnownWait>()
  /** Messages of waits that an event ended, so they are due. */
  readonly released = new Set<string>()
  /** Messages in `released` whose run was paused, with the time of the event, Unix milliseconds. */
  readonly releasedInPause = new Map<string, number>()
  /** The next attempt after a failed one, by message. */
  readonly retries = new Map<string, Pick<PendingMessage, 'retried' | 'nextAt'>>()
  /** Number of failed attempts that did not fail the run, by `runs.seq`, then by message. */
  readonly failures = new Map<number, Map<string, number>>()
  /** `runs.seq` of cancelled runs. */
  readonly cancelled = new Set<number>()
  /** Lists, messages and waits of cancelled runs before their cancel, by `runs.seq`. */
  readonly stood = new Map<number, StandingRows>()
  /** Paused runs, including those that have ended. */
  readonly paused = new Map<string, KnownPause>()
  /** Failure callbacks that were cancelled and not retried. */
  readonly cancelledCallbacks = new Set<string>()

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

  /** A cancel was undone. */
  broughtBack({ run_id: runId, seq }: Pick<RunRow, 'run_id' | 'seq'>): void {
    const known = this.run(runId)
    if (known.state !== 'RUN_CANCELED') throw new Error(`${runId} was brought back, and is ${known.state}`)
    known.state = 'RUN_STARTED'
    this.cancelled.delete(seq)
    this.stood.delete(seq)
  }

  /** Whether a run is paused, so that nothing of it may be sent. */
  isHeld(runId: string): boolean {
    return this.paused.has(runId) && this.stateOf(runId) === 'RUN_STARTED'
  }

  moveTo(runId: string, state: RunState): void {
    const known = this.run(runId)
    if (known.state !== 'RUN_STARTED') throw new Error(`${runId} went from ${known.state} to ${state}`)
    known.state = state
  }

  /** Retention has deleted the run: its id may be reused. */
  forget(runId: string): void {
    this.#runs.delete(runId)
    this.#gone.add(runId)
  }

  /** The list of a run arrived at its program, perhaps long after the run has ended. */
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

  /** A delivery has failed and will be retried. */
  failedOnce(message: PendingMessage): void {
    const { messageId, retried, nextAt } = message
    this.countFailure(message)
    this.retries.set(messageId, { retried, nextAt })
  }

  /** Counts a failed attempt that did not fail the run. */
  countFailure({ groupKey = 0, messageId }: PendingMessage): void {
    const ofRun = this.failures.get(groupKey) ?? new Map<string, number>()
    ofRun.set(messageId, (ofRun.get(messageId) ?? 0) + 1)
    this.failures.set(groupKey, ofRun)
  }

  /** A dead run was resumed or restarted as a new run. */
  revived(dead: Pick<RunRow, 'run_id'>, revival: Revival): void {
    const { run_id: runId } = revival.run
    if (revival.kind === 'restart') this.run(runId).accepted.add(revival.messageId)
    else this.#continue(dead.run_id, runId)
  }

  /** A resumed run keeps what was acknowledged for the dead one; its waits and sleeps start again. */
  #continue(deadId: string, runId: string): void {
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

/** Expected state of a run. */
export interface KnownRun {
  state: RunState
  /** Messages whose elements the server has acknowledged. */
  readonly accepted: Set<string>
  readonly waits: Set<string>
  readonly deliveries: { readonly messageId: string; readonly list: readonly string[] }[]
  results: string | undefined
  /** The payload that its failure function received. */
  reported: string | undefined
  /** Of a restarted run: the results that it began with. */
  kept?: ReadonlyMap<number, string | undefined>
}

/** Throws if the list, the deliveries or the result of an ended run violate a guarantee. */
export function checkRun(run: RunRow, known: KnownRun, elements: readonly ElementRow[]): void {
  const { run_id: runId } = run
  checkList(runId, known, elements)
  checkOnce(runId, elements)
  for (const delivery of known.deliveries) checkPrefix(runId, delivery, elements)
  checkResults(runId, known, elements)
  checkFailure(run, known, elements)
}

/** Every acknowledged element is stored once, and nothing else is. */
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

/** The server executes a step once, even for repeated requests: a repetition must not consume an event. */
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
  // Written by the intake from requests of the simulated endpoint.
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

/** A delivery carries the list up to its own element; the stored list must start with it (reference workflow 4.5). */
function checkPrefix(
  runId: string,
  { messageId, list }: KnownRun['deliveries'][number],
  elements: readonly ElementRow[],
) {
  const steps = elements.filter(({ kind }) => kind === 'step').map(({ message_id }) => message_id)
  const same = list.every((id, index) => id === steps[index])
  if (!same || list.at(-1) !== messageId) throw new Error(`a delivery of ${runId} carried another list than its prefix`)
}

/** Number of failed attempts that did not fail their run, by message. */
export type Failures = ReadonlyMap<string, number>

/**
 * Checks that the log keeps the failed attempts of deliveries. The attempts of the delivery that failed the run, and of the
 * failure callback, are in the record of the failure instead.
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

/** The program returned the first result of each step. */
function checkResults(runId: string, { state, results, kept }: KnownRun, elements: readonly ElementRow[]): void {
  const steps = elements.filter(({ kind, position }) => kind === 'step' && position > 0).map(({ body }) => stepOf(body))
  const first = firstResults(steps)
  for (const [id, out] of kept ?? []) {
    if (first.get(id) !== out) throw new Error(`${runId} was restarted with another result of step ${id}`)
  }
  if (state !== 'RUN_SUCCESS') return
  const expected = [...first.keys()]
    .filter((id) => id > 0)
    .sort((a, b) => a - b)
    .map((id) => first.get(id) ?? null)
  if (results !== JSON.stringify(expected))
    throw new Error(`${runId} returned ${results} instead of ${JSON.stringify(expected)}`)
}

/** The failure function of a failed run received its payload, unless the callback was cancelled or failed. */
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
  // Written by the simulated endpoint, or by the server from its requests.
  return JSON.parse(new TextDecoder().decode(body)) as ListedStep
}
