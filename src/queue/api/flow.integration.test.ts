import { expect, it } from 'vitest'
import { waitFor } from '../../../test/support/wait-for.js'
import { ManualClock } from '../../base/testing/manual-clock.js'
import type { Store } from '../../store/index.js'
import { describeOnSampledStore } from '../../store/testing/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { setQueueScenes } from '../testing/scene.js'
import * as flowKeys from '../transactions/flow-keys.js'

const T = 1_767_225_600_000

describeOnSampledStore('flow control', (openStore) => {
  let clock: ManualClock
  /** Awaited before the next change of a key has its answer. */
  let beforeAnswer: Promise<void> | undefined
  const openHeard = async (): Promise<Store> => {
    const store = await openStore()
    return wrappedStore(store, async (operation, args) => {
      const answer = await store.run(operation, args)
      if (operation.name !== 'flowKeys.modify') return answer
      const late = beforeAnswer
      beforeAnswer = undefined
      await late
      return answer
    })
  }
  const scene = setQueueScenes(openHeard, {
    clock: () => {
      clock = new ManualClock(T)
      return clock
    },
    tidy: ({ client }) => client.messages.cancel({ all: true }),
  })
  const get = (key: string) => scene.client.flowControl.get(key)

  it('keeps as many requests open as the parallelism of the key allows', async () => {
    scene.sink.answer = () => ({ silent: true })
    const flowControl = { key: 'par', parallelism: 2 }
    for (let i = 0; i < 5; i++) await scene.client.publish({ url: `${scene.sink.url}/${i}`, flowControl })
    await scene.arrived(2)
    expect(await get('par')).toMatchObject({ parallelismMax: 2, parallelismCount: 2, waitListSize: 3, rateMax: 0 })
    expect(scene.sink.received).toHaveLength(2)
    await scene.client.messages.cancel({ filter: { url: `${scene.sink.url}/0` } })
    await scene.arrived(3)
    expect(scene.sink.received.map((request) => request.target).sort()).toEqual(['/0', '/1', '/2'])
    expect(await get('par')).toMatchObject({ parallelismCount: 2, waitListSize: 2 })
  })

  it('starts as many requests in a period as the rate of the key allows', async () => {
    const flowControl = { key: 'rate', rate: 2, period: '1m' } as const
    for (let i = 0; i < 5; i++) await scene.client.publish({ url: scene.sink.url, flowControl })
    await scene.arrived(2)
    expect(await get('rate')).toMatchObject({
      rateMax: 2,
      rateCount: 2,
      ratePeriod: 60,
      ratePeriodStart: T / 1_000,
    })
    clock.advance(59_999)
    expect(await get('rate')).toMatchObject({ rateCount: 2 })
    expect(scene.sink.received).toHaveLength(2)
    clock.advance(1)
    await scene.arrived(4)
    expect(await get('rate')).toMatchObject({ rateCount: 2 })
    await scene.client.flowControl.resetRate('rate')
    await scene.arrived(5)
  })

  it('begins a new period after a restart, so that at most one more rate is sent in the old period', async () => {
    const flowControl = { key: 'restart', rate: 2, period: '1h' } as const
    for (let i = 0; i < 6; i++) await scene.client.publish({ url: scene.sink.url, flowControl })
    await scene.arrived(2)
    await scene.restart()
    await scene.arrived(4)
    await waitFor(async () => (await get('restart')).waitListSize === 2, { what: 'both deliveries to end' })
    expect(await get('restart')).toMatchObject({ rateCount: 2, ratePeriodStart: T / 1_000 })
    clock.advance(3_599_999)
    expect(await get('restart')).toMatchObject({ rateCount: 2 })
    expect(scene.sink.received).toHaveLength(4)
    clock.advance(1)
    await scene.arrived(6)
  })

  it('matches a key by its whole name and counts only its own waiting messages', async () => {
    for (const key of ['whole', 'whole-other']) {
      await scene.client.flowControl.pause(key)
      await scene.client.publish({ url: scene.sink.url, flowControl: { key, parallelism: 1 } })
    }
    expect(await get('whole')).toMatchObject({ flowControlKey: 'whole', waitListSize: 1, isPaused: true })
    await expect(get('whol')).rejects.toThrow('whol')
    for (const key of ['whole', 'whole-other']) await scene.client.flowControl.resume(key)
  })

  it('counts retries too', async () => {
    scene.sink.answer = () => ({ status: 500 })
    const flowControl = { key: 'again', rate: 1, period: '1m' } as const
    await scene.client.publish({ url: scene.sink.url, retries: 1, retryDelay: '0', flowControl })
    await scene.arrived(1)
    await waitFor(async () => (await get('again')).waitListSize === 1, { what: 'the retry' })
    expect(scene.sink.received).toHaveLength(1)
    clock.advance(60_000)
    await scene.arrived(2)
  })

  it('holds the messages of a paused key, also after a restart', async () => {
    await scene.client.flowControl.pause('team/1')
    await scene.client.publish({ url: scene.sink.url, flowControl: { key: 'team/1', parallelism: 5 } })
    expect(await get('team/1')).toMatchObject({ isPaused: true, waitListSize: 1 })
    await scene.restart()
    await scene.client.publish({ url: `${scene.sink.url}/other` })
    await scene.arrived(1)
    expect(scene.sink.received[0]?.target).toBe('/other')
    await scene.client.flowControl.resume('team/1')
    await scene.arrived(2)
    expect(await get('team/1')).toMatchObject({ isPaused: false, parallelismMax: 5 })
  })

  it('sends the messages of a resumed key also when the answer to its pause comes late', async () => {
    let hear = (): void => undefined
    beforeAnswer = new Promise((resolve) => {
      hear = resolve
    })
    const pausing = scene.client.flowControl.pause('late')
    await waitFor(() => get('late').catch(() => undefined), { what: 'the pause' })
    await scene.client.flowControl.resume('late')
    hear()
    await pausing
    expect(await get('late')).toMatchObject({ isPaused: false })
    await scene.client.publish({ url: scene.sink.url, flowControl: { key: 'late', parallelism: 1 } })
    await scene.arrived(1)
  })

  it('ignores the limits of messages while its own are pinned', async () => {
    await scene.client.flowControl.pin('pin', { parallelism: 3, rate: 20, period: 120 })
    await scene.client.publish({ url: scene.sink.url, flowControl: { key: 'pin', parallelism: 9, rate: 9 } })
    expect(await get('pin')).toMatchObject({
      parallelismMax: 3,
      rateMax: 20,
      ratePeriod: 120,
      isPinnedParallelism: true,
      isPinnedRate: true,
    })
    await scene.client.flowControl.unpin('pin', { parallelism: true })
    await scene.client.publish({ url: scene.sink.url, flowControl: { key: 'pin', parallelism: 9, rate: 9 } })
    expect(await get('pin')).toMatchObject({ parallelismMax: 9, rateMax: 20, isPinnedParallelism: false })
  })

  it('does not delay other messages behind a key with a long wait list', async () => {
    const blocked = { key: 'blocked', parallelism: 1 }
    await scene.client.flowControl.pause('blocked')
    await scene.client.batchJSON(
      Array.from({ length: 300 }, () => ({ url: `${scene.sink.url}/blocked`, body: {}, flowControl: blocked })),
    )
    await scene.client.publish({ url: `${scene.sink.url}/free`, flowControl: { key: 'free', parallelism: 1 } })
    await scene.arrived(1)
    expect(scene.sink.received[0]?.target).toBe('/free')
    expect(await get('blocked')).toMatchObject({ waitListSize: 300 })
    await scene.client.flowControl.pin('blocked', { parallelism: 50 })
    await scene.client.flowControl.resume('blocked')
    await scene.arrived(301)
  })

  it('lists keys, and shows the parallelism of the server', async () => {
    await scene.client.publish({ url: scene.sink.url, flowControl: { key: 'list-a', parallelism: 1 } })
    await scene.client.publish({ url: scene.sink.url, flowControl: { key: 'list-b', rate: 1 } })
    const list = async (query: string) => {
      const response = await fetch(`${scene.service.url}/v2/flowControl${query}`, { headers: scene.service.auth })
      return ((await response.json()) as { flowControlKey: string }[]).map((one) => one.flowControlKey)
    }
    expect(await list('')).toEqual(['list-a', 'list-b'])
    expect(await list('?search=-b')).toEqual(['list-b'])
    expect(await scene.client.flowControl.getGlobalParallelism()).toMatchObject({ parallelismMax: 100 })
    const { accountId } = scene.service
    const many = Array.from({ length: 2_000 }, (_, n) => `many ${String(n).padStart(4, '0')}`)
    const create = (key: string) =>
      scene.store.run(flowKeys.modify, { accountId, key, change: {}, create: true, at: clock.now() })
    await Promise.all(many.map(create))
    expect(await list('?search=many')).toEqual(many)
    await expect(get('nowhere')).rejects.toThrow(/no flow-control key/)
    await expect(scene.client.flowControl.resume('nowhere')).rejects.toThrow(/no flow-control key/)
  })

  it('applies the limits of the message that was accepted last, whenever its turn in a queue comes', async () => {
    scene.sink.answer = () => ({ silent: true })
    const limited = (parallelism: number) => ({ flowControl: { key: 'turns', parallelism } })
    const queue = scene.client.queue({ queueName: 'turns' })
    await queue.enqueue({ url: `${scene.sink.url}/first`, ...limited(1) })
    await queue.enqueue({ url: `${scene.sink.url}/second`, ...limited(1) })
    for (let i = 0; i < 4; i++) await scene.client.publish({ url: `${scene.sink.url}/${i}`, ...limited(3) })
    await scene.arrived(3)
    // The second message gets its turn. It set a lower limit when it was enqueued.
    await scene.client.messages.cancel({ filter: { url: `${scene.sink.url}/first` } })
    await scene.arrived(4)
    await queue.enqueue({ url: `${scene.sink.url}/third`, ...limited(1) })
    await scene.client.messages.cancel({ filter: { url: [0, 1].map((i) => `${scene.sink.url}/${i}`) } })
    await waitFor(async () => (await get('turns')).parallelismCount === 1, { what: 'all calls but one to end' })
    expect(await get('turns')).toMatchObject({ parallelismMax: 1 })
    expect(scene.sink.received).toHaveLength(4)
  })
})
