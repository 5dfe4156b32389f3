import { isError } from '../../../contract/errors/errors.js'
import { publishBatch, publishMessage } from '../../../contract/queue/messages.js'
import { waitForEvent } from '../../../contract/workflow/events.js'
import { endRun } from '../../../contract/workflow/runs.js'
import type { PublishItem } from '../../../queue/index.js'
import { type Clients, NoAnswer } from '../../../queue/testing/nodes/clients.js'
import type { Incoming } from '../../../queue/testing/nodes/simulated-node.js'
import type { Stage } from '../../../queue/testing/nodes/stage.js'
import { STARTS_AT_MS } from '../../../queue/testing/nodes/timeline.js'
import {
  callItem,
  headersOf,
  invokeItem,
  type ListedStep,
  type Move,
  moveOf,
  type Payload,
  PROGRAM_URL,
  planItem,
  sleepItem,
  stepItem,
} from '../../../workflow/testing/model/program.js'
import { RETRY_SETTINGS, type RunLedger, resultsOf, stepIn } from './run-ledger.js'

const SLEEP_MS = 2_000
/** Timeout of a wait for an event. */
const WAIT = '5s'
const NO_BODY = new Uint8Array()
const decoder = new TextDecoder()
/** Depth at which programs invoke no others: that of invoked programs. */
const INVOKED_DEPTH = 3
/** Events that runs wait for. */
export const EVENTS = ['event-0', 'event-1', 'event-2']
/** Errors that an SDK treats as the end of its run. */
const RUN_IS_OVER = ['run_ended', 'run_not_found'] as const
/** Errors after which an SDK answers with a failure and receives the list again. */
const NOT_NOW = ['store_unavailable', 'store_outcome_unknown', 'starting'] as const

/** Whether an error is what clients must expect while the store or a node is away. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof NoAnswer || NOT_NOW.some((code) => isError(error, code))
}

/** The endpoints of all programs. They process a list as an SDK does. */
export class Sdk {
  readonly #stage: Stage
  readonly #clients: Clients
  readonly #ledger: RunLedger

  constructor(stage: Stage, clients: Clients, ledger: RunLedger) {
    this.#stage = stage
    this.#clients = clients
    this.#ledger = ledger
  }

  /** A request begins; the returned function answers it when it arrives. */
  receive(request: Incoming): (() => Promise<number>) | undefined {
    const headers = new Map<string, string>()
    for (let index = 0; index < request.headers.length; index += 2)
      headers.set((request.headers[index] ?? '').toLowerCase(), request.headers[index + 1] ?? '')
    const runId = headers.get('upstash-workflow-runid')
    if (runId === undefined) return undefined
    this.#stage.timeline.note(`${request.node.process.name}: sends ${headers.get('upstash-message-id')} of ${runId}`)
    this.#ledger.begin(runId)
    // A third party that a step calls.
    if (request.url !== PROGRAM_URL) return undefined
    return () => this.#answer(runId, headers, request.body ?? NO_BODY)
  }

