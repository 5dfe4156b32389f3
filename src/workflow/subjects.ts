import type { ElementRow, PendingStep, WaitRecord, WaitRow } from '../store/operations/runs.js'
import { storedWait } from './columns.js'
import { asObject, parseJson } from './invoke.js'
import type { RunMaterial } from './log-steps.js'
import { callHeader, isPlan, linkOf, sentSteps, stepIdOfCall, toSent } from './sent-steps.js'

/** What a delivery is about, as far as the list of its run tells. */
export interface Subject {
  /** The step that it is for; unknown where only the program knows what comes next. */
  readonly stepId?: number
  readonly stepName?: string
  /** Its time is the end of a sleep. */
  readonly sleeps: boolean
}

const UNKNOWN: Subject = { sleeps: false }

type Material = Pick<RunMaterial, 'elements' | 'pending' | 'waits' | 'invoked'>

/** What a message of a run delivers. */
export function subjectOf({ elements }: Pick<Material, 'elements'>, messageId: string): Subject {
  const element = elements.find(({ message_id }) => message_id === messageId)
  if (!element || element.position === 0) return UNKNOWN
  switch (element.kind) {
    case 'toCallback':
      return subjectOfCall(element)
    case 'fromCallback':
      return subjectOfResult(elements, element)
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
function subjectOfResult(elements: readonly ElementRow[], { body }: ElementRow): Subject {
  const made = asObject(parseJson(body))?.sourceMessageId
  const call = elements.find((element) => element.kind === 'toCallback' && element.message_id === made)
  return call ? subjectOfCall(call) : UNKNOWN
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
export function abandonedBranches(run: Material): string[] {
  const sent = sentSteps(run.elements)
  const settled = new Set(sent.filter(({ step }) => !isPlan(step)).map(({ step }) => Number(step.stepId)))
  const open = sent.filter(({ step }) => isPlan(step) && !settled.has(Number(step.targetStep)))
  if (open.length === 0) return []
  const toCome = stepsToCome(run)
  return open
    .filter(({ step }) => !toCome.has(Number(step.targetStep)))
    .map(({ step }) => String(step.stepName ?? step.targetStep))
}

function stepsToCome({ elements, pending, waits, invoked }: Material): Set<number> {
  const delivered = pending.map((message: PendingStep) => subjectOf({ elements }, message.message_id).stepId)
  const awaited = waits.map((wait) => Number(stepOfWait(wait).stepId))
  const running = invoked
    .filter(({ state }) => state === 'RUN_STARTED')
    .map((child) => Number(linkOf(child).step.stepId))
  return new Set([...delivered.filter((id) => id !== undefined), ...awaited, ...running])
}
