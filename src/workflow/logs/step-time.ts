/**
 * Where the time of a step went, as phases without gaps: from the moment when its first delivery was due until its result
 * arrived.
 */
import type { STEP_PHASES } from '../../contract/workflow/runs.js'
import { isPlan, stepIdOfCall } from '../protocol/sent-steps.js'
import type { FailureRecord } from '../runs/columns.js'
import { type AttemptTimes, storedTiming } from '../runs/delivery-times.js'
import type { PastAttempt } from '../transactions/runs-logs.js'
import type { ElementRow } from '../transactions/runs-rows.js'
import { grouped, type RunLogData, subjectOf } from './run-log-data.js'
import type { StepOfDelivery } from './step-fields.js'

type Phase = (typeof STEP_PHASES)[number]

/** The time of a step. */
export interface StepTime {
  /** When the step could begin, Unix milliseconds. */
  readonly from: number
  /** In order, without empty ones. Their sum is the time from `from` until the end of the last one. */
  readonly phases: readonly { readonly phase: Phase; readonly ms: number }[]
}

/** One attempt of a delivery of a step. Unix milliseconds. */
interface Attempt {
  readonly dueAt: number
  readonly heldMs: number
  /** `undefined`: the whole wait, except flow control. */
  readonly lineMs: number | undefined
  readonly startedAt: number
  readonly finishedAt: number
  readonly by: 'endpoint' | 'call'
}

/** The times of the steps of a run that have a result, by step id. @param stepOf finds the step of a delivery. */
export function timesOf(run: RunLogData, stepOf: (messageId: string) => StepOfDelivery): Map<StepOfDelivery, StepTime> {
  const attempts = new Map<StepOfDelivery, (Attempt | undefined)[]>()
  const note = (step: StepOfDelivery | undefined, attempt: Attempt | undefined): void => {
    if (step === undefined) return
    const others = attempts.get(step)
    if (others) others.push(attempt)
    else attempts.set(step, [attempt])
  }
  const results = run.sent.filter(({ step }) => !isPlan(step))
  for (const { element, step } of results) note(Number(step.stepId), answered(element))
  for (const element of run.elements) {
    if (element.kind === 'toCallback') note(stepIdOfCall(element), answered(element))
    if (element.kind === 'fromCallback') note(subjectOf(run, element.message_id).stepId, answered(element))
  }
  for (const [messageId, past] of grouped(run.pastAttempts, ({ message_id }) => message_id)) {
    const by = run.elementOf.get(messageId)?.kind === 'toCallback' ? 'call' : 'endpoint'
    // Only the newest attempts are kept. Without the first one it is unknown when the step could begin.
    if (past.every(({ retried }) => retried > 0)) note(stepOf(messageId), undefined)
    for (const attempt of past) note(stepOf(messageId), failed(attempt, by))
  }
  const times = results.map(
    ({ step }) => [Number(step.stepId), timeOf(attempts.get(Number(step.stepId)) ?? [])] as const,
  )
  return new Map(times.flatMap(([step, time]) => (time ? [[step, time]] : [])))
}

/** The time of the delivery that failed a run; `undefined` if an attempt of it is not known. */
export function timeOfFailure({ attempts = [], retried, times }: FailureRecord): StepTime | undefined {
  const all = [...attempts.map((attempt) => attempt.times), times]
  if (attempts.length < retried) return undefined
  return timeOf(all.map((each) => each && failedAt(each, 'endpoint')))
}

/**
 * The attempt that an element is the answer to; `undefined` if it is not known.
 * @param element a step of the program, or the result of a call.
 */
function answered({ kind, timing, created_at }: ElementRow): Attempt | undefined {
  const times = storedTiming(timing)
  return times && { ...times, finishedAt: created_at, by: kind === 'fromCallback' ? 'call' : 'endpoint' }
}

/** A failed attempt of a delivery; `undefined` if its times are not known. */
function failed(attempt: PastAttempt, by: Attempt['by']): Attempt | undefined {
  const { due_at, held_ms, started_at, finished_at } = attempt
  if (due_at === null || held_ms === null || finished_at === null) return undefined
  return failedAt([due_at, held_ms, started_at, finished_at], by)
}

/** A failed attempt in the record of a failure. */
const failedAt = ([dueAt, heldMs, startedAt, finishedAt]: AttemptTimes, by: Attempt['by']): Attempt => ({
  dueAt,
  heldMs,
  startedAt,
  finishedAt,
  by,
  lineMs: undefined,
})

/** The time of a step from all its attempts, in any order; `undefined` if there are none, or one of them is not known. */
export function timeOf(attempts: readonly (Attempt | undefined)[]): StepTime | undefined {
  const known = attempts.filter((attempt) => attempt !== undefined).sort((a, b) => a.startedAt - b.startedAt)
  const [first] = known
  if (!first || known.length < attempts.length) return undefined
  const spans = new Spans(first.dueAt)
  for (const attempt of known) spans.add(attempt)
  return { from: first.dueAt, phases: spans.phases }
}

/** Collects phases. A clock that was set back makes none of them negative. */
class Spans {
  readonly phases: { phase: Phase; ms: number }[] = []
  #at: number

  constructor(from: number) {
    this.#at = from
  }

  add({ dueAt, heldMs, lineMs, startedAt, finishedAt, by }: Attempt): void {
    this.#until('back-off', dueAt)
    this.#until('flow-control', Math.min(this.#at + heldMs, startedAt))
    this.#until('line', lineMs === undefined ? startedAt : Math.min(this.#at + lineMs, startedAt))
    this.#until('overhead', startedAt)
    this.#until(by, finishedAt)
  }

  #until(phase: Phase, at: number): void {
    const ms = at - this.#at
    if (ms <= 0) return
    this.#at = at
    const last = this.phases.at(-1)
    if (last?.phase === phase) last.ms += ms
    else this.phases.push({ phase, ms })
  }
}
