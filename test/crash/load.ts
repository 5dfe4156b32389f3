import { Client } from '@upstash/workflow'
import type { RunningHomeport } from '../support/index.js'
import type { Ledger } from './ledger.js'
import type { World } from './world.js'

const PUBLISHERS = 6
const TRIGGERERS = 2
const VICTIMS = 15

let made = 0
const nextId = (prefix: string): string => `${prefix}${++made}`

/** What callers do to one life of the server. They stop when it is killed; what was not answered is not on record. */
export interface Load {
  /** Resolves when every caller has noticed that the server is gone. */
  stopped(): Promise<void>
}

/** Starts callers that publish, trigger, and cancel until the server stops answering. */
export function startLoad(homeport: RunningHomeport, world: World, ledger: Ledger): Load {
  const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken, retry: false })
  const deeds = [
    ...Array.from({ length: PUBLISHERS }, () => () => publish(homeport, world, ledger)),
    ...Array.from({ length: TRIGGERERS }, () => () => trigger(client, world, ledger)),
    () => cancelNow(client, world, ledger),
    () => cancelLater(homeport, client, world, ledger),
  ]
  const callers = deeds.map(untilRefused)
  return { stopped: async () => void (await Promise.all(callers)) }
}

/** Repeats a deed until it fails, as every deed does once the server is gone. */
async function untilRefused(deed: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await deed()
    } catch {
      return
    }
  }
}

async function publish(homeport: RunningHomeport, world: World, ledger: Ledger): Promise<void> {
  const id = nextId('m')
  const answer = await homeport.queue('POST', `/v2/publish/${world.url}/sink/${id}`, { id })
  if (answer.status >= 300) throw new Error(`publish was answered ${answer.status}`)
  ledger.published.add(id)
}

async function trigger(client: Client, world: World, ledger: Ledger): Promise<void> {
  const run = { url: `${world.url}/steps`, workflowRunId: nextId('s'), retries: 20, retryDelay: '200' }
  const { workflowRunId } = await client.trigger(run)
  ledger.triggered.add(workflowRunId)
}

async function startVictims(client: Client, world: World, label: string): Promise<string[]> {
  const url = `${world.url}/long`
  const runs = Array.from({ length: VICTIMS }, () => ({ url, label, workflowRunId: nextId('v'), retryDelay: '200' }))
  return (await client.trigger(runs)).map((run) => run.workflowRunId)
}

async function cancelNow(client: Client, world: World, ledger: Ledger): Promise<void> {
  const victims = await startVictims(client, world, nextId('now'))
  await client.cancel(victims)
  await seal(victims, world, ledger)
}

async function cancelLater(homeport: RunningHomeport, client: Client, world: World, ledger: Ledger): Promise<void> {
  const label = nextId('later')
  const victims = await startVictims(client, world, label)
  const answer = await homeport.queue('DELETE', '/v2/workflows/runs', { label, async: true })
  if (answer.status !== 202) throw new Error(`the bulk action was answered ${answer.status}`)
  ledger.actions.set((answer.body as { actionId: string }).actionId, victims)
}

/** From now on nothing of these runs may be delivered; what had been sent before the acknowledgement is let in first. */
export async function seal(runIds: readonly string[], world: World, ledger: Ledger): Promise<void> {
  await world.settled()
  for (const runId of runIds) ledger.sealed.add(runId)
}
