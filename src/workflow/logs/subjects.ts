import { asObject, parseJson } from '../protocol/invoke.js'
import { callHeader, isPlan, linkOf, stepIdOfCall, toSent } from '../protocol/sent-steps.js'
import { storedWait } from '../runs/columns.js'
import type { ElementRow } from '../transactions/runs-rows.js'
import type { WaitRecord, WaitRow } from '../transactions/runs-wait.js'
import type { RunMaterial } from './run-material.js'

/** What a delivery is about, as far as the list of its run tells. */
export interface Subject {
  /** The step that it is for; unknown where only the program knows what comes next. */
  readonly stepId?: number
  readonly stepName?: string
  /** Its time is the end of a sleep. */
  readonly sleeps: boolean
}

const UNKNOWN: Subject = { sleeps: false }

/** What a message of a run delivers. */
export function subjectOf({ elementOf }: Pick<RunMaterial, 'elementOf'>, messageId: string): Subject {
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

/** The report of a call names the message that made it. */
function subjectOfResult(elementOf: RunMaterial['elementOf'], { body }: ElementRow): Subject {
  const made = asObject(parseJson(body))?.sourceMessageId
  const call = typeof made === 'string' ? elementOf.get(made) : undefined
  return call?.kind === 'toCallback' ? subjectOfCall(call) : UNKNOWN
}

/** A plan makes the program do its branch, and a sleep ends itself; what follows any other step is not known. */
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

/** The step that a wait completes. */
export function stepOfWait({ wait }: Pick<WaitRow, 'wait'>): WaitRecord['step'] {
  return storedWait(wait).step
}

/** The names of parallel branches that were planned, have no result, and to which nothing is to come. */
export function abandonedBranches(run: RunMaterial): string[] {
  const { sent } = run
  const settled = new Set(sent.filter(({ step }) => !isPlan(step)).map(({ step }) => Number(step.stepId)))
  const open = sent.filter(({ step }) => isPlan(step) && !settled.has(Number(step.targetStep)))
  if (open.length === 0) return []
  const toCome = stepsToCome(run)
  return open
    .filter(({ step }) => !toCome.has(Number(step.targetStep)))
    .map(({ step }) => String(step.stepName ?? step.targetStep))
}

function stepsToCome(run: RunMaterial): Set<number> {
  const { pending, waits, invoked } = run
  const delivered = pending.map(({ message_id }) => subjectOf(run, message_id).stepId)
  const awaited = waits.map((wait) => Number(stepOfWait(wait).stepId))
  const running = invoked
    .filter(({ state }) => state === 'RUN_STARTED')
    .map((child) => Number(linkOf(child).step.stepId))
  return new Set([...delivered.filter((id) => id !== undefined), ...awaited, ...running])
}
