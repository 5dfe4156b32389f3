import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Client, type WorkflowContext } from '@upstash/workflow'
import { createWorkflow, serveMany } from '@upstash/workflow/cloudflare'
import { type ServerAccess, toRequest } from '../crash/destinations.js'
import type { RunningHomeport } from '../support/index.js'
import { type Loads, Violation } from './loads.js'

/** Acknowledgements about runs that sleep, wait, call and invoke. */
export class RunLedger {
  /** Runs whose trigger was acknowledged, with the number in their payload. */
  readonly triggered = new Map<string, number>()
  /** Runs that a notification has reached, by its answer. */
  readonly notified = new Set<string>()
}

/** The result of a run of the workflow `/rich`. */
export interface RichResult {
  readonly first: number
  readonly child: number
  readonly branch: number
  readonly called: string
  readonly isNotified: boolean
}

/** The result that a run with this payload must have, whatever was killed meanwhile. */
export function expectedOf(number: number): Omit<RichResult, 'isNotified'> {
  return { first: number, child: number * 2, branch: number + 1, called: `echo ${number}` }
}

/** The endpoints of these runs. */
export interface RichEndpoints {
  readonly url: string
  close(): Promise<void>
}

const child = createWorkflow(async (context: WorkflowContext<{ number: number }>) => {
  const { number } = await context.run('look', () => context.requestPayload)
  await context.sleep('nap', 0.2)
  return await context.run('double', () => number * 2)
})

function rich(url: () => string) {
  return createWorkflow(async (context: WorkflowContext<{ number: number }>): Promise<RichResult> => {
    const first = await context.run('first', () => context.requestPayload.number)
    await context.sleep('nap', 0.5)
    const [invoked, branch] = await Promise.all([
      context.invoke('child', { workflow: child, body: { number: first }, retries: 20, retryDelay: '300' }),
      context.run('branch', () => first + 1),
    ])
    const { timeout } = await context.waitForEvent('wait', `event-${first}`, { timeout: '2s' })
    const { body } = await context.call('call', {
      url: `${url()}/echo`,
      method: 'POST',
      body: String(first),
      retries: 20,
      retryDelay: '300',
    })
    return { first, child: Number(invoked.body), branch, called: String(body), isNotified: !timeout }
  })
}

/** Starts the endpoints, which no fault affects. */
export async function startRichEndpoints(access: ServerAccess): Promise<RichEndpoints> {
  let url = ''
  const endpoint = serveMany({ rich: rich(() => url), child })
  const env = {
    QSTASH_URL: access.url,
    QSTASH_TOKEN: access.token,
    QSTASH_CURRENT_SIGNING_KEY: access.currentSigningKey,
    QSTASH_NEXT_SIGNING_KEY: access.nextSigningKey,
  }
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const request = await toRequest(incoming)
    const response = incoming.url === '/echo' ? await echo(request) : await endpoint.fetch(request, env)
    outgoing.writeHead(response.status, Object.fromEntries(response.headers))
    outgoing.end(Buffer.from(await response.arrayBuffer()))
  }
  const server = createServer((incoming, outgoing) => void answer(incoming, outgoing).catch(() => outgoing.destroy()))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function echo(request: Request): Promise<Response> {
  return new Response(`echo ${await request.text()}`)
}

const clientOf = ({ queueUrl, credentials }: RunningHomeport): Client =>
  new Client({ baseUrl: queueUrl, token: credentials.queueToken, retry: false })

let made = 0
/** Events are sent to this many of the newest runs. */
const NEWEST = 10

/** Triggers runs, and sends the events that they wait for. */
export function startRunLoad(loads: Loads, destinations: RichEndpoints, ledger: RunLedger): void {
  loads.repeat('trigger', async (homeport) => {
    const number = ++made
    const run = { url: `${destinations.url}/rich`, body: { number }, retries: 20, retryDelay: '300' }
    const { workflowRunId } = await clientOf(homeport).trigger(run)
    ledger.triggered.set(workflowRunId, number)
    // Notify often: a run that waits for a child, an event and a call is slower than the client that triggers runs.
    for (let turn = 0; turn < 5; turn++) await notifySome(homeport, ledger)
  })
}

/** Half of the runs are never notified, so that their waits time out. */
async function notifySome(homeport: RunningHomeport, ledger: RunLedger): Promise<void> {
  const waiting = [...ledger.triggered].slice(-NEWEST)
  for (const [workflowRunId, number] of waiting) {
    if (number % 2 === 0 || ledger.notified.has(workflowRunId)) continue
    const notified = await clientOf(homeport).notify({ eventId: `event-${number}`, eventData: { number } })
    for (const { waiter } of notified as readonly { waiter?: unknown }[]) {
      if (waiter === undefined) throw new Violation('a notification was answered without its waiter')
      ledger.notified.add(workflowRunId)
    }
  }
}

interface LoggedRun {
  readonly workflowState: string
  readonly workflowRunResponse?: string
}

/** The run in the log; `undefined` when there is none. */
export async function loggedRun(homeport: RunningHomeport, runId: string): Promise<LoggedRun | undefined> {
  const { body } = await homeport.queue('GET', `/v2/workflows/logs?workflowRunId=${encodeURIComponent(runId)}`)
  return (body as { runs: LoggedRun[] }).runs[0]
}

/** The violation of a run whose trigger was acknowledged; `undefined` if there is none. */
export async function verdictOf(homeport: RunningHomeport, ledger: RunLedger, runId: string) {
  const number = ledger.triggered.get(runId) ?? 0
  const run = await loggedRun(homeport, runId)
  if (run?.workflowState !== 'RUN_SUCCESS') return `run ${runId} is ${run?.workflowState ?? 'lost'}`
  const { isNotified, ...rest } = JSON.parse(run.workflowRunResponse ?? 'null') as RichResult
  const expected = JSON.stringify(expectedOf(number))
  if (JSON.stringify(rest) !== expected)
    return `run ${runId} returned ${run.workflowRunResponse} in place of ${expected}`
  if (ledger.notified.has(runId) && !isNotified) return `run ${runId} was notified, and says that it was not`
  return undefined
}
