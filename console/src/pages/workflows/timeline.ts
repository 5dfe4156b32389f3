/**
 * A run as bars on one time axis. The log has the end of each step, and usually its start and phases. If it has no start,
 * the start follows from the step before: Homeport calls the endpoint as soon as the previous step is stored, and parallel
 * branches start together.
 */
import { parseDuration } from '../../../../src/base/duration.js'
import { type Phase, type Reason, type Run, type Step, type StepState, typeOf } from './words.js'

/** A part of a bar. Times are Unix milliseconds. */
export interface Segment {
  readonly phase: Phase
  readonly startMs: number
  readonly endMs: number
}

/** A step on the axis. Times are Unix milliseconds. */
export interface Bar {
  readonly key: string
  readonly name: string
  readonly type: string
  readonly state: StepState
  readonly startMs: number
  /** The present for active steps. */
  readonly endMs: number
  readonly isOpen: boolean
  /** The phases of its time, in order; empty if the log has none. */
  readonly segments: readonly Segment[]
  /** The times of failed attempts. */
  readonly failuresMs: readonly number[]
  /** Why an active step waits. */
  readonly reason: Reason | undefined
  readonly step: Step
}

/** A sequential step is a stage with one bar; parallel branches are one stage with several. */
export interface Stage {
  readonly key: string
  readonly isParallel: boolean
  readonly bars: readonly Bar[]
}

/** The timeline of a run. */
export interface Timeline {
  readonly startMs: number
  readonly endMs: number
  readonly stages: readonly Stage[]
}

type Group = Run['steps'][number]

/** Lays out a run. `nowMs` is the end of active steps. */
export function timelineOf(run: Run, nowMs: number): Timeline {
  const startMs = run.workflowRunCreatedAt
  const endMs = Math.max(run.workflowRunCompletedAt ?? nowMs, startMs + 1)
  const stages: Stage[] = []
  let cursor = startMs
  for (const group of mergePendingDeliveries(run.steps)) {
    const bars = group.steps.map((step, index) => barOf(run, step, `${stages.length}.${index}`, cursor, endMs))
    stages.push({ key: String(stages.length), isParallel: bars.length > 1, bars })
    cursor = Math.max(cursor, ...bars.map((bar) => bar.endMs))
  }
  return { startMs, endMs: Math.max(endMs, cursor), stages }
}

/** Merges pending deliveries, which the log lists again at its end, into their steps. */
function mergePendingDeliveries(groups: readonly Group[]): Group[] {
  const deliveries = groups.filter(({ type }) => type === 'next').flatMap(({ steps }) => steps)
  const isOpen = ({ state }: Step) => state !== 'STEP_SUCCESS'
  const own = groups.filter(({ type }) => type !== 'next')
  const taken = new Set(own.flatMap(({ steps }) => steps.filter(isOpen).map(({ messageId }) => messageId)))
  const merged = own.map(({ type, steps }) => ({
    type,
    steps: steps.map((step) => (isOpen(step) ? { ...deliveryOf(step, deliveries), ...step } : step)),
  }))
  const rest = deliveries.filter(({ messageId }) => !taken.has(messageId))
  return rest.length > 0 ? [...merged, { type: 'next', steps: rest }] : merged
}

const deliveryOf = ({ messageId }: Step, deliveries: readonly Step[]): Step =>
  deliveries.find((delivery) => delivery.messageId === messageId) ?? {}

function barOf(run: Run, step: Step, key: string, cursor: number, lastMs: number): Bar {
  const state = step.state ?? 'STEP_PROGRESS'
  const span = spanOf(step, state, cursor, lastMs)
  // A resumed or restarted run has steps of an older run, so times are clamped to the run itself.
  const firstMs = run.workflowRunCreatedAt
  const [startMs, endMs] = span.map((ms) => Math.min(Math.max(ms, firstMs), lastMs)) as [number, number]
  return {
    key,
    name: nameOf(step, state),
    type: typeOf(step),
    state,
    startMs,
    endMs: Math.max(startMs, endMs),
    isOpen: state === 'STEP_PROGRESS' || state === 'STEP_RETRY',
    segments: segmentsOf(step).filter((segment) => segment.startMs >= firstMs),
    failuresMs: (step.errors ?? []).map(({ time }) => time),
    reason: state === 'STEP_SUCCESS' ? undefined : reasonOf(run, step),
    step,
  }
}

function segmentsOf({ time }: Step): Segment[] {
  let at = time?.from ?? 0
  return (time?.phases ?? []).map(({ phase, ms }) => {
    const startMs = at
    at += ms
    return { phase, startMs, endMs: at }
  })
}

/** Start and end of a step. */
function spanOf(step: Step, state: StepState, cursor: number, lastMs: number): [number, number] {
  const cameMs = step.createdAt ?? cursor
  if (step.stepType === 'Initial') return [cameMs, cameMs]
  const sleepsMs = sleepOf(step)
  // In a parallel branch, the log has a sleep from its end on: the creation time is the end.
  if (sleepsMs !== undefined && state === 'STEP_SUCCESS' && Number(step.concurrent) > 1)
    return [Math.min(cursor, cameMs), cameMs]
  if (sleepsMs !== undefined) return [step.time?.from ?? cameMs, state === 'STEP_SUCCESS' ? cameMs + sleepsMs : lastMs]
  if (step.time) return [step.time.from, segmentsOf(step).at(-1)?.endMs ?? cameMs]
  if (state === 'STEP_SUCCESS') return [Math.min(step.invokedWorkflowCreatedAt ?? cursor, cameMs), cameMs]
  return [cameMs, lastMs]
}

/** The length of a sleep, milliseconds. */
function sleepOf({ sleepFor, sleepUntil, createdAt }: Step): number | undefined {
  if (typeof sleepFor === 'number') return sleepFor * 1_000
  if (typeof sleepFor === 'string') return parseDuration(sleepFor)
  return sleepUntil === undefined || createdAt === undefined ? undefined : Math.max(0, sleepUntil - createdAt)
}

function nameOf({ stepName, stepType }: Step, state: StepState): string {
  if (stepType === 'Initial') return 'Triggered'
  if (stepName !== undefined && stepName !== '') return stepName
  if (state === 'STEP_CANCELED') return 'Cancelled here'
  return state === 'STEP_FAILED' ? 'Failed here' : 'Next step'
}

function reasonOf({ because = [] }: Run, step: Step): Reason | undefined {
  return because.find(
    ({ messageId, eventId, workflowRunId }) =>
      (messageId !== undefined && messageId === step.messageId) ||
      (eventId !== undefined && eventId === step.waitEventId) ||
      (workflowRunId !== undefined && workflowRunId === step.invokedWorkflowRunId),
  )
}

/** The position of a bar as shares of the whole axis. */
export function placeOf({ startMs, endMs }: Pick<Bar, 'startMs' | 'endMs'>, whole: Timeline) {
  const lengthMs = whole.endMs - whole.startMs
  return { left: (startMs - whole.startMs) / lengthMs, width: (endMs - startMs) / lengthMs }
}

/** The time of a step by phase, milliseconds; phases in the order in which they first occur. */
export function totalsOf({ segments }: Pick<Bar, 'segments'>): { readonly phase: Phase; readonly ms: number }[] {
  const totals = new Map<Phase, number>()
  for (const { phase, startMs, endMs } of segments) totals.set(phase, (totals.get(phase) ?? 0) + endMs - startMs)
  return [...totals].map(([phase, ms]) => ({ phase, ms }))
}
