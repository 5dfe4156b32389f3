import type { KeyRule } from '../../queue/index.js'
import type { RunState } from '../../store/schema/runs.js'
import {
  asObject,
  callHeader,
  isPlan,
  linkOf,
  parseJson,
  type SentStep,
  sentSteps,
  stepIdOfCall,
  toSent,
} from '../protocol/sent-steps.js'
import { metaOfElement, storedWait } from '../runs/columns.js'
import type {
  InvokedRun,
  LoggedElement,
  PastAttempt,
  PendingAttempt,
  PendingStep,
  RunLogPage,
} from '../transactions/runs-logs.js'
import type { DeliveryColumns, ElementRow, RunOrigin, RunRow } from '../transactions/runs-rows.js'
import type { WaitRecord, WaitRow } from '../transactions/runs-wait.js'

/**
 * All data of one run that its log is built from. Runs may have very many steps, so lookups are maps, and the views of
 * steps are built in slices.
 */
export interface RunLogData {
  readonly state: RunState
  /** Since when nothing of an ended run is sent: its end, or the start of the pause in which it ended. NULL: active. */
  readonly stoppedAt: number | null
  readonly elements: readonly LoggedElement[]
  /** The elements that are steps, parsed. */
  readonly sent: readonly SentStep[]
  readonly pending: readonly PendingStep[]
  readonly attempts: readonly PendingAttempt[]
  readonly pastAttempts: readonly PastAttempt[]
  readonly waits: readonly WaitRow[]
  /** Runs that this one has invoked. */
  readonly invoked: readonly InvokedRun[]
  /** Default delivery settings of its elements. */
  readonly delivery: DeliveryColumns | undefined
  /** The original run, if this is a restarted run. */
  readonly origin: RunOrigin | undefined
  /** The debounce or singleton key of its trigger. */
  readonly rule: KeyRule | undefined
  /** By message id. */
  readonly elementOf: ReadonlyMap<string, ElementRow>
  readonly pendingOf: ReadonlyMap<string, PendingStep>
  /** By `messages.seq`. */
  readonly attemptsOf: ReadonlyMap<number, readonly PendingAttempt[]>
  /** The elements of calls, by step id. */
  readonly callOf: ReadonlyMap<number, ElementRow>
  /** By the message that reports the end of the invoked run. */
  readonly invokedBy: ReadonlyMap<string, InvokedRun>
  /** Bodies and results are cut to this many characters. */
  readonly trimTo: number
  readonly now: number
}

/** Picks the data of one run from a page of logs. */
export async function runLogDataOf(
  run: RunRow,
  page: RunLogPage,
  { trimTo, now }: Pick<RunLogData, 'trimTo' | 'now'>,
): Promise<RunLogData> {
  const ofRun = ({ run_seq }: { readonly run_seq: number }): boolean => run_seq === run.seq
  const elements = page.elements.filter(ofRun)
  const pending = page.pending.filter(({ group_key }) => group_key === run.seq)
  const seqs = new Set(pending.map(({ seq }) => seq))
  const attempts = page.attempts.filter(({ message_seq }) => seqs.has(message_seq))
  const invoked = page.invoked.filter(({ parent_seq }) => parent_seq === run.seq)
  const meta = metaOfElement(elements.find(({ position }) => position === 0)?.meta)
  const calls = elements.filter(({ kind }) => kind === 'toCallback')
  return {
    state: run.state,
    stoppedAt: run.finished_at === null ? null : Math.min(run.finished_at, run.paused_at ?? run.finished_at),
    elements,
    sent: await sentSteps(elements),
    pending,
    attempts,
    pastAttempts: page.pastAttempts.filter(ofRun),
    waits: page.waits.filter(ofRun),
    invoked,
    delivery: meta.delivery,
    origin: meta.origin,
    rule: meta.rule,
    elementOf: firstBy(elements, ({ message_id }) => message_id),
    pendingOf: firstBy(pending, ({ message_id }) => message_id),
    attemptsOf: grouped(attempts, ({ message_seq }) => message_seq),
    callOf: firstBy(calls, stepIdOfCall),
    invokedBy: firstBy(invoked, (child) => linkOf(child).messageId),
    trimTo,
    now,
  }
}

/** The first item of each key. */
export function firstBy<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item> {
  return new Map(items.toReversed().map((item) => [keyOf(item), item]))
}

/** The items of each key. */
export function grouped<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}

/** The step that a delivery is for, as far as the list reveals it. */
export interface Subject {
  /** Absent where only the program knows which step is next. */
  readonly stepId?: number
  readonly stepName?: string
  /** The delivery ends a sleep. */
  readonly sleeps: boolean
}

const UNKNOWN: Subject = { sleeps: false }

/** Finds the step that a message of a run is for. */
export function subjectOf({ elementOf }: Pick<RunLogData, 'elementOf'>, messageId: string): Subject {
  const element = elementOf.get(messageId)
  if (!element || element.position === 0) return UNKNOWN
  switch (element.kind) {
    case 'toCallback':
      return subjectOfCall(element)
    case 'fromCallback':
      return subjectOfResult(elementOf, element)
    case 'step':
      return subjectOfStep(element)
    case 'failureCall':
      return UNKNOWN
  }
}

function subjectOfCall(call: ElementRow): Subject {
  const stepName = callHeader(call, 'stepname')
  return { stepId: stepIdOfCall(call), ...(stepName !== undefined && { stepName }), sleeps: false }
}

/** The result of a call contains the id of the message that made the call. */
function subjectOfResult(elementOf: RunLogData['elementOf'], { body }: ElementRow): Subject {
  const made = asObject(parseJson(body))?.sourceMessageId
  const call = typeof made === 'string' ? elementOf.get(made) : undefined
  return call?.kind === 'toCallback' ? subjectOfCall(call) : UNKNOWN
}

/** A plan is for its branch, a sleep for itself. After any other step, only the program knows the next step. */
function subjectOfStep(element: ElementRow): Subject {
  const { step } = toSent(element)
  const sleeps = step.sleepFor !== undefined || step.sleepUntil !== undefined
  if (!isPlan(step) && !sleeps) return UNKNOWN
  const stepName = typeof step.stepName === 'string' ? step.stepName : undefined
  return {
    stepId: Number(isPlan(step) ? step.targetStep : step.stepId),
    ...(stepName !== undefined && { stepName }),
    sleeps,
  }
}

/** The step that the end of a wait completes. */
export function stepOfWait({ wait }: Pick<WaitRow, 'wait'>): WaitRecord['step'] {
  return storedWait(wait).step
}

/** The names of planned parallel branches without a result for which nothing is pending. */
export function abandonedBranches(run: RunLogData): string[] {
  const { sent } = run
  const settled = new Set(sent.filter(({ step }) => !isPlan(step)).map(({ step }) => Number(step.stepId)))
  const open = sent.filter(({ step }) => isPlan(step) && !settled.has(Number(step.targetStep)))
  if (open.length === 0) return []
  const stillPending = pendingSteps(run)
  return open
    .filter(({ step }) => !stillPending.has(Number(step.targetStep)))
    .map(({ step }) => String(step.stepName ?? step.targetStep))
}

function pendingSteps(run: RunLogData): Set<number> {
  const { pending, waits, invoked } = run
  const delivered = pending.map(({ message_id }) => subjectOf(run, message_id).stepId)
  const awaited = waits.map((wait) => Number(stepOfWait(wait).stepId))
  const running = invoked
    .filter(({ state }) => state === 'RUN_STARTED')
    .map((child) => Number(linkOf(child).step.stepId))
  return new Set([...delivered.filter((id) => id !== undefined), ...awaited, ...running])
}
