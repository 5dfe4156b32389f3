import { newId } from '../../../base/index.js'
import type { Random } from '../../../base/testing/random.js'
import { HomeportError } from '../../../contract/errors/errors.js'
import type { Outbound, PendingMessage, Publisher, PublishItem } from '../../../queue/index.js'
import type { PendingRow } from '../../../queue/transactions/messages.js'
import type { Store } from '../../../store/index.js'
import type { RunIntake } from '../../runs/intake.js'
import * as runsFinish from '../../transactions/runs-finish.js'
import * as runsRead from '../../transactions/runs-read.js'
import * as runsWait from '../../transactions/runs-wait.js'
import {
  callItem,
  invokeItem,
  type ListedStep,
  type Move,
  moveOf,
  type Payload,
  PROGRAM_URL,
  planItem,
  SLEEP_MS,
  sleepItem,
  stepItem,
  triggerItem,
  WAIT_MS,
} from './program.js'

/** Collaborators of the simulated endpoint. */
export interface EndpointDeps {
  readonly store: Store
  readonly intake: RunIntake
  readonly publisher: Publisher
  readonly random: Random
  readonly now: () => number
  readonly offer: (rows: readonly PendingRow[]) => void
  readonly observer: Observer
}

/** Receives everything that programs observe and do. */
export interface Observer {
  /** The server has acknowledged the element of this message. */
  accepted(runId: string, messageId: string): void
  /** The message must not be delivered before this time. */
  asleep(messageId: string, until: number): void
  waiting(runId: string, wait: { messageId: string; eventId: string; since: number; until: number }): void
  finished(runId: string, runSeq: number, results: string): void
  /** The program has cancelled its own run. */
  cancelledItself(runId: string): Promise<void>
  /** The failure function received this payload. */
  failed(runId: string, payload: string): void
  delivered(runId: string, messageId: string, list: readonly string[]): void
  /** The server does not know the run. */
  unknown(runId: string): Promise<void>
}

const one = (outbound: Outbound, name: string): string => outbound.headers[name]?.[0] ?? ''

/** Acts like an SDK on a delivery; like an SDK, it ignores refusals of steps for ended runs. */
export async function answer(deps: EndpointDeps, message: PendingMessage, outbound: Outbound): Promise<void> {
  if (outbound.url !== PROGRAM_URL) return
  const runId = one(outbound, 'Upstash-Workflow-Runid')
  try {
    await answerAs(deps, runId, message, outbound)
  } catch (error) {
    if (!(error instanceof HomeportError)) throw error
    if (error.code === 'run_unknown') return deps.observer.unknown(runId)
    if (error.code !== 'run_ended') throw error
  }
}

function answerAs(deps: EndpointDeps, runId: string, message: PendingMessage, outbound: Outbound): Promise<void> {
  if (message.kind === 'http') return begin(deps, outbound)
  if (one(outbound, 'Upstash-Workflow-Failure-Callback') === 'true') return answerFailure(deps, runId, outbound)
  if (one(outbound, 'Upstash-Workflow-Callback') === 'true') return answerResult(deps, runId, outbound)
  return answerList(deps, runId, message, outbound)
}

/** Handles a plain message, such as of a schedule: the program starts a run with its payload (reference workflow 4.4). */
async function begin(deps: EndpointDeps, { body }: Outbound): Promise<void> {
  const runId = newId('wfr_', deps.now())
  const { program } = JSON.parse(new TextDecoder().decode(body)) as Payload
  const settings = { 'upstash-retries': '1', 'homeport-priority': deps.random.chance(0.3) ? '60' : '0' }
  await submit(deps, runId, [triggerItem(runId, program, settings)])
}

interface RawElement {
  readonly messageId: string
  readonly body: string
}

async function answerList(deps: EndpointDeps, runId: string, message: PendingMessage, outbound: Outbound) {
  const raw = outbound.body ? (JSON.parse(new TextDecoder().decode(outbound.body)) as RawElement[]) : undefined
  const list = raw ?? (await fetchList(deps, runId, message.messageId))
  if (!list) return
  const ids = list.map(({ messageId }) => messageId)
  deps.observer.delivered(runId, message.messageId, ids)
  const [payload, ...steps] = list.map(({ body }) => JSON.parse(Buffer.from(body, 'base64').toString()))
  // Written by `triggerItem` and `execute`.
  const { program, depth } = payload as Payload
  await perform(deps, runId, moveOf(program, steps as ListedStep[]), depth)
}

