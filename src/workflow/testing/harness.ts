/**
 * Workflows for tests: the real store, dispatcher, listener and SDK in one process, on free ports of 127.0.0.1.
 *
 *   const service = await startWorkflows({ store })
 *   const app = await startApp(service, { '/order': { route: async (context) => { ... } } })
 *   const { workflowRunId } = await service.client.trigger({ url: `${app.url}/order`, body: 'x' })
 *   await service.ended(workflowRunId)
 *   await app.close(); await service.stop()
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client as QueueClient, Receiver } from '@upstash/qstash'
import { Client, serve, type WorkflowContext, type WorkflowServeOptions } from '@upstash/workflow'
import { waitFor } from '../../../test/support/wait-for.js'
import { systemClock } from '../../base/index.js'
import {
  HIGH_LIMITS,
  type QueueUnderTest,
  type QueueUnderTestOptions,
  startQueue,
} from '../../queue/testing/harness.js'
import type { Store } from '../../store/index.js'
import { silentLogger } from '../../telemetry/index.js'
import { createWorkflow } from '../index.js'
import type { PendingStep } from '../transactions/runs-logs.js'
import * as runsLogs from '../transactions/runs-logs.js'

/** The log of a run, with the fields that tests read. */
export interface SeenRun {
  readonly workflowRunId: string
  readonly workflowState: string
  readonly workflowRunCreatedAt: number
  readonly workflowRunResponse?: string
  readonly failureFunction?: {
    readonly state: string
    readonly failResponse: string
    readonly responseBody?: string
    readonly errors?: readonly object[]
  }
  readonly origin?: { readonly workflowRunId: string; readonly stepId: number }
  readonly invoker?: { readonly workflowRunId: string }
  readonly dlqId?: string
  readonly labels?: string[]
  readonly because?: { readonly kind: string; readonly text: string; readonly workflowRunId?: string }[]
  readonly steps: { readonly type: string; readonly steps: Record<string, unknown>[] }[]
}

/** A running service with its SDK client. */
export interface WorkflowsUnderTest extends QueueUnderTest {
  readonly client: Client
  log(runId: string): Promise<SeenRun | undefined>
  /** Waits until the log satisfies a condition. */
  when(runId: string, what: string, condition: (run: SeenRun) => boolean): Promise<SeenRun>
  /** Waits until the run has ended, in any state. */
  ended(runId: string): Promise<SeenRun>
}

/** Options of the service under test. */
export interface WorkflowsUnderTestOptions extends QueueUnderTestOptions {
  readonly inlineLimitBytes?: number
  readonly listLimitBytes?: number
}

/** Starts the queue and the workflow module. */
export async function startWorkflows(options: WorkflowsUnderTestOptions): Promise<WorkflowsUnderTest> {
  const { store, inlineLimitBytes, listLimitBytes, queueBodyLimitBytes, responseKeepBytes } = {
    ...HIGH_LIMITS,
    ...options,
  }
  const service = await startQueue({
    ...options,
    extend: (queue) =>
      createWorkflow({
        store,
        queue,
        clock: options.clock ?? systemClock,
        logger: silentLogger,
        ...HIGH_LIMITS,
        queueBodyLimitBytes,
        responseKeepBytes,
        accountOfUser: (userId) => (userId === 'user' ? (options.accountId ?? 'acc_test') : undefined),
        publicUrl: 'http://127.0.0.1',
        ...(inlineLimitBytes !== undefined && { inlineLimitBytes }),
        ...(listLimitBytes !== undefined && { listLimitBytes }),
        ...(options.cluster && { cluster: options.cluster }),
      }).routes(),
  })
  const log = async (runId: string): Promise<SeenRun | undefined> => {
    const target = `${service.url}/v2/workflows/logs?workflowRunId=${encodeURIComponent(runId)}`
    const answer = await fetch(target, { headers: service.auth })
    if (!answer.ok) throw new Error(await answer.text())
    return ((await answer.json()) as { runs: SeenRun[] }).runs[0]
  }
  const when: WorkflowsUnderTest['when'] = (runId, what, condition) =>
    waitFor(
      async () => {
        const run = await log(runId)
        return run && condition(run) ? run : undefined
      },
      { what: `run ${runId}: ${what}` },
    )
  return {
    ...service,
    client: new Client({ baseUrl: service.url, token: service.token }),
    log,
    when,
    ended: (runId) => when(runId, 'an end', (run) => run.workflowState !== 'RUN_STARTED'),
  }
}

