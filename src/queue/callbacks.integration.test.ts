import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { describeOnSampledStore } from '../store/testing/index.js'
import { setQueueScenes } from './testing/scene.js'

describeOnSampledStore('callbacks', (openStore) => {
  const scene = setQueueScenes(openStore)
  const publish = (headers: Record<string, string>, query = '') =>
    fetch(`${scene.service.url}/v2/enqueue/orders/${scene.sink.url}/hook${query}`, {
      method: 'POST',
      headers: { ...scene.service.auth, 'Upstash-Callback': `${scene.sink.url}/callback`, ...headers },
      body: '{}',
    })
  const targets = () => scene.sink.received.map(({ target }) => target)

  it('with a queue of their own hold up no queue: they are sent in the turn of their message', async () => {
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
