import { afterAll, expect, it } from 'vitest'
import { atCleanup, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { accountOf, NO_BREACHES } from './queue-account.js'
import { QueueLedger } from './queue-ledger.js'
import { startQueueLoad } from './queue-ledger-load.js'
import { planFires, storedMessages, unfinishedSoon, unfired } from './queue-ledger-store.js'
import { startQueueWorld } from './queue-ledger-world.js'
import { randomFrom } from './random.js'

/**
 * Everything that the queue does, at once, while the server is killed with -9 at random moments: publish, batch, URL
 * groups, FIFO queues with failures and callbacks, schedules, retries, deduplication, flow control, cancellations, dead
 * letters and sending those again. Then everything that was acknowledged has to be accounted for. That losses would be
 * noticed shows `queue-account.test.ts`. `HOMEPORT_CRASH_SEED` repeats the moments of an earlier run, and
 * `HOMEPORT_CRASH_CYCLES` sets how many there are; `npm run crash -- --cycles 100` does so too.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 2)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const SHORTEST_LIFE_MS = 200
const LONGEST_LIFE_MS = 1_500
const DEADLINE_MS = 60_000 + CYCLES * 5_000

const ledger = new QueueLedger()
let account = ''
afterAll(() => console.log(`queue crash test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${account}`))

/** Whether something of everything is on record; a slow machine may take the whole first life for that. */
function hasBegun(): boolean {
  const ends = new Set(ledger.accepted.values())
  return (
    ends.has('delivered') && ends.has('dead') && ends.has('pending') && ledger.sealed.size > 0 && ledger.fires.size > 0
  )
}

/** A life of the server: load until it is killed at a random moment. */
async function live(homeport: RunningHomeport, load: Promise<unknown>, random: () => number): Promise<void> {
  const endsAt = performance.now() + SHORTEST_LIFE_MS + random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS)
  const isOver = () => performance.now() >= endsAt && hasBegun()
  await waitFor(isOver, { what: 'the moment of the kill', deadlineMs: DEADLINE_MS, everyMs: 1 })
  await homeport.kill('SIGKILL')
  await load
}

/** Lets everything end that is not meant to wait. */
async function calmDown(homeport: RunningHomeport): Promise<void> {
  // Those whose cancellation was cut off.
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
    const world = await startQueueWorld(ledger)
    atCleanup(() => world.close())
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      await live(homeport, startQueueLoad({ homeport, world, ledger }), random)
      await world.settled()
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
