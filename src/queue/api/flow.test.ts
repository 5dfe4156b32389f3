import { Client } from '@upstash/qstash'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { type QueueUnderTest, startQueue } from '../testing/harness.js'
import { type Sink, startSink } from '../testing/sink.js'

const T = 1_767_225_600_000

describeOnEveryStore('flow control', (openStore) => {
  let store: Store
  let sink: Sink
  let clock: ManualClock
  let service: QueueUnderTest
  let client: Client
  let accounts = 0

  const start = async (): Promise<void> => {
    service = await startQueue({ store, clock, accountId: `acc_fl_${accounts}` })
    client = new Client({ baseUrl: service.url, token: service.token, retry: false })
  }
  beforeAll(async () => {
    store = await openStore()
  })
  beforeEach(async () => {
    accounts++
    sink = await startSink()
    clock = new ManualClock(T)
    await start()
  })
  afterEach(async () => {
    await client.messages.cancel({ all: true })
    await service.stop()
    await sink.close()
  })

  const arrived = (count: number) => waitFor(() => sink.received.length >= count, { what: `${count} deliveries` })
  const get = (key: string) => client.flowControl.get(key)

  it('keeps at most as many calls open as the key allows, and lets the next go when one is over', async () => {
    sink.answer = () => ({ silent: true })
    const flowControl = { key: 'par', parallelism: 2 }
    for (let i = 0; i < 5; i++) await client.publish({ url: `${sink.url}/${i}`, flowControl })
    await arrived(2)
    expect(await get('par')).toMatchObject({ parallelismMax: 2, parallelismCount: 2, waitListSize: 3, rateMax: 0 })
    expect(sink.received).toHaveLength(2)
    await client.messages.cancel({ filter: { url: `${sink.url}/0` } })
    await arrived(3)
    expect(sink.received.map((request) => request.target).sort()).toEqual(['/0', '/1', '/2'])
    expect(await get('par')).toMatchObject({ parallelismCount: 2, waitListSize: 2 })
  })

  it('begins at most as many calls in a period as the key allows', async () => {
    const flowControl = { key: 'rate', rate: 2, period: '1m' } as const
    for (let i = 0; i < 5; i++) await client.publish({ url: sink.url, flowControl })
    await arrived(2)
    expect(await get('rate')).toMatchObject({
      rateMax: 2,
      rateCount: 2,
      ratePeriod: 60,
      ratePeriodStart: T / 1_000,
    })
    clock.advance(59_999)
    expect(await get('rate')).toMatchObject({ rateCount: 2 })
    expect(sink.received).toHaveLength(2)
    clock.advance(1)
    await arrived(4)
    expect(await get('rate')).toMatchObject({ rateCount: 2 })
    await client.flowControl.resetRate('rate')
    await arrived(5)
  })

  it('begins a new period with a restart: at most the rate once more in what was left of the old one', async () => {
    const flowControl = { key: 'restart', rate: 2, period: '1h' } as const
    for (let i = 0; i < 6; i++) await client.publish({ url: sink.url, flowControl })
    await arrived(2)
    await service.stop()
    await start()
    await arrived(4)
    await waitFor(async () => (await get('restart')).waitListSize === 2, { what: 'both deliveries to end' })
    expect(await get('restart')).toMatchObject({ rateCount: 2, ratePeriodStart: T / 1_000 })
    clock.advance(3_599_999)
    expect(await get('restart')).toMatchObject({ rateCount: 2 })
    expect(sink.received).toHaveLength(4)
    clock.advance(1)
    await arrived(6)
  })

  it('counts retries too', async () => {
    sink.answer = () => ({ status: 500 })
    const flowControl = { key: 'again', rate: 1, period: '1m' } as const
    await client.publish({ url: sink.url, retries: 1, retryDelay: '0', flowControl })
    await arrived(1)
    await waitFor(async () => (await get('again')).waitListSize === 1, { what: 'the retry' })
    expect(sink.received).toHaveLength(1)
    clock.advance(60_000)
    await arrived(2)
  })

  it('holds what names a paused key, over a restart too', async () => {
    await client.flowControl.pause('team/1')
    await client.publish({ url: sink.url, flowControl: { key: 'team/1', parallelism: 5 } })
    expect(await get('team/1')).toMatchObject({ isPaused: true, waitListSize: 1 })
    await service.stop()
    await start()
    await client.publish({ url: `${sink.url}/other` })
    await arrived(1)
    expect(sink.received[0]?.target).toBe('/other')
    await client.flowControl.resume('team/1')
    await arrived(2)
    expect(await get('team/1')).toMatchObject({ isPaused: false, parallelismMax: 5 })
  })

  it('keeps pinned limits whatever messages say, until they are unpinned', async () => {
    await client.flowControl.pin('pin', { parallelism: 3, rate: 20, period: 120 })
    await client.publish({ url: sink.url, flowControl: { key: 'pin', parallelism: 9, rate: 9 } })
    expect(await get('pin')).toMatchObject({
      parallelismMax: 3,
      rateMax: 20,
      ratePeriod: 120,
      isPinnedParallelism: true,
      isPinnedRate: true,
    })
    await client.flowControl.unpin('pin', { parallelism: true })
    await client.publish({ url: sink.url, flowControl: { key: 'pin', parallelism: 9, rate: 9 } })
    expect(await get('pin')).toMatchObject({ parallelismMax: 9, rateMax: 20, isPinnedParallelism: false })
  })

  it('does not let a key with a long wait list keep others waiting', async () => {
    const blocked = { key: 'blocked', parallelism: 1 }
    await client.flowControl.pause('blocked')
    await client.batchJSON(
      Array.from({ length: 300 }, () => ({ url: `${sink.url}/blocked`, body: {}, flowControl: blocked })),
    )
    await client.publish({ url: `${sink.url}/free`, flowControl: { key: 'free', parallelism: 1 } })
    await arrived(1)
    expect(sink.received[0]?.target).toBe('/free')
    expect(await get('blocked')).toMatchObject({ waitListSize: 300 })
    await client.flowControl.pin('blocked', { parallelism: 50 })
    await client.flowControl.resume('blocked')
    await arrived(301)
  })

  it('lists keys, and tells the parallelism of the server', async () => {
    await client.publish({ url: sink.url, flowControl: { key: 'list-a', parallelism: 1 } })
    await client.publish({ url: sink.url, flowControl: { key: 'list-b', rate: 1 } })
    const list = async (query: string) => {
      const response = await fetch(`${service.url}/v2/flowControl${query}`, { headers: service.auth })
      return ((await response.json()) as { flowControlKey: string }[]).map((one) => one.flowControlKey)
    }
    expect(await list('')).toEqual(['list-a', 'list-b'])
    expect(await list('?search=-b')).toEqual(['list-b'])
    expect(await client.flowControl.getGlobalParallelism()).toMatchObject({ parallelismMax: 100 })
    await expect(get('nowhere')).rejects.toThrow(/no flow-control key/)
    await expect(client.flowControl.resume('nowhere')).rejects.toThrow(/no flow-control key/)
  })
})
