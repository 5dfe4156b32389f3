import { mapInSlices, TimeSlice } from '../../base/index.js'
import { redacted, storedConfig } from '../../queue/index.js'
import type { RunState } from '../../store/schema/runs.js'
import {
  asObject,
  callHeader,
  isPlan,
  linkOf,
  parseText,
  planGroups,
  type SentStep,
  stepIdOfCall,
} from '../protocol/sent-steps.js'
import { storedWait } from '../runs/columns.js'
import type { PendingStep } from '../transactions/runs-logs.js'
import type { ElementRow } from '../transactions/runs-rows.js'
import { firstBy, type RunLogData } from './run-log-data.js'
import {
  type AttemptError,
  attemptError,
  callFields,
  callRequest,
  deliveryFields,
  type ErrorsByStep,
  endOfSleep,
  errorsByStep,
  invocationFields,
  invokedRunFields,
  type StepOfDelivery,
  sleepFields,
  trim,
  waitFields,
  waitTimes,
} from './step-fields.js'
import { type StepTime, timesOf } from './step-time.js'

/** State of a step in run logs (reference workflow 4.14). */
export type StepState = 'STEP_PROGRESS' | 'STEP_SUCCESS' | 'STEP_RETRY' | 'STEP_FAILED' | 'STEP_CANCELED'

/** A step in run logs. */
export type StepView = Readonly<Record<string, unknown>> & {
  readonly state: StepState
  readonly errors?: readonly AttemptError[]
  readonly time?: StepTime
}

/** Steps that are shown together. */
export interface GroupView {
  readonly type: 'sequential' | 'parallel' | 'next'
  readonly steps: readonly StepView[]
}

/** The step whose delivery failed the run. */
export interface FailedStep {
  readonly view: StepView & { readonly errors: readonly AttemptError[] }
  /** Id of that step, if the list reveals it. */
  readonly stepId: number | undefined
}

/** Groups the steps of a run: completed and open steps in order, then the pending deliveries or the failure. */
export async function stepGroups(run: RunLogData, failed?: FailedStep): Promise<readonly GroupView[]> {
  const { sent } = run
  const branches = planGroups(sent.filter(({ step }) => isPlan(step)))
  const open = await openSteps(run, failed)
  const context: BranchContext = {
    failed,
    results: new Map(sent.filter(({ step }) => !isPlan(step)).map((one) => [Number(one.step.stepId), one])),
    open: firstBy(open, ({ stepId }) => stepId),
  }
  const shown = new Set<number>()
  const groups: GroupView[] = [initGroup(run)]
  const slice = new TimeSlice()
  for (const one of sent) {
    if (slice.isOver) await slice.rest()
    const id = Number(isPlan(one.step) ? one.step.targetStep : one.step.stepId)
    if (shown.has(id)) continue
    const group = branches.get(id)
    for (const branch of group ?? [one]) shown.add(Number(branch.step.targetStep ?? branch.step.stepId))
    groups.push(await groupView(run, one, group, context))
  }
  const others = open.filter(({ stepId }) => !shown.has(Number(stepId)))
  groups.push(...others.map((step): GroupView => ({ type: 'sequential', steps: [step] })))
  const stepOf = stepsOfDeliveries(run)
  const errors = errorsByStep(run.pastAttempts, stepOf, run.trimTo)
  const past = withTimes(withErrors(groups, errors), timesOf(run, stepOf))
  if (failed) return withFailure(past, failed)
  const next = await nextSteps(run, errors.get('unknown'))
  return next.length > 0 ? [...past, { type: 'next', steps: next }] : past
}

/** Adds to the steps their failed attempts. */
function withErrors(groups: readonly GroupView[], errors: ErrorsByStep): readonly GroupView[] {
  if (errors.size === 0) return groups
  const added = (step: StepView): StepView => {
    const before = errors.get(Number(step.stepId ?? 0))
    return before ? { ...step, errors: before } : step
  }
  return groups.map(({ type, steps }) => ({ type, steps: steps.map(added) }))
}

/** Adds to steps with a result the phases of their time. */
function withTimes(groups: readonly GroupView[], times: ReadonlyMap<StepOfDelivery, StepTime>): readonly GroupView[] {
  if (times.size === 0) return groups
  const timed = (step: StepView): StepView => {
    const time = step.stepId === undefined ? undefined : times.get(Number(step.stepId))
    return time ? { ...step, time } : step
  }
  return groups.map(({ type, steps }) => ({ type, steps: steps.map(timed) }))
}

/** Adds the failure to its parallel branch; any other failure becomes a group at the end. */
function withFailure(groups: readonly GroupView[], { view, stepId }: FailedStep): readonly GroupView[] {
  const isBranch = (step: StepView): boolean => step.state === 'STEP_FAILED' && Number(step.stepId) === stepId
  const onBranch = (step: StepView): StepView =>
    isBranch(step)
      ? { ...step, errors: [...(step.errors ?? []), ...view.errors], ...(view.time && { time: view.time }) }
      : step
  const at = groups.findIndex(({ type, steps }) => type === 'parallel' && steps.some(isBranch))
  if (at < 0) return [...groups, { type: 'next', steps: [view] }]
  return groups.map((group, index) => (index === at ? { ...group, steps: group.steps.map(onBranch) } : group))
}

