import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client as QueueClient, Receiver } from '@upstash/qstash'
import { serve, type WorkflowContext, WorkflowNonRetryableError } from '@upstash/workflow'
import type { Ledger } from './ledger.js'
import { requestsAreRead } from './settled.js'

/** How the endpoints reach the server and verify its signatures. */
export interface ServerAccess {
  readonly url: string
  readonly token: string
  readonly currentSigningKey: string
  readonly nextSigningKey: string
}

/**
 * The destinations: a sink for messages at `/sink/<id>`, a workflow of steps at `/steps`, a long one at `/long`, one at
 * `/fragile` whose first run with a payload fails while later ones succeed, and at `/failure` a failure function that
 * always fails.
 */
export interface Destinations {
  readonly url: string
  /** Resolves when all requests that reached this machine before the call are recorded. */
  settled(): Promise<void>
  close(): Promise<void>
}

async function steps(context: WorkflowContext<unknown>): Promise<string> {
  const first = await context.run('first', () => 1)
  const [second, third] = await Promise.all([
    context.run('second', () => first + 1),
    context.run('third', () => first + 2),
  ])
  return await context.run('last', () => `sum ${second + third}`)
}

/** Sends a request twice a second, so that a run which is not really cancelled is noticed soon. */
async function long(context: WorkflowContext<unknown>): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    await context.run(`turn ${turn}`, () => turn)
    await context.sleep(`pause ${turn}`, 0.5)
  }
}

function fragile(ledger: Ledger) {
  return async (context: WorkflowContext<string>): Promise<void> => {
    const { requestPayload: payload, workflowRunId: runId } = context
    await context.run('before', () => payload)
    await context.run('try', () => {
      if (!ledger.mayLive(payload, runId)) throw new WorkflowNonRetryableError('the first run dies')
    })
    await context.run('after', () => void ledger.lives.get(payload)?.ended.add(runId))
  }
}

/** Starts the destinations. They live as long as the test, independently of the server. */
export async function startDestinations(access: ServerAccess, ledger: Ledger): Promise<Destinations> {
  const { currentSigningKey, nextSigningKey } = access
  const shared = {
    qstashClient: new QueueClient({ baseUrl: access.url, token: access.token, retry: false }),
    receiver: new Receiver({ currentSigningKey, nextSigningKey }),
    env: {},
    disableTelemetry: true,
  }
  const handlers = new Map([
    ['/steps', serve(steps, shared).handler],
    ['/long', serve(long, shared).handler],
    ['/fragile', serve(fragile(ledger), shared).handler],
  ])
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const path = incoming.url ?? '/'
    note(ledger, path, incoming, outgoing)
    const request = await toRequest(incoming)
    const response =
      path === '/failure' ? notNow(ledger) : ((await handlers.get(path)?.(request)) ?? new Response('seen'))
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  }
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing).catch(() => outgoing.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, settled: () => requestsAreRead(url), close: () => close(server) }
}

/** A failure that the server does not retry by itself. */
function notNow(ledger: Ledger): Response {
  ledger.failureCalls++
  return new Response('not now', { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } })
}

function note(ledger: Ledger, path: string, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const runId = incoming.headers['upstash-workflow-runid']
  if (typeof runId === 'string') noteDelivery(ledger, runId, outgoing)
  else if (path.startsWith('/sink/')) ledger.arrive(path.slice('/sink/'.length))
}

/**
 * A delivery of a sealed run is a violation if the server waits for its answer. If the server has closed the
 * connection, the delivery was in flight when the run was cancelled, and this busy process only read it later.
 */
function noteDelivery(ledger: Ledger, runId: string, outgoing: ServerResponse): void {
  if (!ledger.sealed.has(runId)) return
  outgoing.once('close', () => {
    if (outgoing.writableFinished) ledger.broken.push(runId)
  })
}

/** Converts a request for the handlers of the SDK. */
export async function toRequest(incoming: IncomingMessage): Promise<Request> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const headers = new Headers()
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (typeof value === 'string') headers.set(name, value)
  }
  const body = incoming.method === 'GET' ? null : Buffer.concat(chunks)
  return new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method ?? 'POST',
    headers,
    body,
  })
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}
