import { expect, it } from 'vitest'
import { ManualClock } from '../base/testing/manual-clock.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { setQueueScenes } from './testing/scene.js'
import { dueOf, placeInStore, rankOf } from './transactions/priority.js'

const T = 1_760_000_000_000

describeOnSampledStore('priorities', (openStore) => {
  let clock: ManualClock
  const scene = setQueueScenes(openStore, {
    clock: () => {
      clock = new ManualClock(T)
      return clock
    },
  })

  const KEY = { 'Upstash-Flow-Control-Key': 'line', 'Upstash-Flow-Control-Value': 'parallelism=1' }
  const publish = (body: string, headers: Record<string, string> = {}, path = '/v2/publish/') =>
    fetch(`${scene.service.url}${path}${scene.sink.url}/hook`, {
      method: 'POST',
      headers: { ...scene.service.auth, ...KEY, ...headers },
      body,
    })
  const accepted = async (body: string, headers?: Record<string, string>): Promise<string> => {
    const response = await publish(body, headers)
    expect(response.status, await response.clone().text()).toBe(200)
    return ((await response.json()) as { messageId: string }).messageId
  }
  const flow = (action: 'pause' | 'resume') => scene.ask('POST', `/v2/flowControl/line/${action}`)
  const bodies = () => scene.sink.received.map(({ body }) => body)

  it('decide which waiting message is sent first, together with the time that each has waited', async () => {
    await accepted('first')
    await scene.arrived(1)
    await flow('pause')
    await accepted('old')
    clock.advance(61_000)
    await accepted('low', { 'Homeport-Priority': '-5' })
    await accepted('plain')
    await accepted('high', { 'Homeport-Priority': '60' })
    // The official client passes on headers that it does not know as headers to forward.
    const higher = { url: `${scene.sink.url}/hook`, body: 'higher', flowControl: { key: 'line', parallelism: 1 } }
    const { messageId } = await scene.client.publish({ ...higher, headers: { 'Homeport-Priority': '+600' } })
    expect(await scene.ask('GET', `/v2/messages/${messageId}`)).toMatchObject({
      answer: {
        priority: 600,
        notBefore: T + 61_000,
        createdAt: T + 61_000,
        because: [{ kind: 'prioritized', text: expect.stringContaining('600 seconds earlier') }],
      },
    })
    await flow('resume')
    await scene.arrived(6)
    expect(bodies()).toEqual(['first', 'higher', 'old', 'high', 'plain', 'low'])
    expect(Object.keys(scene.sink.received[1]?.headers ?? {}).filter((name) => name.includes('homeport'))).toEqual([])
  })

  it('do not send a message before its time, and apply to its retries', async () => {
    scene.sink.answer = ({ body }) => (body === 'fails' && bodies().length < 2 ? { status: 500 } : {})
    await accepted('later', { 'Homeport-Priority': '600', 'Upstash-Delay': '30s' })
    await accepted('fails', { 'Homeport-Priority': '600', 'Upstash-Retry-Delay': '10000' })
    await scene.arrived(1)
    await flow('pause')
    await accepted('plain')
    clock.advance(30_000)
    await flow('resume')
    await scene.arrived(4)
    expect(bodies()).toEqual(['fails', 'fails', 'later', 'plain'])
  })

  it('are refused where they have no meaning, and nothing is stored', async () => {
    for (const [value, path] of [
      ['601', '/v2/publish/'],
      ['-601', '/v2/publish/'],
      ['high', '/v2/publish/'],
      ['1.5', '/v2/publish/'],
      ['5', '/v2/enqueue/in-order/'],
    ]) {
      const response = await publish('refused', { 'Homeport-Priority': value ?? '' }, path)
      expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('Homeport-Priority')])
    }
    await accepted('kept', { 'Homeport-Priority': '0' })
    await scene.arrived(1)
    expect(bodies()).toEqual(['kept'])
  })

  it('move the place of a message that is due at once, not its due time', () => {
    const message = { createdAt: T, config: { priority: 60 } }
    expect(placeInStore('{"priority":60}', T, T)).toBe(T - 60_000)
    expect(placeInStore('{"priority":-60}', T, T)).toBe(T)
    expect(placeInStore('{"priority":60}', T + 1, T)).toBe(T + 1)
    expect(placeInStore('{"retryDelay":"\\"priority\\":60"}', T, T)).toBe(T)
    const places = [T - 60_000, T, T + 5_000].map((nextAt) => ({ ...message, nextAt }))
    expect(places.map(dueOf)).toEqual([T, T, T + 5_000])
    expect(places.map(rankOf)).toEqual([T - 60_000, T - 60_000, T - 55_000])
  })
})
