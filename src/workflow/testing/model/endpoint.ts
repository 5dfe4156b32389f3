import { newId } from '../../../base/index.js'
import { HomeportError } from '../../../contract/errors.js'
import type { Outbound, PendingMessage, Publisher, PublishItem } from '../../../queue/index.js'
import { operations, type Store } from '../../../store/index.js'
import type { PendingRow } from '../../../store/operations/messages.js'
import type { RunIntake } from '../../intake.js'
import type { RecentLists } from '../../recent-lists.js'
import { type ListedStep, type Move, moveOf, type Program, randomProgram, type StepKind } from './program.js'
import type { Random } from './random.js'

/** Where all simulated programs live, and a third party that they call. */
export const PROGRAM_URL = 'http://program.test/w'
export const THIRD_PARTY_URL = 'http://third-party.test/'

const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig'

/** What the simulated endpoint works with. */
export interface EndpointDeps {
  readonly store: Store
  readonly intake: RunIntake
  readonly lists: RecentLists
  readonly publisher: Publisher
  readonly random: Random
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[]) => void
  /** The server has acknowledged that this message of the run is in its list. */
  readonly accepted: (runId: string, messageId: string) => void
  readonly waiting: (runId: string, messageId: string) => void
  readonly finished: (runId: string, results: string) => void
  /** The program of the run has canceled it. */
  readonly canceledItself: (runId: string) => Promise<void>
  /** The failure function of the run was called with this payload. */
  readonly failed: (runId: string, payload: string) => void
  readonly delivered: (runId: string, messageId: string, list: readonly string[]) => void
}

const one = (outbound: Outbound, name: string): string => outbound.headers[name]?.[0] ?? ''
const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

