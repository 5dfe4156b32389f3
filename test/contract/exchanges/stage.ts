import type { WorkflowContext } from '@upstash/workflow'
import { type Sink, type SinkAnswer, startSink } from '../../../src/queue/testing/sink.js'
import { type App, type SeenRun, startApp } from '../../../src/workflow/testing/harness.js'
import { createDatabase, type NewDatabase, type Service } from '../../e2e/support/service.js'
import { type Answer, type RunningHomeport, waitFor } from '../../support/index.js'

/** What the exchanges of all operations use: a service, a destination, and an endpoint with workflows. */
export interface Stage {
  readonly service: Service
  readonly homeport: RunningHomeport
  readonly sink: Sink
  readonly app: App
  /** Publishes a message that is due tomorrow; returns its id. */
  waitingMessage(label?: string): Promise<string>
  /** Publishes a message that its destination refuses for good, and waits for the dead letter; returns its id. */
  deadLetter(): Promise<string>
  /** The database that exchanges share, created at its first use; returns its id. */
  database(): Promise<string>
  /** Makes a run fail whose failure URL fails too or hangs, and waits for that; returns the id of its dead letter. */
  deadRun(callback?: 'CALLBACK_FAIL' | 'CALLBACK_INPROGRESS'): Promise<string>
  /** Starts a run that creates a webhook; returns its address. */
  webhook(): Promise<string>
  /** Starts a run that sleeps for an hour; returns its id. */
  sleepingRun(label?: string): Promise<string>
}

/** One call of an operation with its preconditions. It must succeed. */
export type Exchange = (stage: Stage) => Promise<Answer>

/** Exchanges by the id of their operation. */
export type Exchanges = Readonly<Record<string, Exchange>>

const ANSWERS: Readonly<Record<string, SinkAnswer>> = { '/dead': { status: 500 }, '/hangs': { silent: true } }

/** Opens a stage on a running service. */
export async function openStage(service: Service): Promise<Stage & { close(): Promise<void> }> {
  const { homeport } = service
  const sink = await startSink()
  sink.answer = ({ target }) => ANSWERS[target] ?? {}
  let database: Promise<NewDatabase> | undefined
  const addresses: string[] = []
  const app = await startApp(service.app, {
    '/sleep': { route: async (context: WorkflowContext<unknown>) => context.sleep('long', '1h') },
    '/hook': {
      route: async (context: WorkflowContext<unknown>) => {
        const { webhookUrl } = await context.createWebhook('create')
        await context.run('tell', () => void addresses.push(webhookUrl))
        await context.sleep('long', '1h')
      },
    },
    '/fail': {
      route: async (context: WorkflowContext<unknown>) =>
        context.run('fails', () => {
          throw new Error('as it should')
        }),
    },
    '/wait': {
      route: async (context: WorkflowContext<unknown>) => context.waitForEvent('wait', 'paid', { timeout: '1h' }),
    },
  })
  return {
    service,
    homeport,
    sink,
    app,
    async waitingMessage(label = 'waiting') {
      return (await service.queue.publish({ url: sink.url, body: 'x', delay: '1d', label })).messageId
    },
    async deadLetter() {
      const { messageId } = await service.queue.publish({ url: `${sink.url}/dead`, body: 'x', retries: 0 })
      const find = async () => (await service.queue.dlq.listMessages({ filter: { messageId } })).messages[0]?.dlqId
      return waitFor(find, { what: 'the dead letter' })
    },
    async database() {
      database ??= createDatabase(service)
      return (await database).database_id
    },
    async deadRun(callback = 'CALLBACK_FAIL') {
      const failureUrl = `${sink.url}${callback === 'CALLBACK_FAIL' ? '/dead' : '/hangs'}`
      const { workflowRunId } = await service.workflow.trigger({ url: `${app.url}/fail`, retries: 0, failureUrl })
      const find = async () => {
        const { body } = await homeport.queue('GET', `/v2/workflows/logs?workflowRunId=${workflowRunId}`)
        const [run] = (body as { runs: SeenRun[] }).runs
        return run?.failureFunction?.state === callback && run.dlqId
      }
      return waitFor(find, { what: 'the dead run' })
    },
    async webhook() {
      const known = addresses.length
      await service.workflow.trigger({ url: `${app.url}/hook` })
      return waitFor(() => addresses[known], { what: 'the address of a webhook' })
    },
    async sleepingRun(label = 'sleeping') {
      const { workflowRunId } = await service.workflow.trigger({ url: `${app.url}/sleep`, label })
      const isAsleep = () => app.delivered.some(({ headers }) => headers['upstash-workflow-runid'] === workflowRunId)
      await waitFor(isAsleep, { what: 'the run to sleep' })
      return workflowRunId
    },
    close: async () => {
      await homeport.queue('DELETE', '/v2/workflows/runs', {})
      await Promise.all([sink.close(), app.close()])
    },
  }
}