  async #answer(runId: string, headers: ReadonlyMap<string, string>, body: Uint8Array): Promise<number> {
    const { timeline, network } = this.#stage
    const dice = network.isQuiet ? 100 : timeline.random.below(100)
    const status = dice < 7 ? 503 : await this.#try(() => this.#work(runId, headers, body))
    // The requests that it has sent take effect even if it answers 503.
    const given = dice < 14 ? 503 : status
    const run = this.#ledger.runs.get(runId)
    if (run && given !== 200) run.failures++
    return given
  }

  async #try(work: () => Promise<void>): Promise<number> {
    try {
      await work()
      return 200
    } catch (error) {
      if (RUN_IS_OVER.some((code) => isError(error, code))) return 200
      if (!isUnavailable(error)) this.#stage.timeline.fail(`a program got ${String(error)}`)
      return 500
    }
  }

  async #work(runId: string, headers: ReadonlyMap<string, string>, body: Uint8Array): Promise<void> {
    if (headers.get('upstash-workflow-failure-callback') === 'true') return
    if (headers.get('upstash-workflow-callback') === 'true') {
      const stepId = Number(headers.get('upstash-workflow-stepid'))
      return this.#send([stepItem(runId, { stepId, stepType: 'Call', out: 'called' })])
    }
    const messageId = headers.get('upstash-message-id') ?? ''
    // The protocol of lists: the first element is the payload of the trigger.
    const list = JSON.parse(decoder.decode(body)) as { messageId: string; body: string }[]
    const steps = list.slice(1).map((element) => stepIn(Buffer.from(element.body, 'base64')))
    this.#ledger.delivered({ runId, messageId, ids: list.map((element) => element.messageId), steps })
    const program = this.#ledger.runs.get(runId)?.program
    if (program) await this.#perform(runId, moveOf(program, steps), steps)
  }

  #perform(runId: string, move: Move, steps: readonly ListedStep[]): Promise<void> {
    switch (move.kind) {
      case 'nothing':
        return Promise.resolve()
      case 'plan': {
        const concurrent = move.block.length
        const plan = move.block.map((step, index) =>
          planItem(runId, step, { targetStep: move.firstId + index, concurrent }, SLEEP_MS),
        )
        return this.#send(plan)
      }
      case 'do':
        return this.#execute(runId, move)
      case 'finish':
        return this.#finish(runId, resultsOf(steps))
    }
  }

  #execute(runId: string, { step, stepId, concurrent }: Move & { kind: 'do' }): Promise<void> {
    const shared = { stepId, stepName: 's', concurrent }
    switch (step) {
      case 'sleep':
        return this.#send([sleepItem(runId, { ...shared, stepType: 'SleepFor' }, SLEEP_MS)])
      case 'call':
        return this.#send([callItem(runId, stepId)])
      case 'wait':
        return this.#wait(runId, { ...shared, stepType: 'Wait' })
      case 'invoke':
        return this.#invoke(runId, { ...shared, stepType: 'Invoke' })
      case 'run':
      case 'cancel': {
        // Every execution of a step has a different result.
        const out = `${stepId}#${this.#stage.timeline.random.below(1e9)}`
        return this.#send([stepItem(runId, { ...shared, stepType: 'Run', out })])
      }
    }
  }

  async #send(items: readonly PublishItem[]): Promise<void> {
    const [item] = items
    if (item && items.length === 1) {
      const { destination, headers, body } = item
      await this.#clients.ask(publishMessage, { params: { destination }, headers, body: body ?? NO_BODY })
      return
    }
    const body = items.map(({ body, ...others }) => ({ ...others, body: decoder.decode(body) }))
    await this.#clients.ask(publishBatch, { body })
  }

  /** Invokes a run with a new id each time. If the step has invoked a run before, that run counts. */
  #invoke(runId: string, step: ListedStep): Promise<void> {
    const { random, now } = this.#stage.timeline
    const item = invokeItem({ random, now: STARTS_AT_MS + now, runId, step, depth: INVOKED_DEPTH })
    const invocation = JSON.parse(decoder.decode(item.body)) as { body: string }
    const { program } = JSON.parse(invocation.body) as Payload
    const child = item.headers['upstash-workflow-runid'] ?? ''
    this.#ledger.trigger(child, program)
    this.#stage.timeline.note(`${runId} invokes ${child}: ${JSON.stringify(program)}`)
    return this.#send([{ ...item, headers: { ...item.headers, ...RETRY_SETTINGS } }])
  }

  async #wait(runId: string, step: ListedStep): Promise<void> {
    const eventId = EVENTS[step.stepId % EVENTS.length] ?? ''
    const body = { url: PROGRAM_URL, timeout: WAIT, timeoutHeaders: {}, step: { ...step } }
    await this.#clients.ask(waitForEvent, { params: { eventId }, headers: headersOf(runId), body })
  }

  async #finish(runId: string, results: string): Promise<void> {
    const run = this.#ledger.runs.get(runId)
    // Set before the answer, which may get lost. If the program returns again, its results are the same.
    if (run) run.results = results
    const body = new TextEncoder().encode(results)
    await this.#clients.ask(endRun, { params: { workflowRunId: runId }, query: { cancel: false }, body })
  }
}
