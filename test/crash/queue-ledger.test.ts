import { afterAll, expect, it } from 'vitest'
import { atCleanup, type RunningHomeport, startHomeport, waitFor } from '../support/index.js'
import { grouped, QueueLedger } from './queue-ledger.js'
import { startQueueLoad } from './queue-ledger-load.js'
import { planFires, type StoredMessage, storedMessages, unfinishedSoon, unfired } from './queue-ledger-store.js'
import { startQueueWorld } from './queue-ledger-world.js'
import { randomFrom } from './random.js'

/**
 * Everything that the queue does, at once, while the server is killed with -9 at random moments: publish, batch, FIFO
 * queues with failures and callbacks, schedules, retries, cancellations, dead letters and sending those again. Then
 * everything that was acknowledged has to be accounted for. `HOMEPORT_CRASH_SEED` repeats the moments of an earlier run,
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

/** A life of the server: load until it is killed at a random moment. */
async function live(homeport: RunningHomeport, load: Promise<unknown>, random: () => number): Promise<void> {
  const endsAt = performance.now() + SHORTEST_LIFE_MS + random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS)
  await waitFor(() => performance.now() >= endsAt, { what: 'the moment of the kill', everyMs: 1 })
  await homeport.kill('SIGKILL')
  await load
}

/** Lets everything end that is not meant to wait. */
async function calmDown(homeport: RunningHomeport): Promise<void> {
  // Those whose cancellation was cut off.
  await homeport.queue('DELETE', '/v2/messages?label=silent')
  const { place } = homeport
  const isCalm = () => unfired(place) === 0 && unfinishedSoon(place) === 0
  await waitFor(isCalm, { what: 'every message to end', deadlineMs: DEADLINE_MS, everyMs: 50 })
}

/** What an acknowledged message came to, by the store and the destinations together. */
function endOf(stored: StoredMessage | undefined, successes: ReadonlySet<string>): string {
  if (!stored) return 'lost'
  switch (stored.state) {
    case 'delivered':
      return successes.has(stored.message_id) ? 'delivered' : 'delivered, and never arrived'
    case 'failed':
      return successes.has(stored.message_id) ? 'dead, and arrived' : 'dead'
    case 'held':
      return 'stuck'
    default:
      return stored.state
  }
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
      planFires(homeport.place, ledger, LONGEST_LIFE_MS, random)
      homeport = await startHomeport(homeport.place)
    }
    await calmDown(homeport)

    const stored: ReadonlyMap<string, StoredMessage> = new Map(
      storedMessages(homeport.place).map((message) => [message.message_id, message]),
    )
    const successes = new Set(ledger.arrivals.filter(({ isSuccess }) => isSuccess).map(({ messageId }) => messageId))
    const ends = [...ledger.accepted].map(([messageId, expected]) => [
      expected,
      endOf(stored.get(messageId), successes),
    ])
    const counts = [...grouped(ends, ([, end]) => end)]
    account = [
      `${ledger.accepted.size} acknowledged`,
      ...counts.map(([end, list]) => `${list.length} ${end}`),
      `${ledger.duplicates().length} attempts arrived twice`,
    ].join(', ')

    // Acknowledged = delivered + dead + canceled + pending, each as its publisher made it.
    expect(ends.filter(([expected, end]) => expected !== end)).toEqual([])
    expect(ledger.broken).toEqual([])
    expect(ledger.unexplained()).toEqual([])
    expect(ledger.outOfOrder()).toEqual([])
    expect(ledger.tornBatches()).toEqual([])
    expect(ledger.doubleCallbacks()).toEqual([])
    expect(ledger.missingCallbacks()).toEqual([])
    expect(ledger.arrivals.filter(({ messageId }) => !stored.has(messageId))).toEqual([])
    for (const path of ledger.revived) expect(successesAt(path).size).toBeLessThanOrEqual(1)
    const fired = grouped(stored.values(), ({ schedule_id }) => schedule_id)
    for (const [scheduleId, fires] of ledger.fires) expect(fired.get(scheduleId)?.length ?? 0).toBe(fires)
    expect(ledger.fires.size).toBeGreaterThan(0)
  },
  DEADLINE_MS * 2,
)

/** Messages with success at a path. */
function successesAt(path: string): Set<string> {
  return new Set(ledger.arrivals.filter((at) => at.isSuccess && at.path === path).map(({ messageId }) => messageId))
}