/** Returns a function that maps a message to the step that its delivery was for. */
function stepsOfDeliveries(run: RunLogData): (messageId: string) => StepOfDelivery {
  const sentOf = new Map(run.sent.map((one) => [one.element, one]))
  const nextOf = new Map<ElementRow, SentStep | undefined>()
  let next: SentStep | undefined
  for (const element of run.elements.toReversed()) {
    nextOf.set(element, next)
    next = sentOf.get(element) ?? next
  }
  return (messageId) => {
    const delivered = run.elementOf.get(messageId)
    if (!delivered) return stepOfDelivery(run, undefined, next)
    if (delivered.kind === 'toCallback') return stepIdOfCall(delivered)
    return stepOfDelivery(run, sentOf.get(delivered), nextOf.get(delivered))
  }
}

/**
 * The step that the program executes in a delivery: the branch that the delivered step plans, or the next step. Unknown if
 * a cancel ended the delivery, because then the step never arrived.
 */
function stepOfDelivery({ state }: RunLogData, own: SentStep | undefined, next: SentStep | undefined): StepOfDelivery {
  if (own && isPlan(own.step)) return Number(own.step.targetStep)
  if (state === 'RUN_CANCELED' && !next) return 'unknown'
  const { step } = next ?? own ?? {}
  return Number((step && isPlan(step) ? step.targetStep : step?.stepId) ?? 0)
}

/** Results and open steps of planned parallel branches, by step id. */
interface BranchContext {
  readonly failed: FailedStep | undefined
  readonly results: ReadonlyMap<number, SentStep>
  readonly open: ReadonlyMap<unknown, StepView>
}

async function groupView(
  run: RunLogData,
  one: SentStep,
  group: readonly SentStep[] | undefined,
  context: BranchContext,
): Promise<GroupView> {
  if (!group) return { type: 'sequential', steps: [stepView(run, one)] }
  return { type: 'parallel', steps: await mapInSlices(group, (plan) => branchView(run, plan, context)) }
}

function branchView(run: RunLogData, plan: SentStep, { results, open, failed }: BranchContext): StepView {
  const result = results.get(Number(plan.step.targetStep))
  if (result) return stepView(run, result)
  const { targetStep, ...step } = plan.step
  return (
    open.get(targetStep) ?? {
      ...stepView(run, { element: plan.element, step: { ...step, stepId: targetStep } }),
      state: openState(run, failed, { messageId: plan.element.message_id, stepId: Number(targetStep) }),
    }
  )
}

function initGroup(run: RunLogData): GroupView {
  const { elements, delivery, trimTo } = run
  const init = elements.find(({ position }) => position === 0)
  const body = init?.body ?? new Uint8Array()
  const { redact } = storedConfig(delivery?.config)
  const step: StepView = {
    stepName: 'init',
    stepType: 'Initial',
    callType: 'step',
    messageId: init?.message_id ?? '',
    out: redact?.body ? redacted(body) : trim(new TextDecoder().decode(body), trimTo),
    concurrent: 1,
    state: 'STEP_SUCCESS',
    createdAt: init?.created_at ?? 0,
    ...(init && deliveryFields(run, init)),
  }
  return { type: 'sequential', steps: [step] }
}

function stepView(run: RunLogData, { element, step }: SentStep): StepView {
  const { out, targetStep: _, callUrl: _u, callMethod: _m, callBody: _b, callHeaders: _h, ...rest } = step
  return {
    ...rest,
    callType: 'step',
    messageId: element.message_id,
    createdAt: element.created_at,
    state: stateOfSent(run, element, step),
    ...deliveryFields(run, element),
    ...(out !== undefined && { out: trim(String(out), run.trimTo) }),
    ...sleepFields(step),
    ...waitFields(element, step),
    ...callFields(run, step),
    ...invocationFields(run, element.message_id),
  }
}

/** A step in the list has its result, except a sleep, which is appended when it starts. */
function stateOfSent(run: RunLogData, element: ElementRow, step: SentStep['step']): StepState {
  if (isSleeping(run, element)) return 'STEP_PROGRESS'
  return isCutShort(run, element, step) ? 'STEP_CANCELED' : 'STEP_SUCCESS'
}

/**
 * Whether a sleep did not end before its run did. If a later step follows, an undo has ended the sleep early. In a parallel
 * branch the plan sleeps, and the step itself arrives after the sleep.
 */
function isCutShort(
  { state, stoppedAt, elements }: RunLogData,
  { position, created_at }: ElementRow,
  step: SentStep['step'],
): boolean {
  if (stoppedAt === null || state === 'RUN_SUCCESS' || Number(step.concurrent) > 1) return false
  return elements.at(-1)?.position === position && (endOfSleep(step, created_at) ?? 0) > stoppedAt
}

/** Whether an element is a sleep that has not ended: its message is pending until then. */
function isSleeping({ pendingOf, now }: RunLogData, element: ElementRow): boolean {
  const message = pendingOf.get(element.message_id)
  return message !== undefined && message.retried === 0 && message.next_at > now
}