/** The pending messages of a run. */
export async function pendingOf(store: Store, runId: string, accountId = 'acc_test'): Promise<readonly PendingStep[]> {
  const args = { accountId, filter: { runIds: [runId] }, before: Number.MAX_SAFE_INTEGER, limit: 1 }
  return (await store.run(runsLogs.logPage, args)).pending
}

/** A workflow of a test. */
export interface AppRoute {
  readonly route: (context: WorkflowContext<unknown>) => Promise<unknown>
  readonly options?: Partial<WorkflowServeOptions<Response, unknown>>
}

/** A delivery as the app received it. */
export interface Delivered {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
  readonly status: number
}

/** An HTTP server that hosts workflows. */
export interface App {
  readonly url: string
  /** Answered requests, in the order of their responses. */
  readonly delivered: Delivered[]
  /**
   * Waits until no request is open, then returns the answered ones. The SDK reports the end of a run before it answers, so a
   * run may have ended while its last delivery is still open.
   */
  allDelivered(): Promise<readonly Delivered[]>
  /** Requests whose connection the sender closed before the response. */
  readonly aborted: () => number
  close(): Promise<void>
}

/** Routes of an app: workflows or plain request handlers. */
export type AppRoutes = Readonly<Record<string, AppRoute | ((request: Request) => Promise<Response>)>>

/** Hosts workflows with the real SDK on a plain HTTP server. Port 0: any free port. */
export async function startApp(
  service: Pick<QueueUnderTest, 'url' | 'token' | 'signingKeys'>,
  routes: AppRoutes,
  port = 0,
): Promise<App> {
  const delivered: Delivered[] = []
  let aborted = 0
  let open = 0
  const handlers = new Map(Object.entries(routes).map(([path, entry]) => [path, handlerOf(service, entry)]))
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const request = await toRequest(incoming)
    const path = new URL(request.url).pathname
    const body = await request.clone().text()
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) aborted++
    })
    const response = (await handlers.get(path)?.(request)) ?? new Response('no such path', { status: 404 })
    delivered.push({ path, headers: incoming.headers, body, status: response.status })
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  }
  const server = createServer((incoming, outgoing) => {
    open++
    void answer(incoming, outgoing)
      .catch(() => outgoing.destroy())
      .finally(() => open--)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    delivered,
    allDelivered: async () => {
      await waitFor(() => open === 0, { what: 'the app to answer' })
      return delivered
    },
    aborted: () => aborted,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function handlerOf(
  service: Pick<QueueUnderTest, 'url' | 'token' | 'signingKeys'>,
  entry: AppRoute | ((request: Request) => Promise<Response>),
): (request: Request) => Promise<Response> {
  if (typeof entry === 'function') return entry
  const { current, next } = service.signingKeys()
  return serve(entry.route, {
    qstashClient: new QueueClient({ baseUrl: service.url, token: service.token }),
    receiver: new Receiver({ currentSigningKey: current, nextSigningKey: next }),
    env: {},
    ...entry.options,
  }).handler
}

async function toRequest(incoming: IncomingMessage): Promise<Request> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value)
  }
  const method = incoming.method ?? 'GET'
  const body = method === 'GET' || method === 'HEAD' ? null : Buffer.concat(chunks)
  return new Request(`http://${incoming.headers.host}${incoming.url}`, { method, headers, body })
}
