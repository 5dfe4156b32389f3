import { Client } from '@upstash/workflow'
import type { RunningHomeport } from '../support/index.js'
import type { Destinations } from './destinations.js'
import type { Ledger } from './ledger.js'
import { FAST, type Pace, think } from './pace.js'
import type { LoadOptions, Repeat } from './queue-ledger-load.js'

const PUBLISHERS = 6
const TRIGGERERS = 2
const VICTIMS = 15

let made = 0
const nextId = (prefix: string): string => `${prefix}${++made}`

/**
 * The callers during one life of the server. They stop when it is killed. Unanswered requests are not in the ledger.
 */
export interface Load {
  /** Resolves when every caller has noticed that the server is gone. */
  stopped(): Promise<void>
}

/** Starts callers that publish, trigger, and cancel. */
export function startLoad(
  homeport: RunningHomeport,
  destinations: Destinations,
  ledger: Ledger,
  { pace = FAST, repeat = untilRefused(pace) }: LoadOptions = {},
): Load {
  const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken, retry: false })
  const callers = [
    ...Array.from({ length: pace.few(PUBLISHERS) }, () =>
      repeat('message', () => publish(homeport, destinations, ledger)),
    ),
    ...Array.from({ length: pace.few(TRIGGERERS) }, () => repeat('run', () => trigger(client, destinations, ledger))),
    repeat('cancel of runs', () => cancelNow(client, destinations, ledger, pace)),
    repeat('bulk cancel', () => cancelLater(homeport, client, destinations, ledger, pace)),
  ]
  return { stopped: async () => void (await Promise.all(callers)) }
}

/** Repeats an action until it fails because the server is gone. */
const untilRefused =
  (pace: Pace): Repeat =>
  async (_name, action) => {
    for (;;) {
      try {
        await action()
        await think(pace)
      } catch {
        return
      }
    }
  }

async function publish(homeport: RunningHomeport, destinations: Destinations, ledger: Ledger): Promise<void> {
  const id = nextId('m')
  const answer = await homeport.queue('POST', `/v2/publish/${destinations.url}/sink/${id}`, { id })
  if (answer.status >= 300) throw new Error(`publish was answered ${answer.status}`)
  ledger.published.add(id)
}

async function trigger(client: Client, destinations: Destinations, ledger: Ledger): Promise<void> {
  const run = { url: `${destinations.url}/steps`, workflowRunId: nextId('s'), retries: 20, retryDelay: '200' }
  const { workflowRunId } = await client.trigger(run)
  ledger.triggered.add(workflowRunId)
}

async function startVictims(client: Client, destinations: Destinations, label: string, pace: Pace): Promise<string[]> {
  const url = `${destinations.url}/long`
  const again = { retries: 20, retryDelay: '200' }
  const runs = Array.from({ length: pace.few(VICTIMS) }, () => ({ url, label, workflowRunId: nextId('v'), ...again }))
  return (await client.trigger(runs)).map((run) => run.workflowRunId)
}

async function cancelNow(client: Client, destinations: Destinations, ledger: Ledger, pace: Pace): Promise<void> {
  const victims = await startVictims(client, destinations, nextId('now'), pace)
  await client.cancel(victims)
  await seal(victims, destinations, ledger)
}

async function cancelLater(
  homeport: RunningHomeport,
  client: Client,
  destinations: Destinations,
  ledger: Ledger,
  pace: Pace,
): Promise<void> {
  const label = nextId('later')
  const victims = await startVictims(client, destinations, label, pace)
  // Both at the same time: different nodes may run the two actions, and one node may continue the action of another.
  const cancel = () => homeport.queue('DELETE', '/v2/workflows/runs', { label, async: true })
  const answers = await Promise.all([cancel(), cancel()])
  for (const { status } of answers) if (status !== 202) throw new Error(`a bulk action was answered ${status}`)
  const actionIds = answers.map(({ body }) => (body as { actionId: string }).actionId)
  ledger.actions.push({ actionIds, runIds: victims })
}

/** Forbids deliveries of these runs from now on, after those sent before the acknowledgement have arrived. */
export async function seal(runIds: readonly string[], destinations: Destinations, ledger: Ledger): Promise<void> {
  await destinations.settled()
  for (const runId of runIds) ledger.sealed.add(runId)
}
