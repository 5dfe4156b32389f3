import { expect, it } from 'vitest'
import { yieldToEventLoop } from '../base/index.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import type { Store } from '../store/index.js'
import { ClusterMeter, silentLogger } from '../telemetry/index.js'
import { Clustered } from './clustered.js'
import { DirectLinks } from './testing/direct-links.js'
import * as nodeRows from './transactions/cluster-nodes.js'
import * as partitionRows from './transactions/cluster-partitions.js'

/** What the modules of a leader are notified of when its process freezes, and it leads again before a look has ended. */

const ME = 1

/** A store with this node as the leader, which answers looks only when the test lets it. */
function storeOfLeader() {
  const looks: (() => void)[] = []
  const seen = {
    nodes: [{ incarnation: ME, name: 'a', advertise: '', state: 'live', is_open: 1, beat: 1 }],
    partitions: [],
    leader: ME,
    announcements: [],
  }
  const run = async (operation: unknown) => {
    if (operation === nodeRows.register) return { kind: 'registered', incarnation: ME, seen: 0 }
    if (operation === partitionRows.look) await new Promise<void>((resolve) => looks.push(resolve))
    if (operation === partitionRows.look) return seen
    return operation === nodeRows.beat ? true : []
  }
  return { store: { run } as unknown as Store, answerLooks: () => looks.splice(0).forEach((answer) => void answer()) }
}

it('modules of the leader are notified that it could not act, although no look has ended meanwhile', async () => {
  const { store, answerLooks } = storeOfLeader()
  const clock = new ManualClock()
  const cluster = new Clustered({
    store,
    upkeep: store,
    clock,
    meter: new ClusterMeter(),
    logger: silentLogger,
    link: new DirectLinks().make,
    identity: { name: 'a', host: '127.0.0.1', dir: 'a', version: '1', config: {} },
    monotonicMs: () => clock.now(),
    onDead: () => undefined,
  })
  const settle = async () => {
    for (let round = 0; round < 20; round++) await yieldToEventLoop()
  }
  const started = cluster.start()
  await settle()
  answerLooks()
  await started
  cluster.open()
  await settle()
  answerLooks()
  await settle()
  const heard: boolean[] = []
  cluster.onLeader((isLeader) => heard.push(isLeader))
  expect(cluster.isLeader).toBe(true)

  // The process stands still: no promise settles. Then the beat is answered before the look.
  clock.advance(4_500)
  expect(cluster.isLeader).toBe(false)
  await settle()
  expect(cluster.isLeader).toBe(true)
  expect(heard).toEqual([false, true])
  const stopped = cluster.stop()
  answerLooks()
  await stopped
})
