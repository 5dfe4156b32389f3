import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { callbackMessage } from './plain-kind.js'
import { setQueueScenes } from './testing/scene.js'

it('a callback of an older version is made without what it cannot forward, and without a queue', () => {
  const message = {
    seq: 1,
    messageId: 'msg_1',
    accountId: 'acc',
    kind: 'http',
    groupKey: undefined,
    url: 'https://x.test/',
    method: 'POST',
    headers: {},
    config: {},
    body: undefined,
    maxRetries: 3,
    retried: 0,
    nextAt: 1,
    createdAt: 1,
    callerIp: undefined,
    labels: [],
    flowKey: undefined,
  }
  const headers = { 'upstash-forward-x': '日', 'upstash-forward-y': '2', 'upstash-queue-name': 'a b' }
  const callback = callbackMessage({ url: 'https://cb.test/', headers }, { message, body: new Uint8Array() }, 1)
  expect(JSON.parse(callback.headers)).toEqual({ 'Content-Type': ['application/json'], Y: ['2'] })
  expect(callback.queue).toBeUndefined()
})

describeOnSampledStore('callbacks', (openStore) => {
  const scene = setQueueScenes(openStore)
  const publish = (headers: Record<string, string>, query = '') =>
    fetch(`${scene.service.url}/v2/enqueue/orders/${scene.sink.url}/hook${query}`, {
      method: 'POST',
      headers: { ...scene.service.auth, 'Upstash-Callback': `${scene.sink.url}/callback`, ...headers },
      body: '{}',
    })
  const targets = () => scene.sink.received.map(({ target }) => target)

  it('with their own queue hold up no queue: they are sent in the turn of their message', async () => {
    const queued = { 'Upstash-Callback-Queue-Name': 'others' }
    for (const _ of [1, 2]) expect((await publish(queued)).status).toBe(200)
    await scene.arrived(4)
    expect(targets()).toEqual(['/hook', '/callback', '/hook', '/callback'])
    await waitFor(async () => (await scene.client.queue({ queueName: 'orders' }).get()).lag === 0, { what: 'the end' })
    const { logs } = await scene.client.logs({ filter: { url: `${scene.sink.url}/callback`, state: 'DELIVERED' } })
    await waitFor(async () => logs.length === 2, { what: 'the callbacks in the log' })
  })

  it('are refused with their message if a header of theirs is not valid in HTTP', async () => {
    const refused = await publish({}, '?upstash-callback-forward-x=a%0Ab')
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('not valid in an HTTP request'),
    ])
    expect(targets()).toEqual([])
  })
})
