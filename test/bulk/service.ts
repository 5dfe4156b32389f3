import { Client } from '@upstash/workflow'
import type { Place, RunningHomeport } from '../support/index.js'
import { startHomeport, waitFor } from '../support/index.js'

/** A run as the logs show it. */
export interface LoggedRun {
  readonly workflowRunId: string
  readonly workflowState: string
  readonly dlqId?: string
}

/** A running server with the helpers of bulk cancel tests. */
export interface Service {
  readonly homeport: RunningHomeport
  readonly client: Client
  /** The argument of `startApp` of the workflow module. */
  readonly app: { url: string; token: string; signingKeys: () => { current: string; next: string } }
  logOf(runId: string): Promise<LoggedRun | undefined>
  stateOf(runId: string): Promise<string | undefined>
  /** Starts runs with a first delivery in an hour, so that only a cancel ends them. Returns their ids. */
  startDelayed(count: number, url: string, label?: string): Promise<string[]>
  /** Waits until a bulk action is finished, and returns it. */
  finished(actionId: string): Promise<Record<string, unknown>>
}

const ITEMS_A_REQUEST = 1_000
let made = 0

/** Starts a server, or restarts a killed one at its place. */
export async function startService(place?: Place): Promise<Service> {
  const homeport = await startHomeport(place)
  const { queueToken: token, currentSigningKey: current, nextSigningKey: next } = homeport.credentials
  const url = homeport.queueUrl
  const logOf = async (runId: string): Promise<LoggedRun | undefined> => {
    const { body } = await homeport.queue('GET', `/v2/workflows/logs?workflowRunId=${runId}`)
    return (body as { runs: LoggedRun[] }).runs[0]
  }
  const startPart = async (count: number, target: string, label: string | undefined): Promise<string[]> => {
    const ids = Array.from({ length: count }, () => `wfr_bulk_${++made}`)
    const items = ids.map((id) => delayedTrigger(id, target, label))
    const answer = await homeport.queue('POST', '/v2/batch', items)
    if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`)
    return ids
  }
  return {
    homeport,
    client: new Client({ baseUrl: url, token }),
    app: { url, token, signingKeys: () => ({ current, next }) },
    logOf,
    stateOf: async (runId) => (await logOf(runId))?.workflowState,
    startDelayed: async (count, target, label) => {
      const ids: string[] = []
      while (ids.length < count) {
        ids.push(...(await startPart(Math.min(ITEMS_A_REQUEST, count - ids.length), target, label)))
      }
      return ids
    },
    finished: (actionId) =>
      waitFor(
        async () => {
          const { body } = await homeport.queue('GET', `/v2/workflows/bulkActions/${actionId}`)
          const action = body as Record<string, unknown>
          return action.state === 'finished' && action
        },
        { what: `bulk action ${actionId} to finish`, deadlineMs: 60_000 },
      ),
  }
}

/** An item of a batch as the SDK writes it for a trigger (reference queue 4.3). */
function delayedTrigger(runId: string, url: string, label: string | undefined): object {
  return {
    destination: url,
    body: '{}',
    headers: {
      'Content-Type': 'application/json',
      'Upstash-Method': 'POST',
      'Upstash-Workflow-Init': 'true',
      'Upstash-Workflow-RunId': runId,
      'Upstash-Workflow-Url': url,
      'Upstash-Workflow-Sdk-Version': '1',
      'Upstash-Forward-Upstash-Workflow-Sdk-Version': '1',
      'Upstash-Feature-Set': 'LazyFetch,InitialBody,WF_DetectTrigger,WF_TriggerOnConfig',
      'Upstash-Delay': '1h',
      ...(label === undefined ? {} : { 'Upstash-Label': label }),
    },
  }
}