/** Fetches a list that was too large to be sent; `undefined` if the run has ended. */
async function fetchList(deps: EndpointDeps, runId: string, upTo: string): Promise<RawElement[] | undefined> {
  const { accountId } = deps.publisher.caller
  const found = await deps.store.run(runsRead.withElements, { accountId, runId })
  if (found?.run.state !== 'RUN_STARTED') return undefined
  const steps = found.elements.filter(({ kind }) => kind === 'step')
  const end = steps.findIndex(({ message_id }) => message_id === upTo)
  if (end < 0) throw new Error(`the list of ${runId} lacks ${upTo}, which was delivered`)
  return steps.slice(0, end + 1).map(({ message_id: messageId, body }) => {
    return { messageId, body: Buffer.from(body).toString('base64') }
  })
}

async function answerFailure(deps: EndpointDeps, runId: string, { body }: Outbound): Promise<void> {
  const { sourceBody, workflowRunId } = JSON.parse(new TextDecoder().decode(body))
  if (workflowRunId !== runId)
    throw new Error(`the failure function of ${runId} received a failure of ${workflowRunId}`)
  deps.observer.failed(runId, Buffer.from(sourceBody, 'base64').toString())
}

async function answerResult(deps: EndpointDeps, runId: string, outbound: Outbound): Promise<void> {
  const step = { stepId: Number(one(outbound, 'Upstash-Workflow-Stepid')), stepType: 'Call', out: 'called' }
  await submit(deps, runId, [stepItem(runId, step)])
}

async function perform(deps: EndpointDeps, runId: string, move: Move, depth: number): Promise<void> {
  switch (move.kind) {
    case 'nothing':
      return
    case 'plan': {
      const { block, firstId } = move
      const items = block.map((step, index) =>
        planItem(runId, step, { targetStep: firstId + index, concurrent: block.length }),
      )
      return submit(deps, runId, items)
    }
    case 'do':
      return execute(deps, runId, move, depth)
    case 'finish':
      return finish(deps, runId, JSON.stringify(move.results))
  }
}

async function execute(
  deps: EndpointDeps,
  runId: string,
  { step, stepId, concurrent }: Move & { kind: 'do' },
  depth: number,
): Promise<void> {
  const { intake, publisher, random } = deps
  const shared = { stepId, stepName: 's', concurrent }
  switch (step) {
    case 'run':
      // Every execution of a step has a different result.
      return submit(deps, runId, [
        stepItem(runId, { ...shared, stepType: 'Run', out: `${stepId}#${random.below(1e9)}` }),
      ])
    case 'sleep':
      return submit(deps, runId, [sleepItem(runId, { ...shared, stepType: 'SleepFor' })])
    case 'wait':
      return waitFor(deps, runId, { ...shared, stepType: 'Wait' })
    case 'call':
      return void (await intake.submit(publisher, [callItem(runId, stepId)]))
    case 'invoke': {
      const invocation = { random, now: deps.now(), runId, step: { ...shared, stepType: 'Invoke' }, depth: depth + 1 }
      return void (await intake.submit(publisher, [invokeItem(invocation)]))
    }
    case 'cancel':
      return deps.observer.cancelledItself(runId)
  }
}

async function submit(deps: EndpointDeps, runId: string, items: readonly PublishItem[]): Promise<void> {
  const replies = await deps.intake.submit(deps.publisher, items)
  for (const [index, reply] of replies.entries()) {
    if (!('messageId' in reply)) continue
    deps.observer.accepted(runId, reply.messageId)
    const sleeps = items[index]?.headers['upstash-delay'] !== undefined
    if (sleeps) deps.observer.asleep(reply.messageId, deps.now() + SLEEP_MS)
  }
}

async function waitFor(deps: EndpointDeps, runId: string, step: ListedStep): Promise<void> {
  const { accountId } = deps.publisher.caller
  // A repeated delivery sends the same request.
  const [since, messageId, eventId] = [deps.now(), newId('msg_', deps.now()), `event-${step.stepId % 3}`]
  const until = since + WAIT_MS
  const record = { step: { ...step }, url: PROGRAM_URL, timeoutUrl: PROGRAM_URL, headers: {} }
  const args = { accountId, runId, eventId, messageId, record, deadline: until, at: since }
  const result = await deps.store.run(runsWait.wait, args)
  if (result.kind !== 'waiting' && result.kind !== 'notified') return
  deps.observer.waiting(runId, { messageId, eventId, since, until })
  deps.offer(result.offers)
}

async function finish(deps: EndpointDeps, runId: string, response: string): Promise<void> {
  const { accountId } = deps.publisher.caller
  const result = await deps.store.run(runsFinish.finishRun, { accountId, runId, response, at: deps.now() })
  if (result.kind !== 'finished') return
  deps.observer.finished(runId, result.runSeq, response)
  deps.offer(result.offers)
}
