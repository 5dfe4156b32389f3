import type { Static } from 'typebox'
import type { RunEvent, RunLog } from '../../contract/workflow/runs.js'

type Log = Static<typeof RunLog>
type Step = Log['steps'][number]['steps'][number]

/** Something that has happened to a run. */
export type FlatEvent = Static<typeof RunEvent>

/** What has happened to runs, run by run in the given order, the newest of each first (reference workflow 4.14). */
export function flatEvents(runs: readonly Log[]): FlatEvent[] {
  return runs.flatMap((run) => eventsOf(run).sort((a, b) => b.time - a.time))
}

function eventsOf(run: Log): FlatEvent[] {
  const { workflowRunId, workflowUrl, workflowRunCreatedAt: workflowCreatedAt, workflowRunCompletedAt } = run
  const name = { workflowRunId, workflowUrl, workflowCreatedAt }
  const began: FlatEvent = { ...name, time: workflowCreatedAt, state: 'RUN_STARTED' }
  const steps = run.steps.flatMap(({ type, steps }) => steps.flatMap((step) => stepEvents(step, type, run)))
  const ended: FlatEvent[] =
    workflowRunCompletedAt === undefined ? [] : [{ ...name, time: workflowRunCompletedAt, state: run.workflowState }]
  // The end last: sorting is stable, and many of these happen in one millisecond.
  return [began, ...steps.map((event) => ({ ...name, ...event })), ...ended].reverse()
}

type StepEvent = Omit<FlatEvent, 'workflowRunId' | 'workflowUrl' | 'workflowCreatedAt'>

function stepEvents(step: Step, group: string, run: Log): StepEvent[] {
  const { errors = [], messageId, nextDeliveryTime, ...stepInfo } = step
  const of = messageId === undefined ? {} : { messageId }
  const failures = errors.map(
    ({ time, status, error }): StepEvent => ({
      ...of,
      time,
      state: 'STEP_RETRY',
      responseStatus: status,
      ...(error !== undefined && { error }),
      ...(nextDeliveryTime !== undefined && { nextDeliveryTime }),
    }),
  )
  const time = step.createdAt ?? run.workflowRunCompletedAt ?? run.workflowRunCreatedAt
  // What is being delivered has no time of its own: its failed attempts tell what happened.
  const own: StepEvent[] =
    group === 'next' && errors.length > 0 ? [] : [{ ...of, time, state: stateOf(step), stepInfo }]
  return [...own, ...failures]
}

/** Waits and invocations that go on have names of their own. */
function stateOf(step: Step): FlatEvent['state'] {
  if (step.state === 'STEP_PROGRESS' && step.waitEventId !== undefined) return 'WAITER_ADDED'
  if (step.state === 'STEP_PROGRESS' && step.invokedWorkflowRunId !== undefined) return 'INVOKED'
  return step.state ?? 'STEP_PROGRESS'
}
