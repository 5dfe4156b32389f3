import { Client } from '@upstash/workflow'
import { afterAll, expect, it, vi } from 'vitest'
import { atCleanup, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { type Destinations, startDestinations } from './destinations.js'
import { Ledger } from './ledger.js'
import { startLoad } from './load.js'
import { countRuns } from './queue-ledger-store.js'
import { randomFrom } from './random.js'

/**
 * The server is killed with SIGKILL in the middle of bulk actions of every kind over runs, several of them over the
 * same dead runs, and pauses of runs that are active, beside publishes, triggers and cancels. Then every item of every action has one outcome, and the
 * outcomes agree with the states of the runs: no run is resumed or restarted twice, and none is lost.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const SHORTEST_LIFE_MS = 300
const LONGEST_LIFE_MS = 2_000
const DEADLINE_MS = 60_000 + CYCLES * 3_000
const DOOMED = 25
const KINDS = ['resumeRuns', 'deleteDeadRuns', 'restartRuns', 'retryFailureCallbacks']
/** In this order, so that most runs go on soon. */
const HOLDS = ['pauseRuns', 'unpauseRuns']

const ledger = new Ledger()
let account = ''
let made = 0
// The SDK reports unreachable servers and repeated steps, which the kills cause.
vi.spyOn(console, 'warn').mockImplementation(() => undefined)
vi.spyOn(console, 'error').mockImplementation(() => undefined)
afterAll(() =>
  console.log(
    `bulk crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${ledger.summary()}; ${account}`,
  ),
)

/** Starts an action over all runs of the kind that are dead, or active. */
async function act(homeport: RunningHomeport, destinations: Destinations, kind: string): Promise<void> {
  const selector = { workflowUrl: [`${destinations.url}/fragile`] }
  const { status } = await homeport.queue('POST', '/v2/workflows/bulkActions', { kind, selector })
  if (status !== 202) throw new Error(`${kind} was answered ${status}`)
}

/** Triggers runs that fail, and starts actions over dead runs, until the server is gone. */
async function actOnDeadRuns(homeport: RunningHomeport, destinations: Destinations): Promise<void> {
  const client = new Client({ baseUrl: homeport.queueUrl, token: homeport.credentials.queueToken, retry: false })
  try {
    for (;;) {
      const runs = Array.from({ length: DOOMED }, () => ({
        url: `${destinations.url}/fragile`,
        body: `p${++made}`,
        retries: 3,
        failureUrl: `${destinations.url}/failure`,
      }))
      await client.trigger(runs)
      for (const kind of HOLDS) await act(homeport, destinations, kind)
      // The first action gets the most runs, so the order rotates.
      const first = (made / DOOMED) % KINDS.length
      await Promise.all(
        [...KINDS.slice(first), ...KINDS.slice(0, first)].map((kind) => act(homeport, destinations, kind)),
      )
    }
  } catch {
    // The server is gone.
  }
}

interface Action {
  readonly kind: string
  readonly state: string
  readonly matched: number
  readonly outcomes: Readonly<Record<string, number>>
}

async function actionsOf(homeport: RunningHomeport): Promise<Action[]> {
  const actions: Action[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const page = await homeport.queue('GET', `/v2/workflows/bulkActions?count=100${cursor && `&cursor=${cursor}`}`)
    const body = page.body as { bulkActions: Action[]; cursor?: string }
    actions.push(...body.bulkActions)
    cursor = body.cursor
  }
  return actions
}

const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0)

/** How many items of the actions of a kind have this outcome. */
const done = (actions: readonly Action[], kind: string, outcome: string): number =>
  sum(actions.filter((action) => action.kind === kind).map(({ outcomes }) => outcomes[outcome] ?? 0))

it(
  'gives every item of bulk actions one outcome, and resumes or restarts no dead run twice, whenever it is killed',
  async () => {
    const random = randomFrom(SEED)
    let homeport = await startHomeport()
    const { queueToken: token, ...keys } = homeport.credentials
    const destinations = await startDestinations({ url: homeport.queueUrl, token, ...keys }, ledger)
    atCleanup(() => destinations.close())
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const load = startLoad(homeport, destinations, ledger)
      const acting = actOnDeadRuns(homeport, destinations)
      const endsAt = performance.now() + SHORTEST_LIFE_MS + random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS)
      const hasDied = async () =>
        performance.now() >= endsAt && (await countRuns(homeport.place, '/fragile')).failed > cycle
      await waitFor(hasDied, { what: 'the moment of the kill', deadlineMs: DEADLINE_MS, everyMs: 5 })
      await homeport.kill('SIGKILL')
      await Promise.all([load.stopped(), acting])
      homeport = await startHomeport(homeport.place)
    }
    const { place } = homeport
    const isOver = async () => (await actionsOf(homeport)).every(({ state }) => state === 'finished')
    const isCalm = async () => {
      const { started, calling } = await countRuns(place, '/fragile')
      return started + calling === 0
    }
    const rest = async () => {
      await waitFor(isOver, { what: 'every action to be finished', deadlineMs: DEADLINE_MS, everyMs: 100 })
      const what = 'every fragile run to end and every failure function to be called'
      await waitFor(isCalm, { what, deadlineMs: DEADLINE_MS, everyMs: 100 })
    }
    await waitFor(isOver, { what: 'every action to be finished', deadlineMs: DEADLINE_MS, everyMs: 100 })
    // What a kill has left paused goes on, and was not delivered before.
    await act(homeport, destinations, 'unpauseRuns')
    await rest()
    // On a busy machine the lives may have been too short for these actions.
    for (const kind of ['retryFailureCallbacks', 'resumeRuns']) {
      await act(homeport, destinations, kind)
      await rest()
    }
    await waitFor(() => ledger.lost().length === 0, { what: 'every published message', deadlineMs: DEADLINE_MS })

    const actions = await actionsOf(homeport)
    for (const action of actions)
      expect(sum(Object.values(action.outcomes)), JSON.stringify(action)).toBe(action.matched)
    const resumed = done(actions, 'resumeRuns', 'resumed')
    const restarted = done(actions, 'restartRuns', 'restarted')
    const deleted = done(actions, 'deleteDeadRuns', 'deleted')
    const retried = done(actions, 'retryFailureCallbacks', 'retried')
    const [paused, goneOn] = [done(actions, 'pauseRuns', 'paused'), done(actions, 'unpauseRuns', 'unpaused')]
    const { failed, dead, succeeded } = await countRuns(place, '/fragile')
    account = `${actions.length} actions: ${failed} runs died, ${resumed} resumed, ${restarted} restarted, ${deleted} deleted, ${retried} called again, ${paused} paused, ${goneOn} let go on`
    // A run that ends while it is paused does not go on.
    expect(goneOn).toBeLessThanOrEqual(paused)
    expect(failed - dead).toBe(resumed + restarted + deleted)
    expect(succeeded).toBe(resumed + restarted)
    expect(ledger.failureCalls).toBeGreaterThanOrEqual(failed + retried)
    const ended = [...ledger.lives.values()].map((life) => life.ended.size)
    expect(Math.max(...ended)).toBeLessThanOrEqual(1)
    expect(sum(ended)).toBe(succeeded)
    expect(ledger.broken).toEqual([])
  },
  DEADLINE_MS * 4,
)
