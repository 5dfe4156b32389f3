import { newId } from '../../../base/index.js'
import type { PublishItem } from '../../../queue/index.js'
import { type ListedStep, type Program, randomProgram, type StepKind } from './program.js'
import type { Random } from './random.js'

/** What programs and those who trigger them send to the server. */

/** Where all simulated programs live, and a third party that they call. */
export const PROGRAM_URL = 'http://program.test/w'
const THIRD_PARTY_URL = 'http://third-party.test/'

/** How long programs sleep, and how long they wait for events. */
export const SLEEP_MS = 60_000
export const WAIT_MS = 3_600_000

const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig'

type Headers = Readonly<Record<string, string>>

/** JSON as it travels. */
export const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

/** Headers of everything that a program sends for its run. */
function headersOf(runId: string, more: Headers = {}): Record<string, string> {
  return {
    'content-type': 'application/json',
    'upstash-feature-set': FEATURES,
    'upstash-workflow-sdk-version': '1',
    'upstash-workflow-init': 'false',
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': PROGRAM_URL,
    ...more,
  }
}

/** What a program gets when it is started: itself, and how many programs have invoked each other down to it. */
export interface Payload {
  readonly program: Program
  readonly depth: number
}

/** The item that triggers a run of a program. */
export function triggerItem(runId: string, program: Program, settings: Headers): PublishItem {
  const more = { 'upstash-workflow-init': 'true', ...failureCallback(runId), ...settings }
  return { destination: PROGRAM_URL, headers: headersOf(runId, more), body: json({ program, depth: 0 }) }
}

/** How the SDK asks for the call of a failure function. */
function failureCallback(runId: string): Record<string, string> {
  return {
    'upstash-failure-callback': PROGRAM_URL,
    'upstash-failure-callback-forward-upstash-workflow-is-failure': 'true',
    'upstash-failure-callback-forward-upstash-workflow-failure-callback': 'true',
    'upstash-failure-callback-workflow-runid': runId,
    'upstash-failure-callback-retries': '1',
  }
}

const ASLEEP: Headers = { 'upstash-delay': `${SLEEP_MS / 1_000}s` }

/** The plan of a branch. */
export function planItem(runId: string, step: StepKind, targetStep: number, concurrent: number): PublishItem {
  const delay = step === 'sleep' ? ASLEEP : {}
  return stepItem(runId, { stepId: 0, targetStep, stepType: step, concurrent }, delay)
}

/** The result of a step. */
export function stepItem(runId: string, step: ListedStep, more: Headers = {}): PublishItem {
  return { destination: PROGRAM_URL, headers: headersOf(runId, more), body: json({ stepName: 's', ...step }) }
}

/** A sleep that is not one of several branches: those have slept with their plans. */
export function sleepItem(runId: string, step: ListedStep): PublishItem {
  return stepItem(runId, step, step.concurrent === 1 ? ASLEEP : {})
}

/** A call of a third party. */
export function callItem(runId: string, stepId: number): PublishItem {
  const more = {
    'upstash-workflow-calltype': 'toCallback',
    'upstash-retries': '1',
    'upstash-callback': PROGRAM_URL,
    'upstash-callback-workflow-runid': runId,
    'upstash-callback-forward-upstash-workflow-callback': 'true',
    'upstash-callback-forward-upstash-workflow-stepid': String(stepId),
  }
  return { destination: THIRD_PARTY_URL, headers: headersOf(runId, more), body: undefined }
}

/** What an invocation is made of. */
export interface Invocation {
  readonly random: Random
  readonly now: number
  readonly runId: string
  readonly step: object
  readonly depth: number
}

/** The invocation of another program. */
export function invokeItem({ random, now, runId, step, depth }: Invocation): PublishItem {
  const child = newId('wfr_', now)
  const callback = random.chance(0.5) ? failureCallback(child) : {}
  const more = {
    'upstash-workflow-init': 'true',
    'upstash-workflow-invoke': 'true',
    'upstash-retries': '1',
    ...callback,
  }
  const body = JSON.stringify({ program: randomProgram(random, depth), depth } satisfies Payload)
  return {
    destination: PROGRAM_URL,
    headers: headersOf(child, more),
    body: json({ body, workflowRunId: runId, workflowRunCreatedAt: 0, workflowUrl: PROGRAM_URL, step }),
  }
}
