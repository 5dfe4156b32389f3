import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Store } from '../../store/index.js'
import { describeOnEveryStore } from '../../store/testing/index.js'
import { wrappedStore } from '../../store/testing/wrapped-store.js'
import { type QueueUnderTest, startQueue } from '../testing/harness.js'

/** The publisher stops after this many steps of the deletion, so that the test ends. */
const MAX_STEPS = 10

describeOnEveryStore('a queue that is published to all the time', (openStore) => {
  let service: QueueUnderTest
  let steps = 0
  const call = async (method: string, path: string, body?: string) => {
    const headers = { ...service.auth, 'content-type': 'application/json' }
    const answer = await fetch(service.url + path, { method, headers, ...(body && { body }) })
    return { status: answer.status, body: answer.status === 200 ? await answer.json() : undefined }
  }
  const publish = () => call('POST', '/v2/enqueue/busy/https://e.test/', '{}')
  beforeAll(async () => {
    const real: Store = await openStore()
    const store = wrappedStore(real, async (operation, args) => {
      if (operation.name.startsWith('queues.remove') && ++steps <= MAX_STEPS) await publish()
      return real.run(operation, args)
    })
    service = await startQueue({ store })
  })
  afterAll(() => service.stop())

  it('is deleted with the messages that were published meanwhile', async () => {
    await call('POST', '/v2/queues', '{"queueName":"busy","paused":true}')
    await publish()
    const { body } = await call('DELETE', '/v2/queues/busy')
    expect(steps).toBeLessThan(MAX_STEPS)
    expect(body).toEqual({ cancelled: steps + 1 })
    expect(await call('GET', '/v2/queues/busy')).toMatchObject({ status: 404 })
    const logs = await call('GET', '/v2/logs?queueName=busy&state=CANCELED')
    expect(logs.body).toMatchObject({ logs: Array.from({ length: steps + 1 }, () => ({ state: 'CANCELED' })) })
  })
})
