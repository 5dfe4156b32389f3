/** What the states and reasons of runs mean, and what to do about them. */
import type { Static } from 'typebox'
import type { FAILURE_STATES } from '../../../../src/contract/workflow/dead-letters.js'
import type { Because, RunLog, RunStep } from '../../../../src/contract/workflow/runs.js'
import type { Tone } from '../../components/status.js'
import { dateTime } from '../../lib/format.js'
import type { RunState } from './search.js'

/** A run with its steps. */
export type Run = Static<typeof RunLog>

/** A step as the log of its run shows it. */
export type Step = Static<typeof RunStep>

/** Why a run waits. */
export type Reason = Static<typeof Because>

/** How a step stands. */
export type StepState = NonNullable<Step['state']>

interface Words {
  readonly tone: Tone
  readonly title: string
}

/** The states of runs in words. */
export const RUN_WORDS: Readonly<Record<RunState, Words>> = {
  RUN_STARTED: { tone: 'busy', title: 'Going on' },
  RUN_SUCCESS: { tone: 'ok', title: 'Succeeded' },
  RUN_FAILED: { tone: 'bad', title: 'Failed' },
  RUN_CANCELED: { tone: 'idle', title: 'Cancelled' },
}

/** The states of steps in words. */
export const STEP_WORDS: Readonly<Record<StepState, Words>> = {
  STEP_PROGRESS: { tone: 'busy', title: 'Going on' },
  STEP_SUCCESS: { tone: 'ok', title: 'Done' },
  STEP_RETRY: { tone: 'warn', title: 'Is tried again' },
  STEP_FAILED: { tone: 'bad', title: 'Failed' },
  STEP_CANCELED: { tone: 'idle', title: 'Cancelled' },
}

/** How the call of a failure function stands, in words. */
export const FAILURE_WORDS: Readonly<Record<(typeof FAILURE_STATES)[number], Words>> = {
  CALLBACK_INPROGRESS: { tone: 'busy', title: 'Is being called' },
  CALLBACK_SUCCESS: { tone: 'ok', title: 'Was called' },
  CALLBACK_FAIL: { tone: 'bad', title: 'Has failed as well' },
  CALLBACK_CANCELED: { tone: 'idle', title: 'Was given up' },
}

/** A reason in words for people: what it is, and what to do. */
export interface Advice extends Words {
  readonly advice: string
}

/** What each kind of reason means to a person who looks at the run. */
export const ADVICE: Readonly<Record<Reason['kind'], Advice>> = {
  event: {
    tone: 'idle',
    title: 'Waits for an event',
    advice: 'It goes on when somebody sends the event, or when the wait is given up.',
  },
  'bulk-cancel': {
    tone: 'warn',
    title: 'Is to be cancelled',
    advice: 'It goes on until its turn comes. Resume, speed up or abort the bulk action that is going to cancel it.',
  },
  webhook: {
    tone: 'idle',
    title: 'Waits for a webhook',
    advice: 'It goes on when somebody calls the address that it has made, or when the wait is given up.',
  },
  'invoked-run': {
    tone: 'idle',
    title: 'Waits for another run',
    advice: 'It goes on when the run that it has invoked ends. Look there for what holds it.',
  },
  delayed: { tone: 'idle', title: 'Delayed', advice: 'It was started with a delay. It goes on by itself.' },
  sleeping: { tone: 'idle', title: 'Sleeps', advice: 'Nothing has to be done: it goes on by itself.' },
  retry: {
    tone: 'warn',
    title: 'Waits for a retry',
    advice:
      'The endpoint has refused or did not answer. Mend it before the retries are used up; the attempts are below.',
  },
  'in-flight': {
    tone: 'busy',
    title: 'The endpoint is working',
    advice: 'It has the request and has not answered yet. If that takes too long, look at the endpoint.',
  },
  'flow-control': {
    tone: 'idle',
    title: 'Waits for its turn',
    advice: 'The limits of its flow-control key hold it. Raise them, or let the key go on if it is paused.',
  },
  queued: {
    tone: 'idle',
    title: 'Waits for delivery',
    advice: 'It is due, and other deliveries are before it. It goes on by itself.',
  },
  'discarded-branch': {
    tone: 'bad',
    title: 'Nothing will ever happen',
    advice:
      'The program has answered deliveries of parallel branches without a result. Cancel the run, and mend the program.',
  },
  'no-step': {
    tone: 'bad',
    title: 'Nothing will ever happen',
    advice: 'The program has answered the last delivery without a further step. Cancel the run, and mend the program.',
  },
}

/** What a step is, in words for the line of its type. */
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

const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g

/** A text of the server as a sentence, its times where the reader is. */
export function sentence(text: string): string {
  const local = text.replaceAll(ISO_TIME, (time) => dateTime(Date.parse(time)))
  return `${local.charAt(0).toUpperCase()}${local.slice(1)}.`
}

/** How long a run has taken, or goes on already, milliseconds. */
export const lastedMs = ({ workflowRunCreatedAt, workflowRunCompletedAt }: Run, nowMs: number): number =>
  Math.max(0, (workflowRunCompletedAt ?? nowMs) - workflowRunCreatedAt)
