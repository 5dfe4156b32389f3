import { afterEach, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { PARTITIONS, partitionOfKey } from '../cluster/index.js'
import { LocalCluster, type LocalNode } from '../cluster/testing/local-cluster.js'
import type { Store } from '../store/index.js'
import { describeOnStore } from '../store/testing/index.js'
import { type QueueUnderTest, startQueue } from './testing/harness.js'
import { type Sink, startSink } from './testing/sink.js'

const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition)

describeOnStore('postgres', 'the queues of three nodes', (openStore) => {
  let store: Store
  let sink: Sink
  let cluster: LocalCluster
  let nodes: LocalNode[]
  let services: QueueUnderTest[]
  let accounts = 0

  beforeEach(async () => {
    store ??= await openStore()
    sink = await startSink()
    cluster = new LocalCluster()
    nodes = ['a', 'b', 'c'].map((name) => cluster.add(name))
    const accountId = `acc_${++accounts}`
    services = await Promise.all(nodes.map((node) => startQueue({ store, cluster: node, accountId })))
    for (const [index, node] of nodes.entries()) {
      await cluster.give(
        ALL.filter((partition) => partition % nodes.length === index),
        node,
      )
    }
  })
  afterEach(async () => {
    for (const service of services) await service.stop()
    await sink.close()
  })

  const at = (index: number): QueueUnderTest => services[index] as QueueUnderTest
  const node = (index: number): LocalNode => nodes[index] as LocalNode
  const publish = async (index: number, path: string, headers: Record<string, string> = {}): Promise<string> => {
    const { url, auth } = at(index)
    const answer = await fetch(`${url}/v2/publish/${sink.url}${path}`, {
      method: 'POST',
      headers: { ...auth, ...headers },
      body: 'x',
    })
    expect(answer.status).toBe(200)
    return ((await answer.json()) as { messageId: string }).messageId
  }
  const paths = (): string[] => sink.received.map(({ target }) => target).sort()
  const arrived = (count: number) => waitFor(() => sink.received.length >= count, { what: `${count} deliveries` })

  it('send each message once, wherever it was published', async () => {
    const expected: string[] = []
    for (let index = 0; index < 30; index++) {
      expected.push(`/${index}`)
      await publish(index % 3, `/${index}`, index % 2 === 0 ? {} : { 'Upstash-Flow-Control-Key': `k${index}` })
    }
    await arrived(30)
    expect(paths()).toEqual(expected.sort())
  })
})
