import { afterAll, it, vi } from 'vitest'
import { randomFrom } from '../../src/base/testing/random.js'
import { atCleanup, newPlace, startHomeport } from '../support/index.js'
import { judge } from './aftermath.js'
import { Callers } from './callers.js'
import { startDestinations } from './destinations.js'
import { Ledger } from './ledger.js'
import { startLoad } from './load.js'
import { FAULTS, type Fault, OutageScene } from './outages.js'
import { CALM, FAST } from './pace.js'
import { startQueueDestinations } from './queue-destinations.js'
import { QueueLedger } from './queue-ledger.js'
import { startQueueLoad } from './queue-ledger-load.js'
import { planFires } from './queue-ledger-store.js'

/**
 * Homeport uses a PostgreSQL server that fails in every way, while clients use every feature of the queue, of workflows
 * and of bulk actions: replies to commits are lost, connections break, PostgreSQL crashes, is paused, and a standby is
 * promoted. Homeport itself runs on, so nothing is repaired by a restart. In the end every acknowledged message and run
 * has its outcome, and no message that arrived is sent again. A cycle is over when every client had a success during or
 * after its fault. `HOMEPORT_CRASH_CYCLES` sets the number of faults, as `npm run crash -- --cycles 200` does;
 * `HOMEPORT_CRASH_SEED` repeats the kinds of an earlier run.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const DEADLINE_MS = 120_000
const PACE = CYCLES > 2 ? { ...FAST, thinkMs: 50 } : CALM
/** A promotion, in the middle, and fires of schedules, which the scheduler looks for every 15 s. */
const IS_LONG = CYCLES >= 20

const queueLedger = new QueueLedger()
const ledger = new Ledger()
const suffered = new Map<Fault, number>()
let account = ''
let lostCommits = 0
// The SDK reports unreachable servers and repeated steps, which the outages cause.
vi.spyOn(console, 'warn').mockImplementation(() => undefined)
vi.spyOn(console, 'error').mockImplementation(() => undefined)
afterAll(() => {
  const faults = [...suffered].map(([fault, times]) => `${times} ${fault}`).join(', ')
  console.log(
    `outage test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${faults}; ${lostCommits} commits lost; queue: ${account}; runs: ${ledger.summary()}`,
  )
})

function nextFault(cycle: number, random: () => number): Fault {
  if (IS_LONG && cycle === Math.floor(CYCLES / 2)) return 'promotion'
  const [first, ...others] = FAULTS.filter((fault) => fault !== 'promotion')
  if (cycle === 0 || random() < 0.5) return first as Fault
  // Every kind comes up, even in a short run.
  return others[cycle % others.length] as Fault
}

it(
  'loses nothing and leaves nothing behind, however PostgreSQL fails',
  async () => {
    const random = randomFrom(SEED)
    const scene = await OutageScene.start(random, IS_LONG)
    atCleanup(() => scene.stop())
    const homeport = await startHomeport({ ...(await newPlace()), mayHaveStrays: true, args: ['--store', scene.url] })
    const { queueToken: token, ...keys } = homeport.credentials
    const queueDestinations = await startQueueDestinations(queueLedger)
    const destinations = await startDestinations({ url: homeport.queueUrl, token, ...keys }, ledger)
    atCleanup(() => queueDestinations.close())
    atCleanup(() => destinations.close())
    const place = () => ({ ...homeport.place, store: scene.directUrl })

    const callers = new Callers(DEADLINE_MS, PACE)
    const queueLoad = startQueueLoad({ homeport, destinations: queueDestinations, ledger: queueLedger }, callers)
    const runLoad = startLoad(homeport, destinations, ledger, callers)

    await callers.allSucceed()
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const fault = nextFault(cycle, random)
      suffered.set(fault, (suffered.get(fault) ?? 0) + 1)
      if (cycle % 20 === 19) console.log(`${cycle + 1} outages, ${scene.lostCommits} commits lost`)
      if (IS_LONG && cycle % 10 === 0) await planFires(place(), queueLedger, 1_000, random)
      await scene.suffer(fault, () => callers.allSucceed())
    }

    lostCommits = scene.lostCommits
    callers.end()
    await Promise.all([queueLoad, runLoad.stopped()])

    account = await judge({
      homeport,
      place: place(),
      destinations,
      queueLedger,
      ledger,
      deadlineMs: DEADLINE_MS,
      commits: 'may be lost',
    })
  },
  240_000 + CYCLES * 20_000,
)
