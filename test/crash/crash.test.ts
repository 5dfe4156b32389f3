import { afterAll, expect, it, vi } from 'vitest'
import { atCleanup, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { startDestinations } from './destinations.js'
import { Ledger } from './ledger.js'
import { seal, startLoad } from './load.js'
import { runsInState } from './queue-ledger-store.js'
import { randomFrom } from './random.js'

/**
 * The server is killed with SIGKILL at random moments under load and started again on its data, several times. Then the
 * test compares acknowledgements with arrivals. `HOMEPORT_CRASH_SEED` repeats the kill times of an earlier run,
 * `HOMEPORT_CRASH_CYCLES` sets the number of kills.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const SHORTEST_LIFE_MS = 300
const LONGEST_LIFE_MS = 2_500
const DEADLINE_MS = 60_000 + CYCLES * 2_000

const ledger = new Ledger()
// The SDK reports unreachable servers and repeated steps, which the kills cause.
vi.spyOn(console, 'warn').mockImplementation(() => undefined)
vi.spyOn(console, 'error').mockImplementation(() => undefined)
afterAll(() =>
  console.log(`crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${ledger.summary()}`),
)

/** Whether the ledger has every kind of entry; a slow machine may need the whole first life for that. */
const hasBegun = (): boolean => ledger.published.size > CYCLES && ledger.triggered.size > 0 && ledger.sealed.size > 0

/** Runs one life of the server: under load until it is killed at a random moment. */
async function live(
  homeport: RunningHomeport,
  load: { stopped(): Promise<void> },
  random: () => number,
): Promise<void> {
  const endsAt = performance.now() + SHORTEST_LIFE_MS + random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS)
  const isOver = () => performance.now() >= endsAt && hasBegun()
  await waitFor(isOver, { what: 'the moment of the kill', deadlineMs: DEADLINE_MS, everyMs: 1 })
  await homeport.kill('SIGKILL')
  await load.stopped()
}

async function stateOf(homeport: RunningHomeport, runId: string): Promise<string | undefined> {
  const { body } = await homeport.queue('GET', `/v2/workflows/logs?workflowRunId=${runId}`)
  return (body as { runs: { workflowState: string }[] }).runs[0]?.workflowState
}

/**
 * Waits until every run is in this state. One query of the store checks all of them; asking the server for one run
 * after the other would slow down what the test waits for.
 */
async function allReach(homeport: RunningHomeport, runIds: ReadonlySet<string>, state: string): Promise<void> {
  let left: readonly string[] = []
  const look = async () => {
    const there = await runsInState(homeport.place, state)
    left = [...runIds].filter((runId) => !there.has(runId))
    return left.length === 0
  }
  await waitFor(look, { what: `every run to be ${state}`, deadlineMs: DEADLINE_MS, everyMs: 100 }).catch(
    async (error) => {
      const states = await Promise.all(
        left.slice(0, 3).map(async (runId) => `${runId} ${await stateOf(homeport, runId)}`),
      )
      throw new Error(`${left.length} runs are not: ${states.join(', ')}`, { cause: error })
    },
  )
}

it(
  'loses nothing that was acknowledged and delivers no cancelled run again, whenever it is killed',
  async () => {
    const random = randomFrom(SEED)
    let homeport = await startHomeport()
    const { queueToken: token, ...keys } = homeport.credentials
    const destinations = await startDestinations({ url: homeport.queueUrl, token, ...keys }, ledger)
    atCleanup(() => destinations.close())
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await live(homeport, startLoad(homeport, destinations, ledger), random)
      homeport = await startHomeport(homeport.place)
    }

    await waitFor(() => ledger.lost().length === 0, { what: 'every published message', deadlineMs: DEADLINE_MS })
    for (const [actionId, runIds] of ledger.actions) {
      const action = await waitFor(
        async () => {
          const { body } = await homeport.queue('GET', `/v2/workflows/bulkActions/${actionId}`)
          return (body as { state: string }).state === 'finished' && (body as { outcomes: object })
        },
        { what: `bulk action ${actionId} to be finished`, deadlineMs: DEADLINE_MS },
      )
      expect(action.outcomes).toEqual({ cancelled: runIds.length, alreadyFinished: 0, notFound: 0, failed: 0 })
      await seal(runIds, destinations, ledger)
    }
    await allReach(homeport, ledger.sealed, 'RUN_CANCELED')
    await allReach(homeport, ledger.triggered, 'RUN_SUCCESS')
    expect(ledger.broken).toEqual([])
    expect(hasBegun()).toBe(true)
  },
  180_000 + CYCLES * 20_000,
)
