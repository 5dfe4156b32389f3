import { expect } from 'vitest'
import { type RunningHomeport, waitFor } from '../support/index.js'
import type { Destinations } from './destinations.js'
import type { Ledger } from './ledger.js'
import { seal } from './load.js'
import { accountOf, NO_BREACHES } from './queue-account.js'
import type { QueueLedger } from './queue-ledger.js'
import {
  describeUnfinished,
  runsInState,
  type StorePlace,
  storedMessages,
  unfinishedSoon,
  unfired,
} from './queue-ledger-store.js'

/** What {@link judge} checks after the faults, when all callers have stopped. */
export interface Aftermath {
  readonly homeport: RunningHomeport
  readonly place: StorePlace
  readonly destinations: Destinations
  readonly queueLedger: QueueLedger
  readonly ledger: Ledger
  /** How long each part may take to end. */
  readonly deadlineMs: number
  /** `may be lost`, as in a failover: requests of messages that the store does not know are no breach then. */
  readonly commits: 'last' | 'may be lost'
}

/**
 * Waits until everything that was acknowledged has its outcome, and compares the ledgers with the store.
 * @returns the outcome of the messages, for people.
 */
export async function judge(aftermath: Aftermath): Promise<string> {
  const { homeport, place, destinations, queueLedger, ledger, deadlineMs, commits } = aftermath
  await untilActionsEnd(aftermath)
  // Cancel the runs whose trigger or cancel was never confirmed.
  const rest = await homeport.queue('DELETE', '/v2/workflows/runs', { workflowUrl: [`${destinations.url}/long`] })
  expect(rest.status).toBe(200)

  // Cancel the messages whose cancellation was interrupted.
  const isDone = async () => (await homeport.queue('DELETE', '/v2/messages?label=silent')).status === 200
  await waitFor(isDone, { what: 'the last cancel', deadlineMs })
  const isCalm = async () => (await unfired(place)) === 0 && (await unfinishedSoon(place)) === 0
  await waitFor(isCalm, { what: 'every message to end', deadlineMs, everyMs: 100 }).catch(async (error: Error) => {
    throw new Error(`${error.message}; left: ${await describeUnfinished(place)}`)
  })

  await waitFor(() => ledger.lost().length === 0, { what: 'every published message', deadlineMs })
  await allReach(aftermath, ledger.triggered, 'RUN_SUCCESS')
  await allReach(aftermath, ledger.sealed, 'RUN_CANCELED')

  const { summary, breaches } = accountOf(queueLedger, await storedMessages(place))
  expect(breaches).toEqual(commits === 'last' ? NO_BREACHES : { ...NO_BREACHES, strangers: breaches.strangers })
  expect(ledger.broken).toEqual([])
  expect(queueLedger.narrow.most).toBeLessThanOrEqual(2)
  return summary
}

/** Waits until every run is in this state. One query of the store checks all, so that the server has no work with it. */
async function allReach({ place, deadlineMs }: Aftermath, runIds: ReadonlySet<string>, state: string): Promise<void> {
  let left: readonly string[] = []
  const look = async () => {
    const there = await runsInState(place, state)
    left = [...runIds].filter((runId) => !there.has(runId))
    return left.length === 0
  }
  await waitFor(look, { what: `every run to be ${state}`, deadlineMs, everyMs: 100 }).catch((error: Error) => {
    throw new Error(`${error.message}; ${left.length} are not, ${left.slice(0, 3)} among them`)
  })
}

/** A bulk action that has ended. */
export interface EndedAction {
  readonly matched: number
  readonly outcomes: { readonly cancelled: number; readonly alreadyFinished: number }
}

/** Waits for the end of a bulk action. */
export function endOf(homeport: RunningHomeport, actionId: string, deadlineMs: number): Promise<EndedAction> {
  return waitFor(
    async () => {
      const { body } = await homeport.queue('GET', `/v2/workflows/bulkActions/${actionId}`)
      return (body as { state: string }).state === 'finished' && (body as EndedAction)
    },
    { what: `bulk action ${actionId} to be finished`, deadlineMs, everyMs: 50 },
  )
}

/** Every bulk action ends with exact counts: each run is cancelled by one. From then on nothing of its runs may arrive. */
async function untilActionsEnd({ homeport, destinations, ledger, deadlineMs }: Aftermath): Promise<void> {
  for (const { actionIds, runIds } of ledger.actions) {
    const ended = await Promise.all(actionIds.map((actionId) => endOf(homeport, actionId, deadlineMs)))
    for (const { matched, outcomes } of ended) {
      const alreadyFinished = matched - outcomes.cancelled
      expect(outcomes).toEqual({ cancelled: outcomes.cancelled, alreadyFinished, notFound: 0, failed: 0 })
    }
    expect(ended.reduce((sum, { outcomes }) => sum + outcomes.cancelled, 0)).toBe(runIds.length)
    await seal(runIds, destinations, ledger)
  }
}