/** Headers of everything that a program sends for its run. */
function headersOf(runId: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
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
interface Payload {
  readonly program: Program
  readonly depth: number
}

/** The item that triggers a run of a program. */
export function triggerItem(runId: string, program: Program, retries: number): PublishItem {
  const more = { 'upstash-workflow-init': 'true', 'upstash-retries': String(retries), ...failureCallback(runId) }
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

/** Does what an SDK does on a delivery. Refused steps of ended runs are passed over, as an SDK does. */
export async function answer(deps: EndpointDeps, message: PendingMessage, outbound: Outbound): Promise<void> {
  if (outbound.url !== PROGRAM_URL) return
  const runId = one(outbound, 'Upstash-Workflow-Runid')
  try {
    if (one(outbound, 'Upstash-Workflow-Failure-Callback') === 'true') return answerFailure(deps, runId, outbound)
    if (one(outbound, 'Upstash-Workflow-Callback') === 'true') return await answerResult(deps, runId, outbound)
    if (one(outbound, 'Upstash-Workflow-Sdk-Version') !== '1') return
    await answerList(deps, runId, message, outbound)
  } catch (error) {
    if (!(error instanceof HomeportError) || error.code !== 'run_ended') throw error
  }
}

async function answerList(deps: EndpointDeps, runId: string, message: PendingMessage, outbound: Outbound) {
  const raw = JSON.parse(new TextDecoder().decode(outbound.body)) as { messageId: string; body: string }[]
  deps.delivered(
    runId,
    message.messageId,
    raw.map(({ messageId }) => messageId),
  )
  const [payload, ...steps] = raw.map(({ body }) => JSON.parse(Buffer.from(body, 'base64').toString()))
  // Written by `triggerItem` and by `make` below.
  const { program, depth } = payload as Payload
  await perform(deps, runId, moveOf(program, steps as ListedStep[]), depth)
}

function answerFailure(deps: EndpointDeps, runId: string, { body }: Outbound): void {
  const { sourceBody, workflowRunId } = JSON.parse(new TextDecoder().decode(body))
  if (workflowRunId !== runId) throw new Error(`the failure function of ${runId} was told of ${workflowRunId}`)
  deps.failed(runId, Buffer.from(sourceBody, 'base64').toString())
}

async function answerResult(deps: EndpointDeps, runId: string, outbound: Outbound): Promise<void> {
  const step = { stepId: Number(one(outbound, 'Upstash-Workflow-Stepid')), stepType: 'Call', out: 'called' }
  await submit(deps, runId, [stepItem(runId, step)])
}

async function perform(deps: EndpointDeps, runId: string, move: Move, depth: number): Promise<void> {
  switch (move.kind) {
    case 'nothing':
      return
    case 'plan':
      return submit(
        deps,
        runId,
        move.block.map((step, index) => planItem(runId, step, move.firstId + index, move.block.length)),
      )
    case 'do':
      return make(deps, runId, move, depth)
    case 'finish':
      return finish(deps, runId, JSON.stringify(move.results))
  }
}

function planItem(runId: string, step: StepKind, targetStep: number, concurrent: number): PublishItem {
  const delay: Record<string, string> = step === 'sleep' ? { 'upstash-delay': '60s' } : {}
  return stepItem(runId, { stepId: 0, targetStep, stepType: step, concurrent }, delay)
}

function stepItem(runId: string, step: ListedStep, more: Readonly<Record<string, string>> = {}): PublishItem {
  return { destination: PROGRAM_URL, headers: headersOf(runId, more), body: json({ stepName: 's', ...step }) }
}

async function make(
  deps: EndpointDeps,
  runId: string,
  { step, stepId, concurrent }: Move & { kind: 'do' },
  depth: number,
): Promise<void> {
  const shared = { stepId, stepName: 's', concurrent }
  switch (step) {
    case 'run':
      // No two executions of a step come to the same.
      return submit(deps, runId, [
        stepItem(runId, { ...shared, stepType: 'Run', out: `${stepId}#${deps.random.below(1e9)}` }),
      ])
    case 'sleep': {
      const delay: Record<string, string> = concurrent === 1 ? { 'upstash-delay': '60s' } : {}
      return submit(deps, runId, [stepItem(runId, { ...shared, stepType: 'SleepFor' }, delay)])
    }
    case 'wait':
      return waitFor(deps, runId, { ...shared, stepType: 'Wait' })
    case 'call':
      return void (await deps.intake.submit(deps.publisher, [callItem(runId, stepId)]))
    case 'invoke':
      return void (await deps.intake.submit(deps.publisher, [
        invokeItem(deps, runId, { ...shared, stepType: 'Invoke' }, depth + 1),
      ]))
    case 'cancel':
      return deps.canceledItself(runId)
  }
}

function callItem(runId: string, stepId: number): PublishItem {
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

function invokeItem(deps: EndpointDeps, runId: string, step: object, depth: number): PublishItem {
  const child = newId('wfr_', deps.now())
  const callback = deps.random.chance(0.5) ? failureCallback(child) : {}
  const more = {
    'upstash-workflow-init': 'true',
    'upstash-workflow-invoke': 'true',
    'upstash-retries': '1',
    ...callback,
  }
  const body = JSON.stringify({ program: randomProgram(deps.random, depth), depth } satisfies Payload)
  return {
    destination: PROGRAM_URL,
    headers: headersOf(child, more),
    body: json({ body, workflowRunId: runId, workflowRunCreatedAt: 0, workflowUrl: PROGRAM_URL, step }),
  }
}

async function submit(deps: EndpointDeps, runId: string, items: readonly PublishItem[]): Promise<void> {
  for (const reply of await deps.intake.submit(deps.publisher, items)) {
    if ('messageId' in reply) deps.accepted(runId, reply.messageId)
  }
}

async function waitFor(deps: EndpointDeps, runId: string, step: ListedStep): Promise<void> {
  const { accountId } = deps.publisher.caller
  // A program asks again for the very same.
  const [at, messageId, eventId] = [deps.now(), newId('msg_', deps.now()), `event-${step.stepId % 3}`]
  const record = { step: { ...step }, url: PROGRAM_URL, timeoutUrl: PROGRAM_URL, headers: {} }
  const args = { accountId, runId, eventId, messageId, record, deadline: at + 3_600_000, at }
  const result = await deps.store.run(operations.runs.wait, args)
  if (result.kind !== 'waiting' && result.kind !== 'noticed') return
  deps.waiting(runId, messageId)
  deps.offer(result.offers)
}

async function finish(deps: EndpointDeps, runId: string, response: string): Promise<void> {
  const { accountId } = deps.publisher.caller
  const result = await deps.store.run(operations.runs.finishRun, { accountId, runId, response, at: deps.now() })
  if (result.kind !== 'finished') return
  deps.lists.forget(result.runSeq)
  deps.finished(runId, response)
  deps.offer(result.offers)
}
