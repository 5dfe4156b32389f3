import { afterEach, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { systemClock } from '../base/index.js'
import { openStore, type Store } from '../store/index.js'
import { describeOnStore, type StorePlace } from '../store/testing/index.js'
import { ClusterMeter, silentLogger } from '../telemetry/index.js'
import { Clustered } from './clustered.js'
import { DirectLinks } from './testing/direct-links.js'
import { type LetGo, PARTITIONS, type PartitionHolder } from './types.js'

/** Runs the timers of one node; a test can pause them, as SIGSTOP would. */
class Holder implements PartitionHolder {
  readonly held = new Map<number, unknown>()
  readonly busy = new Set<number>()
  gained(partitions: readonly { partition: number; notes?: unknown }[]): void {
    for (const { partition, notes } of partitions) this.held.set(partition, notes)
  }
  letGo(partitions: readonly number[]): Promise<LetGo> {
    const busy = partitions.filter((partition) => this.busy.has(partition))
    return Promise.resolve({ notes: new Map(partitions.map((p) => [p, { from: p }])), busy })
  }
  lost(partitions: readonly number[]): void {
    for (const partition of partitions) this.held.delete(partition)
  }
}

describeOnStore('postgres', 'nodes of a cluster', (_open, on) => {
  let place: StorePlace
  let links: DirectLinks
  const nodes: { cluster: Clustered; store: Store }[] = []

  beforeEach(async () => {
    place = await on.newPlace()
    links = new DirectLinks()
  })
  afterEach(async () => {
    for (const { cluster, store } of nodes.splice(0)) {
      await cluster.stop()
      await store.close()
    }
  })

  const add = async (name: string) => {
    const store = await openStore({ ...place, sharing: 'cluster upkeep', onFailure: () => undefined })
    const holder = new Holder()
    const died: Error[] = []
    const cluster = new Clustered({
      store,
      identity: { name, host: '127.0.0.1', dir: `dir of ${name}`, version: '1', config: { plans: 'x' } },
      link: links.make,
      clock: systemClock,
      logger: silentLogger,
      meter: new ClusterMeter(),
      onDead: (error) => died.push(error),
    })
    nodes.push({ cluster, store })
    cluster.hold(holder)
    await cluster.start()
    cluster.open()
    return { cluster, holder, died, store }
  }

  it('spreads partitions', async () => {
    const a = await add('a')
    await waitFor(() => a.cluster.owned.length === PARTITIONS, { what: 'a owns all' })
    await waitFor(() => a.cluster.isLeader, { what: 'a leader' })
    const b = await add('b')
    await waitFor(() => b.cluster.owned.length === 32 && a.cluster.owned.length === 32, { what: 'balance' })
    expect(b.holder.held.get(b.cluster.owned[0] ?? 0)).toEqual({ from: b.cluster.owned[0] })
    await a.cluster.drain(1000)
    await waitFor(() => b.cluster.owned.length === PARTITIONS && b.cluster.isLeader, { what: 'b owns all' })
    expect(a.cluster.owned).toEqual([])
  })
})
