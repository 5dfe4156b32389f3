/** Texts for the states of runs and steps, and for the reasons to wait. */
import type { Static } from 'typebox'
import { ISO_TIME } from '../../../../src/contract/words/figures.js'
import * as words from '../../../../src/contract/words/states.js'
import type { Because } from '../../../../src/contract/workflow/because.js'
import type { RunLog, RunStep, STEP_PHASES } from '../../../../src/contract/workflow/runs.js'
import { dateTime } from '../../lib/format.js'
import { type StateTitle, titlesOf } from '../../lib/states.js'

/** A run with its steps. */
export type Run = Static<typeof RunLog>

/** A step as the log of its run shows it. */
export type Step = Static<typeof RunStep>

/** Why a run waits. */
export type Reason = Static<typeof Because>

/** A phase of the time of a step. */
export type Phase = (typeof STEP_PHASES)[number]

/** The phases of a step. */
export const PHASE_WORDS: Readonly<Record<Phase, string>> = {
  'flow-control': 'Flow control',
  line: 'In line',
  endpoint: 'Endpoint',
  call: 'Called URL',
  'back-off': 'Retry back-off',
  overhead: 'Homeport',
}

/** The state of a step. */
export type StepState = NonNullable<Step['state']>

/** The states of runs. */
export const RUN_WORDS = titlesOf(words.RUN_WORDS)

/** The states of steps. */
export const STEP_WORDS = titlesOf(words.STEP_WORDS)

/** The states of the call of a failure function. */
export const FAILURE_WORDS = titlesOf(words.FAILURE_WORDS)

/** The text of a reason: what it is, and what to do. */
export interface Advice extends StateTitle {
  readonly advice: string
}

/** What to do, for each kind of reason. */
const ADVICES: Readonly<Record<Reason['kind'], string>> = {
  paused: 'Nothing of the run is sent until it is resumed.',
  event: 'The run continues when the event is sent or the wait times out.',
  'bulk-cancel': 'The run stays active until the bulk action cancels it. Resume, speed up or abort that action.',
  webhook: 'The run continues when its webhook URL is called or the wait times out.',
  debounced: 'The run starts at the given time, unless a newer trigger with its debounce key replaces it.',
  'invoked-run': 'The run continues when the invoked run ends. Open that run to see what it waits for.',
  delayed: 'The run starts after its delay.',
  sleeping: 'The run continues at the end of the sleep.',
  retry:
    'The endpoint responded with an error or not at all. Fix it before the retries are used up; the attempts are below.',
  'in-flight': 'The endpoint has the request but has not responded yet. If that takes too long, check the endpoint.',
  'flow-control': 'The limits of its flow-control key delay it. Raise them, or resume the key if it is paused.',
  queued: 'The delivery is due, and others are ahead of it in line.',
  'discarded-branch': 'The endpoint returned no result for its parallel branches. Cancel the run and fix the workflow.',
  'no-step': 'The endpoint returned no further step. Cancel the run and fix the workflow.',
}

/** The texts of each kind of reason. */
export const ADVICE = Object.fromEntries(
  Object.entries(titlesOf(words.WAIT_WORDS)).map(([kind, title]) => [
    kind,
    { ...title, advice: ADVICES[kind as Reason['kind']] },
  ]),
) as Readonly<Record<Reason['kind'], Advice>>

/** The type of a step. */
export function typeOf({ stepType, stepName, waitEventId, invokedWorkflowRunId }: Step): string {
  if (stepType === undefined) return stepName === undefined ? 'Delivery' : 'Step'
  if (stepType === 'Initial') return 'Trigger'
  if (waitEventId !== undefined) return 'Wait'
  if (invokedWorkflowRunId !== undefined) return 'Invoke'
  return TYPES[stepType] ?? stepType
}

const TYPES: Readonly<Record<string, string>> = {
  Run: 'Run',
  SleepFor: 'Sleep',
  SleepUntil: 'Sleep',
  Call: 'Call',
  Wait: 'Wait',
  Notify: 'Notify',
  Invoke: 'Invoke',
  CreateWebhook: 'Webhook',
  WaitForWebhook: 'Wait',
}

/** A text of the server with local times. */
export const withLocalTimes = (text: string): string => text.replaceAll(ISO_TIME, (time) => dateTime(Date.parse(time)))

/** A text of the server as a sentence, with local times. */
export function sentence(text: string): string {
  const local = withLocalTimes(text)
  return `${local.charAt(0).toUpperCase()}${local.slice(1)}.`
}

/** How long a run took, or has been active, milliseconds. */
export const lastedMs = ({ workflowRunCreatedAt, workflowRunCompletedAt }: Run, nowMs: number): number =>
  Math.max(0, (workflowRunCompletedAt ?? nowMs) - workflowRunCreatedAt)
