import { isDeepStrictEqual } from 'node:util'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { ManualClock } from '../base/testing/manual-clock.js'
import { PARTITIONS, type PartitionHolder, partitionOfKey } from '../cluster/index.js'
import { LocalCluster, type LocalNode } from '../cluster/testing/local-cluster.js'
import type { Store } from '../store/index.js'
import { describeOnStore } from '../store/testing/index.js'
import { QueueMeter } from '../telemetry/index.js'
import { type QueueUnderTest, startQueue } from './testing/harness.js'
import { type Sink, startSink } from './testing/sink.js'

const ALL = Array.from({ length: PARTITIONS }, (_, partition) => partition)
/** Nodes by their place in the list: `a` is the leader. */
const [A, B, C] = [0, 1, 2]

describeOnStore('postgres', 'the queues of three nodes', (openStore) => {
  let store: Store
  let sink: Sink
  let clock: ManualClock
  let cluster: LocalCluster
  let nodes: LocalNode[]
  let services: QueueUnderTest[]
  let holders: Map<LocalNode, PartitionHolder>
  let meter: QueueMeter
  let accountId = ''
  let accounts = 0

  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(async () => {
    sink = await startSink()
    clock = new ManualClock(Date.now())
    cluster = new LocalCluster()
    nodes = ['a', 'b', 'c'].map((name) => cluster.add(name))
    accountId = `acc_${++accounts}`
    services = []
    holders = new Map()
    for (const each of nodes) {
      const hold = each.hold.bind(each)
      each.hold = (holder) => hold(holders.set(each, holder).get(each) as PartitionHolder)
    }
    meter = new QueueMeter()
    for (const node of nodes)
      services.push(await startQueue({ store, clock, cluster: node, accountId, meter, mayHaveStrays: true }))
    for (const partition of ALL) node(partition % nodes.length).gain([{ partition }])
  })
  afterEach(async () => {
    await call(A, 'DELETE', '/v2/messages')
    let isStopped = false
    const stopping = Promise.all(services.map((service) => service.stop())).finally(() => {
      isStopped = true
    })
    await passTimeUntil(() => isStopped, 'the stop')
    await stopping
    await sink.close()
    expect(meter.strays > 0).toBe(cluster.losesHints)
  })

  /** What acts on the partitions of a node. */
  const holderOf = (of: LocalNode): PartitionHolder => holders.get(of) as PartitionHolder
  const node = (index: number): LocalNode => nodes[index] as LocalNode
  const call = async (index: number, method: string, target: string, headers = {}, body?: string) => {
    const { url, auth } = services[index] as QueueUnderTest
    const init = { method, headers: { ...auth, ...headers }, ...(body !== undefined && { body }) }
    const answer = await fetch(url + target, init)
    const text = await answer.text()
    expect(answer.status, text).toBeLessThan(300)
    return text === '' ? undefined : JSON.parse(text)
  }
  const publish = async (index: number, path: string, headers: Record<string, string> = {}): Promise<string> =>
    (await call(index, 'POST', `/v2/publish/${sink.url}${path}`, headers, 'x')).messageId
  const paths = (): string[] => sink.received.map(({ target }) => target)
  const arrived = (count: number) => waitFor(() => sink.received.length >= count, { what: `${count} deliveries` })
  /** Advances the clock by half a second at each check. */
  const passTimeUntil = (condition: () => boolean, what: string) =>
    waitFor(
      () => {
        clock.advance(500)
        return condition()
      },
      { what },
    )
  /** A flow-control key whose partition a node owns. */
  const keyOf = (index: number): string =>
    Array.from({ length: 1_000 }, (_, number) => `k${number}`).find((key) =>
      node(index).owns(partitionOfKey(accountId, key)),
    ) ?? ''
  const flow = (key: string, value?: string) => ({
    'Upstash-Flow-Control-Key': key,
    ...(value !== undefined && { 'Upstash-Flow-Control-Value': value }),
  })
  const useOf = (index: number, key: string) => call(index, 'GET', `/v2/flowControl/${key}`)

  it('send each message once, wherever it was published', async () => {
    const expected: string[] = []
    for (let number = 0; number < 30; number++) {
      expected.push(`/${number}`)
      await publish(number % 3, `/${number}`, number % 2 === 0 ? {} : flow(`k${number}`))
    }
    await arrived(30)
    expect(paths().sort()).toEqual(expected.sort())
  })

  it('hand partitions over while messages are published, and send none twice', async () => {
    const expected: string[] = []
    const publishing = (async () => {
      for (let number = 0; number < 60; number++) {
        expected.push(`/${number}`)
        await publish(number % 3, `/${number}`, number % 2 === 0 ? {} : flow(`k${number}`))
      }
    })()
    for (let round = 1; round <= 6; round++) {
      for (let to = 0; to < nodes.length; to++)
        await cluster.give(
          ALL.filter((partition) => (partition + round) % nodes.length === to),
          node(to),
        )
    }
    await publishing
    await passTimeUntil(() => sink.received.length >= 60, '60 deliveries')
    expect(paths().sort()).toEqual(expected.sort())
  })

  it('send only the newest of a burst, whichever node has the older ones in memory', async () => {
    const debounced = { 'Homeport-Debounce': 'k', 'Homeport-Debounce-Delay': '10s' }
    for (const [number, index] of [A, B, C, A].entries()) await publish(index, `/${number}`, debounced)
    clock.advance(10_000)
    await publish(A, '/marker', { 'Upstash-Delay': '5s' })
    await passTimeUntil(() => paths().includes('/marker'), 'what is due later')
    expect(paths()).toEqual(['/3', '/marker'])
  })

  it('cancel the older message of a singleton key in flight on another node', async () => {
    const singleton = { 'Homeport-Singleton': 'k', 'Homeport-Singleton-Mode': 'cancel' }
    sink.answer = ({ target }) => (target === '/older' ? { silent: true } : {})
    await publish(B, '/older', singleton)
    await arrived(1)
    await publish(C, '/newer', singleton)
    await waitFor(() => sink.aborted === 1, { what: 'the abort' })
    await arrived(2)
    expect(paths()).toEqual(['/older', '/newer'])
  })

  it('hand over delayed messages', async () => {
    await publish(A, '/later', { 'Upstash-Delay': '30s' })
    await cluster.give(node(A).owned, node(C))
    await passTimeUntil(() => sink.received.length > 0, 'the message')
    expect(paths()).toEqual(['/later'])
  })

  it('send the messages of a node that has died', async () => {
    const key = keyOf(B)
    node(B).die()
    await publish(A, '/1', flow(key))
    await publish(A, '/marker', flow(keyOf(A)))
    await arrived(1)
    expect(paths()).toEqual(['/marker'])
    await cluster.declareDead(node(B), node(C))
    await arrived(2)
    expect(paths()).toEqual(['/marker', '/1'])
  })

  it('send nothing from a node that may have been declared dead, and continue when it may act again', async () => {
    const may = vi.spyOn(node(B), 'mayAct').mockReturnValue(false)
    await publish(B, '/1')
    await publish(A, '/marker')
    await arrived(1)
    expect(paths()).toEqual(['/marker'])
    may.mockRestore()
    await passTimeUntil(() => sink.received.length > 1, 'the message')
    expect(paths()).toEqual(['/marker', '/1'])
  })

  it('share the parallelism of a key', async () => {
    const key = keyOf(B)
    sink.answer = () => ({ silent: true })
    const ids: string[] = []
    for (let number = 0; number < 6; number++)
      ids.push(await publish(number % 3, `/${number}`, { ...flow(key, 'parallelism=2'), 'Upstash-Retries': '0' }))
    await arrived(2)
    expect(await useOf(A, key)).toMatchObject({ parallelismMax: 2, parallelismCount: 2, waitListSize: 4 })
    expect(await call(C, 'GET', '/v2/globalParallelism')).toMatchObject({ parallelismCount: 2, parallelismMax: 300 })
    // A cancel anywhere aborts the request at the owner, and the next two begin.
    for (const id of ids.slice(0, 2)) await call(C, 'DELETE', `/v2/messages/${id}`)
    await arrived(4)
    expect((await useOf(C, key)).parallelismCount).toBe(2)
  })

  it('continue the period of a rate after a planned hand-over', async () => {
    const key = keyOf(B)
    for (let number = 0; number < 5; number++) await publish(number % 3, `/${number}`, flow(key, 'rate=3, period=1m'))
    await arrived(3)
    await cluster.give(node(B).owned, node(C))
    await waitFor(async () => (await useOf(A, key)).rateCount === 3, { what: 'the count at the next owner' })
    await publish(A, '/marker')
    await arrived(4)
    expect(paths()).toContain('/marker')
    await passTimeUntil(() => sink.received.length >= 6, 'the next period')
    expect(sink.received).toHaveLength(6)
  })

  it('know the limits that messages of other nodes set, delayed messages included', async () => {
    const key = keyOf(B)
    await publish(A, '/later', { ...flow(key, 'parallelism=7'), 'Upstash-Delay': '1d' })
    sink.answer = () => ({ silent: true })
    for (let number = 0; number < 9; number++) await publish(C, `/${number}`, flow(key))
    await arrived(7)
    expect(await useOf(C, key)).toMatchObject({ parallelismCount: 7, waitListSize: 2 })
    await publish(A, '/later', { ...flow(key, 'parallelism=3'), 'Upstash-Delay': '1d' })
    const holdAtOwner = () => services[B]?.queue.flowHold(accountId, key)
    await waitFor(() => isDeepStrictEqual(holdAtOwner(), { by: 'parallelism', parallelism: 3 }), { what: 'the limit' })
  })

  it('pause a key on all nodes before the answer, and resume it', async () => {
    const key = keyOf(B)
    await publish(A, '/1', { ...flow(key), 'Upstash-Delay': '10s' })
    await call(C, 'POST', `/v2/flowControl/${key}/pause`)
    clock.advance(11_000)
    await publish(B, '/2', flow(key))
    await publish(B, '/marker')
    await arrived(1)
    expect(paths()).toEqual(['/marker'])
    await call(A, 'POST', `/v2/flowControl/${key}/resume`)
    await arrived(3)
    expect(paths().sort()).toEqual(['/1', '/2', '/marker'])
  })

  it('let a partition go when its last request has ended', async () => {
    const key = keyOf(B)
    const partition = partitionOfKey(accountId, key)
    sink.answer = () => ({ silent: true })
    const id = await publish(A, '/slow', flow(key))
    await arrived(1)
    const leaving = holderOf(node(B)).release([partition], 60_000)
    await call(A, 'DELETE', `/v2/messages/${id}`)
    expect((await leaving).busy).toEqual([])
  })

  it('keep a partition whose requests do not end, and send them once', async () => {
    const key = keyOf(B)
    const partition = partitionOfKey(accountId, key)
    sink.answer = ({ target }) => (target === '/slow' ? { silent: true } : {})
    const id = await publish(A, '/slow', flow(key, 'parallelism=2'))
    await arrived(1)
    const leaving = holderOf(node(B)).release([partition], 1_000)
    await publish(A, '/meanwhile', flow(key))
    clock.advance(1_000)
    const { busy, notes } = await leaving
    expect(busy).toEqual([partition])
    holderOf(node(B)).gained([{ partition, notes: notes.get(partition) }])
    await arrived(2)
    await publish(C, '/after', flow(key))
    await arrived(3)
    expect(paths()).toEqual(['/slow', '/meanwhile', '/after'])
    await call(A, 'DELETE', `/v2/messages/${id}`)
  })

  it('keep the order of a queue', async () => {
    for (let number = 0; number < 9; number++)
      await call(number % 3, 'POST', `/v2/enqueue/line/${sink.url}/${number}`, {}, 'x')
    await arrived(9)
    expect(paths()).toEqual(Array.from({ length: 9 }, (_, number) => `/${number}`))
  })

  it('fire a schedule once, also one that was created at another node than the leader', async () => {
    await call(C, 'POST', `/v2/schedules/${sink.url}/fire`, { 'Upstash-Cron': '* * * * *' }, 'x')
    await passTimeUntil(() => sink.received.length >= 1, 'the first fire')
    await cluster.declareDead(node(A), node(B))
    await passTimeUntil(() => sink.received.length >= 2, 'the second fire')
    expect(sink.received).toHaveLength(2)
  })

  it('forget a cancelled message before the answer', async () => {
    const id = await publish(A, '/1', { ...flow(keyOf(B)), 'Upstash-Delay': '10s' })
    await call(C, 'DELETE', `/v2/messages/${id}`)
    clock.advance(11_000)
    await publish(B, '/marker')
    await arrived(1)
    expect(paths()).toEqual(['/marker'])
  })

  it('find a message and a limit whose hint was lost', async () => {
    await publish(B, '/opened')
    await arrived(1)
    cluster.losesHints = true
    await publish(A, '/1', flow(keyOf(B), 'parallelism=1'))
    await passTimeUntil(() => sink.received.length > 1, 'the message')
    expect(paths()).toEqual(['/opened', '/1'])
    expect((await useOf(C, keyOf(B))).parallelismMax).toBe(1)
  })

  it('find a message whose hint was lost, also when the node had nothing to do for long', async () => {
    await publish(B, '/opened')
    await arrived(1)
    for (let step = 0; step < 12; step++) {
      clock.advance(10_000)
      await store.settled()
    }
    cluster.losesHints = true
    const sentAt = clock.now()
    await publish(A, '/1', flow(keyOf(B)))
    await passTimeUntil(() => sink.received.length > 1, 'the message')
    expect(clock.now() - sentAt).toBeLessThan(20_000)
  })

  it('find the next message of a queue when the hint that its turn has come is lost', async () => {
    sink.answer = () => ({ silent: true })
    const enqueue = (index: number, path: string) =>
      call(index, 'POST', `/v2/enqueue/line/${sink.url}${path}`, {}, 'x') as Promise<{ messageId: string }>
    const first = await enqueue(A, '/0')
    await enqueue(B, '/1')
    await arrived(1)
    clock.advance(60_000)
    cluster.losesHints = true
    const endedAt = clock.now()
    await call(A, 'DELETE', `/v2/messages/${first.messageId}`)
    await passTimeUntil(() => sink.received.length > 1, 'the next message')
    expect(clock.now() - endedAt).toBeLessThan(20_000)
  })
})