/** Steps that have started but have no element yet: calls, waits and invocations. */
async function openSteps(run: RunLogData, failed: FailedStep | undefined): Promise<StepView[]> {
  return [...(await openCalls(run, failed)), ...(await openWaits(run)), ...openInvocations(run)]
}

function openCalls(run: RunLogData, failed: FailedStep | undefined): Promise<StepView[]> {
  const done = new Set(run.sent.map(({ step }) => step.stepId))
  const open = run.elements.filter((element) => element.kind === 'toCallback' && !done.has(stepIdOfCall(element)))
  return mapInSlices(open, (element) => ({
    stepId: stepIdOfCall(element),
    stepName: callHeader(element, 'stepname'),
    stepType: 'Call',
    callType: 'toCallback',
    messageId: element.message_id,
    concurrent: Number(callHeader(element, 'concurrent') ?? 1),
    createdAt: element.created_at,
    state: openState(run, failed, { messageId: element.message_id, stepId: stepIdOfCall(element) }),
    ...deliveryFields(run, element),
    ...callRequest(run, element),
  }))
}

function openWaits(run: RunLogData): Promise<StepView[]> {
  return mapInSlices(run.waits, (wait): StepView => {
    const { step } = storedWait(wait.wait)
    return {
      ...step,
      callType: 'step',
      messageId: wait.message_id,
      createdAt: wait.created_at,
      state: 'STEP_PROGRESS',
      // An SDK that repeats its settings sent them with the wait.
      ...deliveryFields(run, { meta: wait.wait }),
      waitEventId: wait.event_id,
      ...waitTimes(wait.created_at, wait.deadline),
      waitTimeout: false,
    }
  })
}

/** Shows each invoked run as the step that its end completes, even if this run has ended before. */
function openInvocations(run: RunLogData): StepView[] {
  return run.invoked
    .filter(({ state }) => state === 'RUN_STARTED' || run.state !== 'RUN_STARTED')
    .map((child) => {
      const { step, messageId } = linkOf(child)
      const { targetStep: _, ...shown } = step
      return {
        ...shown,
        callType: 'step',
        messageId,
        createdAt: child.created_at,
        state: invocationState(run.state, child.state),
        ...deliveryFields(run, { meta: null }),
        ...invokedRunFields(run, child),
      }
    })
}

/** An invoked run may outlive this run: then its end decides the state of the step. */
function invocationState(own: RunState, invoked: RunState): StepState {
  if (own === 'RUN_CANCELED') return 'STEP_CANCELED'
  if (invoked === 'RUN_STARTED') return 'STEP_PROGRESS'
  return invoked === 'RUN_SUCCESS' ? 'STEP_SUCCESS' : 'STEP_CANCELED'
}

interface OpenStep {
  readonly messageId: string
  readonly stepId: number
}

/** When a run fails, its other open steps count as cancelled. */
function openState(
  { state, pendingOf }: RunLogData,
  failed: FailedStep | undefined,
  { messageId, stepId }: OpenStep,
): StepState {
  if (state === 'RUN_FAILED' && stepId === failed?.stepId) return 'STEP_FAILED'
  if (state === 'RUN_CANCELED' || state === 'RUN_FAILED') return 'STEP_CANCELED'
  const message = pendingOf.get(messageId)
  return message && message.retried > 0 ? 'STEP_RETRY' : 'STEP_PROGRESS'
}

/** Deliveries in flight or waiting for a retry. */
async function nextSteps(run: RunLogData, errors: readonly AttemptError[] | undefined): Promise<StepView[]> {
  const asleep = new Set(run.elements.filter((element) => isSleeping(run, element)).map(({ message_id }) => message_id))
  const waiting = new Set(run.waits.map(({ message_id }) => message_id))
  if (run.state === 'RUN_CANCELED') {
    const last = run.elements.at(-1)
    const { retries } = last ? deliveryFields(run, last) : {}
    return [{ messageId: last?.message_id, state: 'STEP_CANCELED', retries, ...(errors && { errors }) }]
  }
  if (run.state !== 'RUN_STARTED') return []
  const next = run.pending.filter(({ message_id }) => !asleep.has(message_id) && !waiting.has(message_id))
  return mapInSlices(next, (message) => pendingView(run, message))
}

function pendingView(run: RunLogData, message: PendingStep): StepView {
  const errors = (run.attemptsOf.get(message.seq) ?? []).map((one) => attemptError(one, run.trimTo))
  const name = errors.at(-1)?.headers['Upstash-Error-Step-Name']?.[0]
  const { retryDelay } = asObject(parseText(message.config)) ?? {}
  return {
    messageId: message.message_id,
    state: message.retried > 0 ? 'STEP_RETRY' : 'STEP_PROGRESS',
    retries: message.max_retries,
    ...(typeof retryDelay === 'string' && { retryDelay }),
    ...(name !== undefined && { stepName: name }),
    ...(errors.length > 0 && { errors, nextDeliveryTime: message.next_at }),
  }
}
