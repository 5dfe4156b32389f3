import { afterAll, expect, it, vi } from 'vitest'
import { randomFrom } from '../../src/base/testing/random.js'
import { atCleanup, startHomeport, waitFor } from '../support/index.js'
import { judge } from './aftermath.js'
import { DeadRuns } from './dead-runs.js'
import { startDestinations } from './destinations.js'
import { Ledger } from './ledger.js'
import { startLoad } from './load.js'
import { paceOf } from './pace.js'
import { startQueueDestinations } from './queue-destinations.js'
import { QueueLedger } from './queue-ledger.js'
import { startQueueLoad } from './queue-ledger-load.js'
import { planFires } from './queue-ledger-store.js'

/**
 * The server is killed with SIGKILL at random moments and started again on its data, while clients use every feature of the
 * queue, trigger and cancel runs, and start bulk actions of every kind over runs, several of them over the same dead runs.
 * Then every acknowledged message and run must have its outcome, nothing of a cancelled run may have arrived after the answer,
 * and every item of every bulk action has one outcome, which agrees with the states of the runs: no run is resumed or
 * restarted twice, and none is lost. `queue-account.test.ts` shows that the check notices losses. `HOMEPORT_CRASH_SEED`
 * repeats the kill times of an earlier run, and `HOMEPORT_CRASH_CYCLES` sets the number of kills, as
 * `npm run crash -- --only crash --cycles 100` does.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const PACE = paceOf(CYCLES)
const MIN_LIFE_MS = 200
const MAX_LIFE_MS = 2_000
const DEADLINE_MS = 60_000 + CYCLES * 5_000

const queueLedger = new QueueLedger()
const ledger = new Ledger()
const accounts: string[] = []
// The SDK reports unreachable servers and repeated steps, which the kills cause.
vi.spyOn(console, 'warn').mockImplementation(() => undefined)
vi.spyOn(console, 'error').mockImplementation(() => undefined)
afterAll(() =>
  console.log(
    `crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${[ledger.summary(), ...accounts].join('; ')}`,
  ),
)

/** Whether the ledgers have every kind of entry; a slow machine may need the whole first life for that. */
function hasBegun(): boolean {
  const ends = new Set(queueLedger.accepted.values())
  const others = [ledger.published, ledger.triggered, ledger.sealed, queueLedger.sealed, queueLedger.fires]
  return (
    (['delivered', 'dead', 'pending'] as const).every((end) => ends.has(end)) && others.every(({ size }) => size > 0)
  )
}

it(
  'loses nothing that was acknowledged and does nothing twice, whenever it is killed',
  async () => {
    const random = randomFrom(SEED)
    let homeport = await startHomeport()
    const { queueToken: token, ...keys } = homeport.credentials
    const queueDestinations = await startQueueDestinations(queueLedger)
    const destinations = await startDestinations({ url: homeport.queueUrl, token, ...keys }, ledger)
    atCleanup(() => queueDestinations.close())
    atCleanup(() => destinations.close())
    const deadRuns = new DeadRuns(destinations, PACE)

    /** One life of the server: under load until it is killed at a random moment. */
    const live = async (cycle: number): Promise<void> => {
      const queue = { homeport, destinations: queueDestinations, ledger: queueLedger }
      const loads = [
        startQueueLoad(queue, { pace: PACE }),
        startLoad(homeport, destinations, ledger, { pace: PACE }).stopped(),
        deadRuns.actUntilGone(homeport),
      ]
      const endsAt = performance.now() + MIN_LIFE_MS + random() * (MAX_LIFE_MS - MIN_LIFE_MS)
      const isOver = async () => performance.now() >= endsAt && hasBegun() && (await deadRuns.died(homeport)) > cycle
      await waitFor(isOver, { what: 'the moment of the kill', deadlineMs: DEADLINE_MS, everyMs: 5 })
      await homeport.kill('SIGKILL')
      await Promise.all(loads)
      await queueDestinations.settled()
      queueLedger.life++
    }
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await live(cycle)
      await planFires(homeport.place, queueLedger, MAX_LIFE_MS, random)
      homeport = await startHomeport(homeport.place)
    }

    await deadRuns.settled(homeport, DEADLINE_MS)
    const { place } = homeport
    accounts.push(
      await judge({ homeport, place, destinations, queueLedger, ledger, deadlineMs: DEADLINE_MS, commits: 'last' }),
    )
    accounts.push(await deadRuns.judge(homeport, ledger))
    expect(hasBegun()).toBe(true)
  },
  DEADLINE_MS * 4,
)
