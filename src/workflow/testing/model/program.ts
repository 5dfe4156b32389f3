import { newId } from '../../../base/index.js'
import type { Random } from '../../../base/testing/random.js'
import type { Publisher, PublishItem } from '../../../queue/index.js'
import type { Store } from '../../../store/index.js'
import { wrappedStore } from '../../../store/testing/wrapped-store.js'

/**
 * Programs of simulated endpoints. A program is data in the payload, so every delivery can be answered from the delivered
 * list alone, like an SDK does.
 */

/** One step of a program. */
export type StepKind = 'run' | 'sleep' | 'wait' | 'call' | 'invoke' | 'cancel'

/** Steps that run in parallel; a block of one is a sequential step. */
export type Block = readonly StepKind[]

/** The blocks of an endpoint, in order. */
export type Program = readonly Block[]

/** A step in a list. */
export interface ListedStep {
  readonly stepId: number
  readonly targetStep?: number
  readonly stepType: string
  readonly concurrent?: number
  readonly out?: string
}

/** The action of an endpoint on a delivery. */
export type Move =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'plan'; readonly firstId: number; readonly block: Block }
  | { readonly kind: 'do'; readonly step: StepKind; readonly stepId: number; readonly concurrent: number }
  | { readonly kind: 'finish'; readonly results: readonly (string | null)[] }

/** Limit of nested invocations. */
const MAX_DEPTH = 3

/** A random program of steps of these kinds. */
export function programOf(random: Random, step: () => StepKind): Program {
  return Array.from({ length: 1 + random.below(3) }, () =>
    Array.from({ length: random.chance(0.4) ? 2 + random.below(2) : 1 }, step),
  )
}

/** Generates a program. @param depth number of invocations above it. */
export function randomProgram(random: Random, depth = 0): Program {
  const kinds: StepKind[] = ['run', 'run', 'sleep', 'wait', 'call', ...(depth < MAX_DEPTH ? (['invoke'] as const) : [])]
  const step = (): StepKind => (random.chance(0.02) ? 'cancel' : (random.pick(kinds) ?? 'run'))
  return programOf(random, step)
}

/** The action of a program for this list (reference workflow 4.5 to 4.7). */
export function moveOf(program: Program, list: readonly ListedStep[]): Move {
  const last = list.at(-1)
  if (last && repeats(list.slice(0, -1), last)) return { kind: 'nothing' }
  if (last?.targetStep !== undefined) return branchMove(program, last.targetStep)
  const results = firstResults(list)
  let firstId = 1
  for (const block of program) {
    const ids = block.map((_, index) => firstId + index)
    const move = moveInBlock(block, firstId, ids, list, results)
    if (move) return move
    firstId += block.length
  }
  return { kind: 'finish', results: [...results.keys()].sort((a, b) => a - b).map((id) => results.get(id) ?? null) }
}

function moveInBlock(
  block: Block,
  firstId: number,
  ids: readonly number[],
  list: readonly ListedStep[],
  results: ReadonlyMap<number, string | undefined>,
): Move | undefined {
  if (ids.every((id) => results.has(id))) return undefined
  const [step] = block
  if (block.length === 1 && step) return { kind: 'do', step, stepId: firstId, concurrent: 1 }
  const planned = list.some(({ targetStep }) => targetStep === firstId)
  return planned ? { kind: 'nothing' } : { kind: 'plan', firstId, block }
}

function branchMove(program: Program, stepId: number): Move {
  let firstId = 1
  for (const block of program) {
    const step = block[stepId - firstId]
    if (step && stepId >= firstId) return { kind: 'do', step, stepId, concurrent: block.length }
    firstId += block.length
  }
  throw new Error(`the program has no step ${stepId}`)
}

function repeats(before: readonly ListedStep[], last: ListedStep): boolean {
  return before.some(({ stepId, targetStep }) => stepId === last.stepId && targetStep === last.targetStep)
}

/** The first result of every step; later results are ignored. */
export function firstResults(list: readonly ListedStep[]): Map<number, string | undefined> {
  const results = new Map<number, string | undefined>()
  for (const { stepId, targetStep, out } of list) {
    if (targetStep === undefined && !results.has(stepId)) results.set(stepId, out)
  }
  return results
}

/** URLs of all simulated programs, and of a third party that they call. */
export const PROGRAM_URL = 'http://program.test/w'
const THIRD_PARTY_URL = 'http://third-party.test/'

/** Duration of sleeps, and of waits for events. */
export const SLEEP_MS = 60_000
export const WAIT_MS = 3_600_000

const FEATURES = 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig'

type Headers = Readonly<Record<string, string>>

/** Encodes a value as JSON. */
export const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value))

/** Headers of everything that a program sends for its run. */
export function headersOf(runId: string, more: Headers = {}): Record<string, string> {
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

/** Payload of a run: the program, and the number of invocations above it. */
export interface Payload {
  readonly program: Program
  readonly depth: number
}

/** The item that triggers a run of a program. */
export function triggerItem(runId: string, program: Program, settings: Headers): PublishItem {
  const more = { 'upstash-workflow-init': 'true', ...failureCallback(runId), ...settings }
  return { destination: PROGRAM_URL, headers: headersOf(runId, more), body: json({ program, depth: 0 }) }
}

/** The headers by which an SDK requests a failure callback. */
function failureCallback(runId: string): Record<string, string> {
  return {
    'upstash-failure-callback': PROGRAM_URL,
    'upstash-failure-callback-forward-upstash-workflow-is-failure': 'true',
    'upstash-failure-callback-forward-upstash-workflow-failure-callback': 'true',
    'upstash-failure-callback-workflow-runid': runId,
    'upstash-failure-callback-retries': '1',
  }
}

const asleep = (sleepMs: number): Headers => ({ 'upstash-delay': `${sleepMs / 1_000}s` })

/** The item that plans a branch. */
export function planItem(
  runId: string,
  step: StepKind,
  { targetStep, concurrent }: { readonly targetStep: number; readonly concurrent: number },
  sleepMs = SLEEP_MS,
): PublishItem {
  const delay = step === 'sleep' ? asleep(sleepMs) : {}
  return stepItem(runId, { stepId: 0, targetStep, stepType: step, concurrent }, delay)
}

/** The item with the result of a step. */
export function stepItem(runId: string, step: ListedStep, more: Headers = {}): PublishItem {
  return { destination: PROGRAM_URL, headers: headersOf(runId, more), body: json({ stepName: 's', ...step }) }
}

/** The item of a sleep. Only sequential sleeps are delayed here: parallel ones are delayed with their plans. */
export function sleepItem(runId: string, step: ListedStep, sleepMs = SLEEP_MS): PublishItem {
  return stepItem(runId, step, step.concurrent === 1 ? asleep(sleepMs) : {})
}

/** The item that calls a third party. */
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

/** The data of an invocation. */
export interface Invocation {
  readonly random: Random
  readonly now: number
  readonly runId: string
  readonly step: object
  readonly depth: number
}

/** The item that invokes another program. */
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

/** Disables waiting for a shared commit: the simulation is sequential, so no other operation would share it. */
export function withoutCommitDelay(store: Store): Store {
  return wrappedStore(store, (operation, args) => store.run({ ...operation, maxDelayMs: 0 }, args))
}

/** The publisher of all runs of a simulation. */
export function publisherOf(accountId: string): Publisher {
  const caller = {
    accountId,
    email: 'model@example.com',
    accountType: 'paid',
    source: 'QUEUE_TOKEN',
    access: 'write',
    ip: '::1',
  } as const
  return { caller, ip: '::1' }
}
