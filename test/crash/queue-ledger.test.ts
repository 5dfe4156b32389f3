import { afterAll, expect, it } from 'vitest'
import { atCleanup, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { accountOf, NO_BREACHES } from './queue-account.js'
import { startQueueDestinations } from './queue-destinations.js'
import { QueueLedger } from './queue-ledger.js'
import { startQueueLoad } from './queue-ledger-load.js'
import { planFires, storedMessages, unfinishedSoon, unfired } from './queue-ledger-store.js'
import { randomFrom } from './random.js'

/**
 * Uses every feature of the queue at once while the server is killed with SIGKILL at random moments: publish, batch,
 * URL groups, FIFO queues with failures and callbacks, schedules, retries, deduplication, flow control, cancellations,
 * dead letters and their retries. Then every acknowledged message must have its outcome. `queue-account.test.ts` shows
 * that the check notices losses. `HOMEPORT_CRASH_SEED` repeats the kill times of an earlier run, and
 * `HOMEPORT_CRASH_CYCLES` sets the number of kills, as `npm run crash -- --cycles 100` does.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const SHORTEST_LIFE_MS = 200
const LONGEST_LIFE_MS = 1_500
const DEADLINE_MS = 60_000 + CYCLES * 5_000

const ledger = new QueueLedger()
let account = ''
afterAll(() => console.log(`queue crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${account}`))

/** Whether the ledger has every kind of entry; a slow machine may need the whole first life for that. */
function hasBegun(): boolean {
  const ends = new Set(ledger.accepted.values())
  return (
    ends.has('delivered') && ends.has('dead') && ends.has('pending') && ledger.sealed.size > 0 && ledger.fires.size > 0
  )
}

/** Runs one life of the server: under load until it is killed at a random moment. */
async function live(homeport: RunningHomeport, load: Promise<unknown>, random: () => number): Promise<void> {
  const endsAt = performance.now() + SHORTEST_LIFE_MS + random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS)
  const isOver = () => performance.now() >= endsAt && hasBegun()
  await waitFor(isOver, { what: 'the moment of the kill', deadlineMs: DEADLINE_MS, everyMs: 1 })
  await homeport.kill('SIGKILL')
  await load
}

/** Waits until only delayed messages are pending. */
async function calmDown(homeport: RunningHomeport): Promise<void> {
  // Messages whose cancellation was interrupted.
  await homeport.queue('DELETE', '/v2/messages?label=silent')
  const { place } = homeport
  const isCalm = async () => (await unfired(place)) === 0 && (await unfinishedSoon(place)) === 0
  await waitFor(isCalm, { what: 'every message to end', deadlineMs: DEADLINE_MS, everyMs: 50 })
}

it(
  'accounts for every acknowledged message, keeps the order of queues and fires every schedule once',
  async () => {
    const random = randomFrom(SEED)
    let homeport = await startHomeport()
    const destinations = await startQueueDestinations(ledger)
    atCleanup(() => destinations.close())
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await live(homeport, startQueueLoad({ homeport, destinations, ledger }), random)
      await destinations.settled()
      ledger.life++
      await planFires(homeport.place, ledger, LONGEST_LIFE_MS, random)
      homeport = await startHomeport(homeport.place)
    }
    await calmDown(homeport)

    const { summary, breaches } = accountOf(ledger, await storedMessages(homeport.place))
    account = summary
    expect(breaches).toEqual(NO_BREACHES)
    expect(hasBegun()).toBe(true)
  },
  DEADLINE_MS * 2,
)
