import { afterAll, expect, it, vi } from 'vitest'
import { randomFrom } from '../../src/base/testing/random.js'
import { atCleanup } from '../support/index.js'
import { judge } from './aftermath.js'
import { Callers } from './callers.js'
import { startDestinations } from './destinations.js'
import { Ledger } from './ledger.js'
import { startLoad } from './load.js'
import { happen, NODE_FAULTS, type NodeFault } from './node-faults.js'
import { NodeScene } from './nodes.js'
import { CALM, FAST } from './pace.js'
import { startQueueDestinations } from './queue-destinations.js'
import { QueueLedger } from './queue-ledger.js'
import { startQueueLoad } from './queue-ledger-load.js'
import { planFires } from './queue-ledger-store.js'
import { EAGER, PATIENT, Revocations } from './revocations.js'
import { Senders } from './senders.js'

/**
 * Three nodes (two in short runs) share one PostgreSQL, while clients use every feature of the queue, of workflows and of
 * bulk actions through a balancer.
 *
 * Faults: nodes are killed, paused, drained, and cut from PostgreSQL or from each other, by closed connections and by black
 * holes in one or both directions; their clocks jump, commits lose their replies, and PostgreSQL crashes, is away for a
 * minute, or fails over.
 *
 * In the end every acknowledged message and run has its outcome, nothing of a cancelled run arrived after the answer, every
 * schedule fired once, the parallelism of a key was never exceeded, no node sent anything after it had been declared dead,
 * and no node accepted a key or token that was used after the answer to its revocation. A cycle counts only when every
 * client had a success during or after its fault.
 *
 * `HOMEPORT_CRASH_CYCLES` sets the number of faults, as `npm run crash -- --only nodes --cycles 100` does;
 * `HOMEPORT_CRASH_SEED` repeats the kinds of an earlier run, `HOMEPORT_CRASH_FAULT` (`--fault`) makes all of one kind.
 */

const CYCLES = Number(process.env.HOMEPORT_CRASH_CYCLES ?? 1)
const SEED = Number(process.env.HOMEPORT_CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32))
const ONLY = process.env.HOMEPORT_CRASH_FAULT
const DEADLINE_MS = 120_000
/** Short runs share the machine with other tests. */
const IS_LONG = CYCLES > 2
const PACE = IS_LONG ? { ...FAST, thinkMs: 50 } : { ...CALM, thinkMs: 1_000 }
const NODES = IS_LONG ? 3 : 2

const queueLedger = new QueueLedger()
const ledger = new Ledger()
const suffered = new Map<NodeFault, number>()
let account = ''
let revoked = ''
let lostCommits = 0
let declaredDead = 0
// The SDK reports unreachable servers and repeated steps, which the faults cause.
vi.spyOn(console, 'warn').mockImplementation(() => undefined)
vi.spyOn(console, 'error').mockImplementation(() => undefined)
afterAll(() => {
  const faults = [...suffered].map(([fault, times]) => `${times} ${fault}`).join(', ')
  console.log(
    `nodes test: HOMEPORT_CRASH_SEED=${SEED} HOMEPORT_CRASH_CYCLES=${CYCLES}; ${faults}; ${lostCommits} commits lost, ${declaredDead} declared dead; queue: ${account}; at most ${queueLedger.narrow.most} requests at once of a key that may have 2; runs: ${ledger.summary()}; secrets: ${revoked}`,
  )
})

function nextFault(cycle: number, random: () => number): NodeFault {
  if (ONLY !== undefined) {
    const found = NODE_FAULTS.find((fault) => fault === ONLY)
    if (found) return found
    throw new Error(`HOMEPORT_CRASH_FAULT is "${ONLY}"; the faults are ${NODE_FAULTS.join(', ')}`)
  }
  // A short run kills, which is the most common.
  if (cycle === 0) return 'kill'
  return NODE_FAULTS[Math.floor(random() * NODE_FAULTS.length)] ?? 'kill'
}

it(
  'loses nothing and leaves nothing behind, whatever happens to the nodes',
  async () => {
    const random = randomFrom(SEED)
    const scene = await NodeScene.start({
      random,
      nodes: NODES,
      readyEveryMs: IS_LONG ? 100 : 400,
      onDisturbance: () => void queueLedger.life++,
    })
    atCleanup(() => scene.stop())
    const homeport = scene.balanced
    const { queueToken: token, ...keys } = homeport.credentials
    const senders = new Senders(() => scene.pids)
    senders.start(() => scene.storeUrl)
    atCleanup(() => senders.stop())
    const queueDestinations = await startQueueDestinations(queueLedger, senders)
    const destinations = await startDestinations({ url: homeport.queueUrl, token, ...keys }, ledger)
    atCleanup(() => queueDestinations.close())
    atCleanup(() => destinations.close())
    const place = () => ({ ...homeport.place, store: scene.storeUrl })

    const callers = new Callers(DEADLINE_MS, PACE)
    const queueLoad = startQueueLoad({ homeport, destinations: queueDestinations, ledger: queueLedger }, callers)
    const runLoad = startLoad(homeport, destinations, ledger, callers)

    const revocations = new Revocations(scene, random, IS_LONG ? EAGER : PATIENT)
    const revoking = revocations.run(callers.repeat)

    await callers.allSucceed()
    for (let cycle = 0; cycle < CYCLES; cycle++) {
      const fault = nextFault(cycle, random)
      suffered.set(fault, (suffered.get(fault) ?? 0) + 1)
      if (cycle % 10 === 9) console.log(`${cycle + 1} faults, ${scene.lostCommits} commits lost`)
      if (cycle % 10 === 0) await planFires(place(), queueLedger, 1_000, random)
      const during = () => callers.allSucceed()
      await scene.suffer(fault, (node) => happen(fault, node, { scene, random, during }), during)
    }

    lostCommits = scene.lostCommits
    callers.end()
    await Promise.all([queueLoad, runLoad.stopped(), revoking])
    await revocations.settled()
    revoked = revocations.summary()
    expect(revocations.accepted).toEqual([])

    account = await judge({
      homeport,
      place: place(),
      destinations,
      queueLedger,
      ledger,
      deadlineMs: DEADLINE_MS,
      commits: 'may be lost',
    })
    if (process.platform === 'linux') expect(senders.known).toBeGreaterThan(0)
    expect(senders.sentWhenDead()).toEqual([])
    declaredDead = senders.dead
  },
  240_000 + CYCLES * 120_000,
)
